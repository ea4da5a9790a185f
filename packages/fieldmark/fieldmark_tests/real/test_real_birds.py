"""Real metadata, annotations and clips of birds, where they are given."""

from __future__ import annotations

import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.releases import open_dataset
from fieldmark.releases.birdclef_metadata import read_metadata
from fieldmark.releases.soundfiles import read_header
from fieldmark.tables.annotations import read_events
from fieldmark.tables.media import RECORDING
from fieldmark.tables.raven import read_selections
from fieldmark.views.open_benchmark import open_benchmark


def test_the_metadata_of_2019_are_read(real_data):
    folder = real_data / "bird_metadata" / "birdclef2019_metadata"
    for path in folder.glob("*.json"):
        about = read_metadata(path.read_bytes(), path)
        assert about["media_id"] and about["date"] and about["time"] and about["country"]
        assert -90 <= about["lat"] <= 90 and about["elevation_m"] > 0
    swift = read_metadata((folder / "S1067SSW04_048K_S02_SWIFT29_20170325_230016Z.json").read_bytes(), "swift")
    assert (swift["media_id"], swift["time"], swift["lon"]) == ("SSW0001", "23:00", -76.4582)


@pytest.mark.parametrize(
    ("name", "rows", "unknown"),
    [
        ("perch_testdata_peru.csv", 5, 1),
        ("perch_testdata_high_sierras.csv", 6, 0),
        ("perch_testdata_ssw.csv", 4, 0),
        ("perch_testdata_powdermill.csv", 5, 0),
        ("birdclef2019_metadata/birdclef2019_colombia.csv", 7, 0),
    ],
)
def test_published_annotations_are_read(real_data, name, rows, unknown):
    path = real_data / "bird_metadata" / name
    events = read_events(path.read_bytes(), path)
    assert len(events) == rows and events["label"].null_count() == unknown
    assert (events["end_s"] > events["start_s"]).all()
    assert ((events["high_hz"] >= events["low_hz"]) | events["high_hz"].is_null()).all()


def test_a_selection_table_of_birdnet_is_read(real_data):
    rows = read_selections(real_data / "bird_recordings" / "BirdNET_Soundscape_1.selections.txt")
    assert len(rows) == 38 and rows["label"][0] == "norcar" and rows["score"][0] == pytest.approx(0.9341163)


def test_the_headers_of_real_recordings_are_read(real_data):
    for path in (real_data / "bird_recordings").glob("*.wav"):
        with path.open("rb") as file:
            header = read_header(file, path)
        assert 2 < header.seconds < 60 and header.sample_rate_hz >= 22_050


def test_real_clips_split_by_their_source(real_data, tmp_path):
    root = tmp_path / "chipnotes"
    root.mkdir()
    rows = []
    for folder in sorted((real_data / "birds_chipnotes").iterdir()):
        if folder.is_dir():
            (root / folder.name).symlink_to(folder)
            # The second word of a file name is the number of its source, of which there may be several clips.
            rows += [f"{folder.name}/{clip.name},{clip.stem.split('_')[1]}" for clip in folder.glob("*.flac")]
    (root / "observations.csv").write_text("file,observation\n" + "\n".join(rows) + "\n")
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", root))
    assert opened.dataset.medium == RECORDING and len(opened.dataset.taxa) == 20
    parts = {part: set(table["observation_id"]) for part, table in opened.items.items() if len(table)}
    assert not parts["train"] & parts["test"] and not parts["train"] & parts["val"]
    assert opened.view.train.media.read(opened.view.train.items["media_ids"][0][0])[:4] == b"fLaC"
