from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.releases import open_dataset
from fieldmark.tables.media import RECORDING
from fieldmark.views.open_benchmark import open_benchmark


def test_parts_that_are_folders_are_the_parts(make_release):
    dataset = open_dataset("folder", make_release())
    parts = dataset.media["parts"].list.first()
    assert parts.value_counts().sort("parts").rows() == [("test", 6), ("train", 12), ("val", 6)]
    assert dataset.taxa["genus"].to_list() == ["Alba", "Alba", "Rubra"]
    assert not dataset.simulated


def test_flat_classes_have_no_parts_until_they_are_drawn(make_release):
    dataset = open_dataset("folder", make_release(flat=True))
    assert (dataset.media["parts"].list.len() == 0).all()
    opened = open_benchmark(BENCHMARKS["folder"], dataset)
    assert opened.val_is_drawn and all(len(opened.items[part]) for part in ("train", "val", "test"))


def test_the_id_of_a_photo_does_not_contain_its_class(make_release):
    dataset = open_dataset("folder", make_release())
    assert not dataset.media["media_id"].str.contains("Alba|Rubra").any()


def test_photos_that_share_a_file_name_get_ids_that_tell_them_apart(make_release):
    root = make_release()
    for number in range(4):
        shutil.copy(root / f"train/Alba alba/0-{number}.jpg", root / f"train/Rubra vera/0-{number}.jpg")
    ids = open_dataset("folder", root).media["media_id"]
    assert ids.is_unique().all() and (ids == "1-0.jpg").any() and not (ids == "0-0.jpg").any()


def test_the_table_tells_observations_dates_places_and_more(make_release):
    root = make_release()
    (root / "observations.csv").write_text(
        "file,observation,date,latitude,longitude,habitat\n"
        "train/Alba alba/0-0.jpg,o1,2021-09-30,55.5,9.5,bog\n"
        "train/Alba alba/0-1.jpg,o1,2021-09-30,55.5,9.5,bog\n"
    )
    dataset = open_dataset("folder", root)
    assert len(dataset.observations) == 24 - 1
    row = dataset.observations.filter(dataset.observations["observation_id"] == "o1").to_dicts()[0]
    assert (str(row["date"]), row["lat"], row["habitat"], row["label"]) == ("2021-09-30", 55.5, "bog", "Alba alba")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "place,observation\nx,y\n",
            r"observations.csv, line 1: found the columns place, observation, expected",
        ),
        ("file\ntrain/Alba alba/none.jpg\n", r"line 2: found 'train/Alba alba/none.jpg', which is not there"),
        (
            "file,date\ntrain/Alba alba/0-0.jpg,autumn\n",
            r"line 2: found 'autumn' as date, expected a date",
        ),
        (
            "file,latitude,longitude\ntrain/Alba alba/0-1.jpg,,\ntrain/Alba alba/0-0.jpg,55,190\n",
            r"line 3: found '55, 190' as place \(coordinates are out of range\), expected degrees",
        ),
        ("file\ntrain/Alba alba/0-0.jpg\ntrain/Alba alba/0-0.jpg\n", r"line 3: found .* again"),
        (
            "file,observation\ntrain/Alba alba/0-0.jpg,o\nval/Alba alba/0-5.jpg,o\n",
            r"observation 'o' with photos in 2 parts",
        ),
        (
            "file,observation\ntrain/Alba alba/0-0.jpg,o\ntrain/Rubra vera/2-0.jpg,o\n",
            r"observation 'o' with photos in 2 classes",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_the_line(make_release, table, message):
    root = make_release()
    (root / "observations.csv").write_text(table)
    with pytest.raises(InputError, match=message):
        open_dataset("folder", root)


def test_an_empty_part_is_refused(make_release):
    root = make_release()
    shutil.rmtree(root / "test")
    (root / "test" / "Alba alba").mkdir(parents=True)
    with pytest.raises(InputError, match=r"/test: found no photos, expected photos in test/<class>/"):
        open_dataset("folder", root)


def test_a_folder_without_photos_is_refused(tmp_path):
    with pytest.raises(InputError, match="found no photos"):
        open_dataset("folder", tmp_path)
    with pytest.raises(InputError, match="no such directory, expected the folder of a release"):
        open_dataset("folder", tmp_path / "absent")


def test_parts_without_train_are_refused(make_release):
    root = make_release()
    shutil.rmtree(root / "train")
    with pytest.raises(InputError, match="found val and test but no train"):
        open_dataset("folder", root)


def test_a_class_without_training_photos_counts_and_is_remarked(make_release):
    root = make_release()
    shutil.rmtree(root / "train" / "Rubra vera")
    dataset = open_dataset("folder", root)
    assert "Rubra vera" in open_benchmark(BENCHMARKS["folder"], dataset).view.labels.names
    assert any("no training photos" in remark for remark in dataset.remarks)


def test_the_digest_changes_with_the_release_and_only_then(make_release):
    root = make_release()
    before = open_dataset("folder", root).digest
    assert open_dataset("folder", root).digest == before
    (root / "train/Alba alba/0-0.jpg").rename(root / "train/Rubra vera/0-0.jpg")
    assert open_dataset("folder", root).digest != before


RATE_HZ = 16_000


TONES_HZ = {"low": 900, "middle": 2600, "high": 5200}


def write_tones(root: Path, *, per_class: int = 6) -> None:
    """Tones of three pitches in noise, two clips of each source."""
    rng = np.random.default_rng(0)
    rows = ["file,observation"]
    for label, pitch in TONES_HZ.items():
        (root / label).mkdir(parents=True)
        for number in range(per_class):
            time = np.arange(int(RATE_HZ * rng.uniform(0.6, 2.0))) / RATE_HZ
            tone = 0.2 * np.sin(2 * np.pi * pitch * time) + rng.normal(0, 0.02, len(time))
            suffix = ("wav", "flac", "ogg")[number % 3]
            soundfile.write(root / label / f"{label}-{number}.{suffix}", tone.astype(np.float32), RATE_HZ)
            rows.append(f"{label}/{label}-{number}.{suffix},{label}-{number // 2}")
    (root / "observations.csv").write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def tones(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("tones") / "sounds"
    write_tones(root)
    return root


def test_a_folder_of_recordings_has_one_item_per_recording(tones):
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", tones))
    assert opened.dataset.medium == opened.view.train.media.medium == RECORDING
    assert sum(len(table) for table in opened.items.values()) == 18
    assert opened.view.train.targets.shape == "codes"
    assert opened.view.train.items["start_s"].null_count() == len(opened.view.train)


def test_clips_of_one_source_never_lie_on_both_sides_of_a_split(tones):
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", tones), seed=3)
    sources = {part: set(table["observation_id"]) for part, table in opened.items.items()}
    assert not sources["train"] & sources["test"] and not sources["train"] & sources["val"]


def test_recordings_are_fitted_and_scored_like_photos_and_have_a_page(tones, tmp_path):
    result = fieldmark.fit("folder", tones, "centroid", tmp_path / "run")
    assert result.scorecard.metrics["top_1"].value == 1.0  # three pitches more than an octave apart
    again = fieldmark.score("folder", tmp_path / "run", data=tones)
    assert again.metrics == result.scorecard.metrics
    page = fieldmark.report([tmp_path / "run"], tmp_path / "page.html").read_text()
    assert 'id="look"' in page and "data:image/jpeg" in page and "test recordings" in page
    assert "photo" not in page.partition("</style>")[2]


def test_photos_and_recordings_in_one_folder_are_refused(tones, tmp_path, make_release):
    root = make_release(flat=True)
    (root / "Alba alba" / "song.wav").write_bytes((tones / "low" / "low-0.wav").read_bytes())
    with pytest.raises(
        InputError, match=r"found photos \(.*jpg\) and recordings \(.*song.wav\), expected one or the other"
    ):
        open_dataset("folder", root)


def test_a_part_may_be_sorted_by_domain_and_val_is_drawn_from_the_field(make_release):
    root = make_release(per_class=8)
    for label in ("Alba alba", "Alba nigra", "Rubra vera"):
        for domain, names in (("herbarium", ("0", "1")), ("photo", ("2", "3"))):
            (root / "train" / domain / label).mkdir(parents=True)
            for name in names:
                next((root / "train" / label).glob(f"?-{name}.jpg")).rename(
                    root / "train" / domain / label / f"{label[:4]}{name}.jpg"
                )
        shutil.rmtree(root / "train" / label)
    shutil.rmtree(root / "val")
    dataset = open_dataset("folder", root)
    assert dict(dataset.media["domain"].value_counts().iter_rows()) == {"herbarium": 6, "photo": 6, None: 6}
    opened = open_benchmark(BENCHMARKS["folder"], dataset)
    assert opened.items["val"]["domain"].unique().to_list() == ["photo"]
    assert len(opened.items["train"]) + len(opened.items["val"]) == 12


def test_the_table_may_tell_the_domain_and_one_plant_may_be_in_two(make_release):
    root = make_release()
    (root / "observations.csv").write_text(
        "file,observation,domain\ntrain/Alba alba/0-0.jpg,o1,herbarium\ntrain/Alba alba/0-1.jpg,o1,photo\n"
    )
    dataset = open_dataset("folder", root)
    told = dataset.media.filter(dataset.media["observation_id"] == "o1")
    assert told["domain"].to_list() == ["herbarium", "photo"]


def test_plants_and_species_tables_are_read_in_place_of_the_usual_ones(make_release):
    root = make_release()
    (root / "plants.csv").write_text("file,plant\ntrain/Alba alba/0-0.jpg,p\ntrain/Alba alba/0-1.jpg,p\n")
    (root / "species.csv").write_text("label,scientific_name\nAlba alba,Costus scaber Ruiz Pav.\n")
    dataset = open_dataset("folder", root)
    assert (dataset.media["observation_id"] == "p").sum() == 2
    assert dataset.taxa.row(0, named=True)["family"] == "Costaceae"
