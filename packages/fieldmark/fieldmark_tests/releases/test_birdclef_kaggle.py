"""BirdCLEF as Kaggle packs it: 2021 with its rows, 2026 with its times, and years without annotated soundscapes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import InputError
from fieldmark.releases import open_dataset
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release

soundfile = pytest.importorskip("soundfile")

RATE_HZ = 16_000
PITCHES = {"amerob": 600, "houspa": 2400}


def sing(path: Path, pitches: list[float], *, seconds: int = 5) -> None:
    """A recording with one tone in each five seconds, 0 for silence."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(path.name))
    times = np.arange(seconds * RATE_HZ) / RATE_HZ
    parts = [0.3 * (pitch > 0) * np.sin(2 * np.pi * pitch * times) for pitch in pitches]
    samples = np.concatenate(parts) + 0.01 * rng.standard_normal(len(parts) * len(times))
    soundfile.write(path, samples.astype(np.float32), RATE_HZ)


def write_focal(root: Path, *, folder: str, table: str, with_folder: bool) -> None:
    lines = ["primary_label,secondary_labels,latitude,longitude,filename"]
    for label, pitch in PITCHES.items():
        for number in range(6):
            name = f"XC{pitch + number}.ogg"
            sing(root / folder / label / name, [pitch + 20 * number])
            listed = "\"['houspa']\"" if number == 0 and label == "amerob" else "[]"
            lines.append(f"{label},{listed},10.5,-70.25,{f'{label}/' if with_folder else ''}{name}")
    (root / table).write_text("\n".join(lines) + "\n")


def opened_release(name: str, root: Path) -> Opened:
    benchmark = fieldmark.benchmark(name)
    return open_benchmark(benchmark, open_release(benchmark, root))


@pytest.fixture(scope="module")
def release_2021(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("birdclef-2021")
    write_focal(root, folder="train_short_audio", table="train_metadata.csv", with_folder=False)
    sing(root / "train_soundscapes" / "7019_COR_20190904.ogg", [600, 0, 2400])
    sing(root / "train_soundscapes" / "7020_SSW_20190905.ogg", [0, 2400, 600])
    rows = ["row_id,site,audio_id,seconds,birds"]
    for audio, site, birds in ((7019, "COR", "amerob nocall houspa"), (7020, "SSW", "nocall houspa amerob")):
        for end, bird in zip((5, 10, 15), birds.split(), strict=True):
            rows.append(f"{audio}_{site}_{end},{site},{audio},{end},{bird}")
    (root / "train_soundscape_labels.csv").write_text("\n".join(rows) + "\n")
    return root


@pytest.mark.parametrize(("lat", "place"), [("91", None), ("", (None, -70.25)), ("Pampas", (None, -70.25))])
def test_a_place_off_the_globe_is_refused_and_one_without_numbers_is_none(release_2021, tmp_path, lat, place):
    shutil.copytree(release_2021, tmp_path / "copy")
    table = tmp_path / "copy/train_metadata.csv"
    table.write_text(table.read_text().replace(",10.5,", f",{lat},", 1))
    if place is None:
        with pytest.raises(InputError, match=r"train_metadata\.csv, line 2: found '91' as latitude, expected degrees"):
            open_dataset("birdclef-2021", tmp_path / "copy")
    else:
        assert open_dataset("birdclef-2021", tmp_path / "copy").observations.select("lat", "lon").row(0) == place


def test_rows_of_2021_are_segments_with_their_birds_and_silence(release_2021):
    opened = opened_release("birdclef-2021", release_2021)
    truth = opened.truth["val"]
    assert truth.items[:3] == ("7019_COR/0", "7019_COR/5", "7019_COR/10")
    said = dict(truth.rows.iter_rows())
    assert [said[item] for item in truth.items] == ["amerob", "nocall", "houspa", "nocall", "houspa", "amerob"]
    dataset = fieldmark.dataset("birdclef-2021", release_2021)
    assert dataset.observations.filter(label="amerob")["background"].to_list()[0] == ["houspa"]
    assert dataset.observations["lat"][0] == 10.5


def test_a_model_answers_with_lists_of_birds(release_2021, tmp_path):
    result = fieldmark.fit("birdclef-2021", release_2021, "linear", tmp_path / "run")
    assert result.scorecard.split == "val" and result.scorecard.items == 6
    lines = (tmp_path / "run" / "run.csv").read_text().splitlines()
    assert lines[0] == "row_id,birds" and lines[1].startswith("7019_COR_5,")


def test_times_of_2026_are_events_and_classes_without_recordings_count(tmp_path):
    write_focal(tmp_path, folder="train_audio", table="train.csv", with_folder=True)
    (tmp_path / "taxonomy.csv").write_text(
        "primary_label,scientific_name\namerob,Turdus migratorius\n47158son16,Insecta\n"
    )
    sing(tmp_path / "train_soundscapes" / "BC2026_Train_0001.ogg", [600, 2400])
    (tmp_path / "train_soundscapes_labels.csv").write_text(
        "filename,start,end,primary_label\nBC2026_Train_0001.ogg,00:00:05,00:00:10,houspa; 47158son16\n"
    )
    dataset = fieldmark.dataset("birdclef-2026", tmp_path)
    assert dataset.taxa["label"].to_list() == ["47158son16", "amerob", "houspa"]
    assert dataset.taxa["species"].to_list()[:2] == ["Insecta", "Turdus migratorius"]
    assert sorted(dataset.events.select("label", "start_s").iter_rows()) == [("47158son16", 5.0), ("houspa", 5.0)]


def test_blocks_that_a_table_of_2026_lists_again_count_once_and_are_told(tmp_path):
    write_focal(tmp_path, folder="train_audio", table="train.csv", with_folder=True)
    sing(tmp_path / "train_soundscapes" / "BC2026_Train_0001.ogg", [600, 2400])
    block = "BC2026_Train_0001.ogg,00:00:05,00:00:10"
    (tmp_path / "train_soundscapes_labels.csv").write_text(
        f"filename,start,end,primary_label\n{block},amerob;houspa\n{block},houspa;amerob\n{block},amerob;47158\n"
    )
    dataset = fieldmark.dataset("birdclef-2026", tmp_path)
    assert sorted(dataset.events["label"]) == ["47158", "amerob", "houspa"]
    repeated, others = dataset.remarks
    assert repeated.startswith("1 of 3 rows of train_soundscapes_labels.csv repeat an earlier row and count once")
    assert "line 3 after line 2" in repeated and "other labels, which count as well (the first: line 4" in others


def test_without_annotated_soundscapes_val_is_drawn_from_focal_recordings(tmp_path):
    write_focal(tmp_path, folder="train_audio", table="train_metadata.csv", with_folder=True)
    sing(tmp_path / "train_soundscapes" / "soundscape_1.ogg", [600])
    opened = opened_release("birdclef-2024", tmp_path)
    assert len(opened.truth["val"].items) == 2
    remarks = fieldmark.dataset("birdclef-2024", tmp_path).remarks
    assert remarks == ("1 soundscapes without annotations are left out.",)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[]", "amerob", "line 3: found 'amerob', expected a list"),
        ("\nhouspa,", "\n,", "line 8: found no primary_label"),
    ],
)
def test_a_table_at_fault_is_refused_with_its_line(old, new, sentence, tmp_path):
    write_focal(tmp_path, folder="train_audio", table="train.csv", with_folder=True)
    table = tmp_path / "train.csv"
    table.write_text(table.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=sentence):
        fieldmark.dataset("birdclef-2025", tmp_path)


def test_a_world_of_2021_is_scored_on_rows_and_checked(tmp_path, run_main):
    code, _, _ = run_main("world", "birdclef-2021", tmp_path / "world")
    assert code == 0
    opened = opened_release("birdclef-2021", tmp_path / "world")
    assert {part: len(opened.truth[part].items) for part in ("val", "test")} == {"val": 32, "test": 64}
    assert "nocall" in set(opened.truth["val"].rows["label"])
    code, printed, _ = run_main("check", "birdclef-2021", tmp_path / "world")
    assert code == 0 and "no files missing" in printed


def test_a_recording_that_is_missing_is_named_by_the_check(tmp_path, run_main):
    write_focal(tmp_path, folder="train_audio", table="train.csv", with_folder=True)
    (tmp_path / "train_audio" / "amerob" / "XC600.ogg").unlink()
    code, printed, _ = run_main("check", "birdclef-2025", tmp_path)
    assert code == 1 and "train_audio/amerob/XC600.ogg" in printed and "206" in printed
