from __future__ import annotations

import datetime
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import soundfile

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.releases import open_dataset
from fieldmark.tables.annotations import ground_truth_lines, read_events
from fieldmark.tables.media import RECORDING
from fieldmark.tables.raven import read_selections, write_selections
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark_tests.places import GOLDEN

HERE = GOLDEN / "birdclef-2020"
RATE_HZ = 8000
RECORDINGS = {
    "train/audio/Blue Jay/XC101.mp3": 1.0,
    "train/audio/amerob/XC102.ogg": 0.5,
    "train/audio/greant1/XC103.wav": 0.5,
    "val/PER54_20190116.wav": 21.0,
    "test/soundscapes/SSW_001_20170225_010000Z.flac": 20.0,
}


def write_recording(path: Path, seconds: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(1).normal(0, 0.01, round(seconds * RATE_HZ)).astype(np.float32)
    soundfile.write(path, samples, RATE_HZ)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(HERE, tmp_path / "birdclef")
    for name, seconds in RECORDINGS.items():
        write_recording(tmp_path / "birdclef" / name, seconds)
    (tmp_path / "birdclef/train/metadata/blujay").rename(tmp_path / "birdclef/train/metadata/Blue Jay")
    return tmp_path / "birdclef"


def test_metadata_are_read_whichever_keys_they_have(root):
    dataset = open_dataset("birdclef-2020", root)
    rows = {row["observation_id"]: row for row in dataset.observations.iter_rows(named=True)}
    jay, robin, antshrike = rows["XC101"], rows["XC102"], rows["XC103"]
    assert (jay["label"], robin["label"], antshrike["label"]) == ("blujay", "amerob", "greant1")
    assert (jay["lat"], jay["lon"], jay["elevation_m"], jay["time"]) == (42.48, -76.45, 330.0, "07:05")
    assert jay["date"] is None  # there is no May 0
    assert jay["background"] == ["amerob"]  # the crow is no class here
    assert (robin["date"], robin["time"], robin["country"]) == (datetime.date(2012, 6, 21), "19:30", "Canada")
    assert (antshrike["lat"], antshrike["time"], antshrike["background"]) == (None, None, [])
    taxa = {row["label"]: row for row in dataset.taxa.iter_rows(named=True)}
    assert (taxa["greant1"]["species"], taxa["greant1"]["common_name"]) == ("Taraba major", "Great Antshrike")
    assert taxa["cangoo"]["species"] is None  # only heard in test, and a class all the same


def test_soundscapes_have_a_length_a_site_and_a_date_and_focal_recordings_stay_closed(root):
    (root / "train/audio/greant1/XC103.wav").write_text("never opened")
    dataset = open_dataset("birdclef-2020", root)
    media = dict(dataset.media.select("media_id", "seconds").iter_rows())
    assert media["XC103"] is None and media["PER54"] == 21.0 and media["SSW_001_20170225_010000Z"] == 20.0
    scapes = dataset.observations.filter(pl.col("label").is_null())
    assert scapes["site"].to_list() == ["PER", "SSW"]
    assert scapes["date"].to_list() == [datetime.date(2019, 1, 16), datetime.date(2017, 2, 25)]


def test_birds_that_nobody_could_name_are_kept_apart_and_count_as_silence(root):
    dataset = open_dataset("birdclef-2020", root)
    assert dataset.events["label"].null_count() == 1
    assert any("????" in remark for remark in dataset.remarks)
    truth = open_benchmark(BENCHMARKS["birdclef-2020"], dataset).truth["test"]
    assert sorted(truth.rows.iter_rows()) == [
        ("SSW_001_20170225_010000Z/0", "cangoo"),
        ("SSW_001_20170225_010000Z/15", "blujay"),
        ("SSW_001_20170225_010000Z/5", "cangoo"),
    ]
    assert len(truth.items) == 4


def test_segments_carry_every_label_and_the_longest_comes_first(root):
    opened = open_benchmark(BENCHMARKS["birdclef-2020"], open_dataset("birdclef-2020", root))
    val = opened.view.val
    assert val.item_ids == tuple(f"PER54/{start}" for start in (0, 5, 10, 15, 20))
    assert val.items["end_s"].to_list() == [5.0, 10.0, 15.0, 20.0, 25.0]
    names = opened.view.labels.names
    assert [names[code] if code >= 0 else None for code in val.truth] == ["greant1", "greant1", "greant1", None, None]
    pairs = {(int(row), names[code]) for row, code in zip(val.targets.row, val.targets.code, strict=True)}
    assert pairs == {(0, "greant1"), (0, "blujay"), (1, "greant1"), (2, "greant1")}
    holds = val.targets.holds(len(names))
    assert holds.sum() == 4
    heard = val.of_known_labels()
    assert heard.item_ids == val.item_ids[:3] and heard.targets.holds(len(names)).tolist() == holds[:3].tolist()


def test_focal_recordings_are_whole_items_with_weak_labels(root):
    view = open_benchmark(BENCHMARKS["birdclef-2020"], open_dataset("birdclef-2020", root)).view
    train = view.train
    assert train.items["start_s"].null_count() == len(train) == 3
    behind = train.targets.code[~train.targets.foreground]
    assert len(behind) == 1 and train.targets.holds(len(view.labels))[0].sum() == 2
    assert train.media.medium == RECORDING and train.media.read("XC103")[:4] == b"RIFF"
    assert "label" not in train.items.columns and "annotated" not in train.items.columns


def test_the_validation_soundscapes_may_never_be_trained_on(root, tmp_path):
    opened = open_benchmark(BENCHMARKS["birdclef-2020"], open_dataset("birdclef-2020", root))
    assert not opened.val_is_drawn
    assert fieldmark.fit("birdclef-2020", root, "frequent", tmp_path / "run").run.trained_on == ["train"]
    shutil.copy(root / "val/PER54_20190116.wav", root / "train/audio/greant1/PER54_20190116.wav")
    with pytest.raises(InputError, match=r"greant1/PER54_20190116.wav: found the soundscape .* focal recordings only"):
        open_dataset("birdclef-2020", root)


@pytest.mark.parametrize("step", ["site-prior", "season-prior", "class-thresholds"])
def test_a_step_that_learns_labels_from_the_validation_soundscapes_is_refused(root, tmp_path, step):
    with pytest.raises(MisuseError, match=f"step '{step}' learns from val; the task allows train"):
        fieldmark.fit("birdclef-2020", root, "frequent", tmp_path / "run", steps=["presence", step])


def test_a_run_says_which_steps_were_tuned_on_the_validation_soundscapes(root, tmp_path):
    steps = ["presence", "neighbors"]
    run = fieldmark.fit("birdclef-2020", root, "frequent", tmp_path / "run", steps=steps).run
    assert run.trained_on == ["train"]
    assert run.step_lessons == [{"step": one, "learned_from": [], "tuned_on": ["val"]} for one in steps]
    assert fieldmark.score("birdclef-2020", tmp_path / "run", data=root).provenance["step_lessons"] == run.step_lessons


def test_a_run_may_list_any_number_of_species_in_a_segment(tmp_path):
    species = [f"bird{number}" for number in range(12)]
    run = tmp_path / "run.csv"
    run.write_text("".join(f"r1;00:00:00-00:00:05;{one};{0.9 - n / 100}\n" for n, one in enumerate(species)))
    tables = {
        "truth": {"MediaId": ["r1"], "ClassId": ["bird11"], "interval": ["00:00:00-00:00:05"]},
        "classes": {"label": species},
        "media": {"MediaId": ["r1", "r2"], "seconds": ["10", "10"]},
    }
    card = fieldmark.score("birdclef-2020", run, **tables)
    assert card.metrics["cmap"].value == 1.0 and card.metrics["rmap"].value == pytest.approx(1 / 12)


def test_without_validation_soundscapes_nothing_is_drawn_in_their_place(root):
    shutil.rmtree(root / "val")
    with pytest.raises(InputError, match=r"no items for val.*validation soundscapes"):
        open_benchmark(BENCHMARKS["birdclef-2020"], open_dataset("birdclef-2020", root))


def test_validation_soundscapes_without_annotations_are_refused(root):
    (root / "val/ground_truth.csv").unlink()
    with pytest.raises(InputError, match=r"validation soundscapes without annotations, expected a table"):
        open_benchmark(BENCHMARKS["birdclef-2020"], open_dataset("birdclef-2020", root))


def test_the_perfect_run_of_the_organizers_serves_where_there_is_no_ground_truth(root):
    (root / "val").rename(root / "BirdCLEF2020_Validation")
    folder = root / "BirdCLEF2020_Validation"
    before = open_benchmark(BENCHMARKS["birdclef-2020"], open_dataset("birdclef-2020", root)).truth["val"]
    (folder / "scripts").mkdir()
    run = (
        "PER54;00:00:00-00:00:05;blujay;1.0\nPER54;00:00:00-00:00:05;greant1;1.0\nPER54;00:00:05-00:00:10;greant1;1.0\n"
    )
    (folder / "scripts" / "perfect_run.csv").write_text(run + "PER54;00:00:10-00:00:15;greant1;1.0\n")
    (folder / "scripts" / "evaluate.py").write_text("print()")
    both = open_benchmark(BENCHMARKS["birdclef-2020"], open_dataset("birdclef-2020", root)).truth["val"]
    assert sorted(both.rows.rows()) == sorted(before.rows.rows())
    (folder / "ground_truth.csv").unlink()
    after = open_benchmark(BENCHMARKS["birdclef-2020"], open_dataset("birdclef-2020", root)).truth["val"]
    assert sorted(after.rows.rows()) == sorted(before.rows.rows()) and after.items == before.items


def test_hidden_labels_of_test_leave_a_test_without_truth(root):
    (root / "test/annotations.csv").unlink()
    opened = open_benchmark(BENCHMARKS["birdclef-2020"], open_dataset("birdclef-2020", root))
    assert set(opened.truth) == {"val"} and len(opened.view.test) == 4


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("val/ground_truth.csv", "PER54;blujay\n", r"line 1: found 2 fields, expected MediaId;ClassId"),
        ("val/ground_truth.csv", "PER54;blujay;0:05-0:10\n", r"line 1: found the interval '0:05-0:10'"),
        ("val/ground_truth.csv", "PER54;blujay;00:10:00-00:10:05\n", r"found an event at 600 s of 'PER54', which"),
        ("test/annotations.csv", "Filename,Start Time (s)\na,1\n", r"line 1: found the columns .* 'End Time \(s\)'"),
        ("val/PER54_20190116.wav", "a text", r"PER54_20190116.wav: found 6 bytes that are not a recording"),
        ("val/PER54_20190116.wav", "", r"PER54_20190116.wav: found an empty file"),
        ("val/metadata/PER54_20190116.json", "{", r"PER54_20190116.json: found broken JSON"),
        ("val/metadata/PER54_20190116.json", "[]", r"PER54_20190116.json: found a JSON list"),
    ],
)
def test_bad_input_gets_a_sentence(root, name, content, sentence):
    (root / name).write_text(content)
    with pytest.raises(InputError, match=sentence):
        open_dataset("birdclef-2020", root)


def test_a_release_and_a_truth_given_by_hand_read_the_same_lines_alike():
    data = b"\xef\xbb\xbfA;jay;00:00:03-00:00:10\n\nA;????;00:00:00-00:00:05;Per\xfa\nA;;00:00:01-00:00:02\n"
    lines = ground_truth_lines(data, "truth.csv")
    assert lines["line"].to_list() == [1, 3, 4]  # the country, which nobody reads, may be in any encoding
    assert read_events(data, "truth.csv")["label"].to_list() == ["jay", None, None]
    for wrong in (b"h\xe9ron;00:00:00-00:00:05", b"jay;00:00:05-00:00:00", b"jay"):
        for reader in (read_events, ground_truth_lines):
            with pytest.raises(InputError, match=r"truth.csv, line 2: found"):
                reader(b"A;jay;00:00:03-00:00:10\nA;" + wrong, "truth.csv")


def test_recordings_with_one_name_in_two_species_stay_apart(root):
    write_recording(root / "train/audio/amerob/XC103.wav", 0.2)
    ids = open_dataset("birdclef-2020", root).media["media_id"]
    assert ids.n_unique() == len(ids) and sum(name.endswith("-XC103") for name in ids) == 2


def test_annotations_of_2019_may_list_several_codes_in_a_field():
    events = read_events(b"fid,start_time_s,end_time_s,ebird_codes\na.wav,1,2,blujay amerob\n", "a.csv")
    assert events["label"].to_list() == ["blujay", "amerob"]


def test_a_selection_table_of_raven_has_one_row_a_selection_and_its_frequencies_in_order():
    rows = read_selections(HERE / "by_hand.selections.txt")
    assert rows.select("start_s", "end_s", "low_hz", "high_hz", "label").rows() == [
        (1.25, 2.5, 1800.0, 4200.0, "AMRO"),
        (3.0, 3.4, 2100.0, 6200.0, "BLJA"),
    ]


def test_a_written_selection_table_is_read_back(tmp_path):
    rows = pl.DataFrame(
        {"start_s": [0.0, 3.5], "end_s": [3.0, 6.5], "label": ["blujay", "amerob"], "score": [0.9, 0.25]}
    )
    write_selections(tmp_path / "a.txt", rows)
    assert (tmp_path / "a.txt").read_text().startswith("Selection\tView\tChannel\tBegin File\tBegin Time (s)\t")
    assert read_selections(tmp_path / "a.txt").select(rows.columns).rows() == rows.rows()
    with pytest.raises(InputError, match="found the columns a"):
        (tmp_path / "b.txt").write_text("a\tb\n1\t2\n")
        read_selections(tmp_path / "b.txt")
