from __future__ import annotations

import shutil

import numpy as np
import pytest
import soundfile

from fieldmark.releases.checks import CHECKS
from fieldmark.storage.release import Release

CHECK = CHECKS["birdclef-2020"]


@pytest.fixture
def release(bird_world, tmp_path):
    shutil.copytree(bird_world, tmp_path / "birds")
    return tmp_path / "birds"


def found(root, **options):
    report = CHECK(Release(root), **options)
    return {problem.what: problem for problem in report.problems}


def test_a_sound_world_has_no_problems_and_counts_what_it_says(bird_world):
    report = CHECK(Release(bird_world), media=True, near_duplicates=True)
    assert report.sound and report.problems == ()
    train, val, test = (part.found for part in report.counts)
    mark = Release(bird_world).world["counts"]
    assert (train.recordings, train.classes) == (mark["train"]["recordings"], mark["train"]["classes"])
    assert (val.sites, test.sites) == (2, 4) and test.classes == mark["test"]["classes"]
    assert report.counts[2].published["LifeCLEF 2020, section 3"].recordings == 153
    assert report.counts[0].published["LifeCLEF 2020, section 3: more than"].classes == 960


def test_a_soundscape_under_another_name_in_train_is_found_by_its_bytes(release):
    soundscape = next((release / "val").glob("*.flac"))
    species = next((release / "train/audio").iterdir())
    shutil.copy(soundscape, species / "XC1.flac")
    problem = found(release)["the same recording is in two parts"]
    assert problem.severity == "error" and "XC1.flac" in problem.places[0]


def test_the_same_recording_in_two_species_is_found_where_asked(release):
    first, second, *_ = sorted((release / "train/audio").iterdir())
    recording = next(first.iterdir())
    shutil.copy(recording, second / "XC1.ogg")
    what = "the same recording is in two species folders"
    assert what not in found(release) and what in found(release, near_duplicates=True)


def test_what_is_wrong_with_events_is_told_with_the_place(release):
    truth = release / "test/ground_truth.csv"
    name = truth.read_text().partition(";")[0]
    lines = [
        "XXX99;abc0;00:00:00-00:00:05",
        f"{name};abc0;00:10:00-00:10:05",
        f"{name};????;00:00:00-00:00:05",
        f"{name};newone;00:00:00-00:00:05",
    ]
    truth.write_text("\n".join(lines) + "\n")
    problems = found(release)
    assert problems["an event is of a recording that is not here"].places == (
        "test/ground_truth.csv, event 1: abc0 at 0 s of XXX99",
    )
    assert problems["an event begins after the end of its recording"].severity == "error"
    assert problems["an event is of a bird without a name (????)"].severity == "note"
    assert problems["a class is heard that train does not have"].times == 2
    truth.write_text("nonsense\n")
    assert "line 1: 1 field" in found(release)["a table of events cannot be read"].places[0]


def test_files_that_are_broken_missing_or_of_another_make_are_told(release):
    (release / "WORLD.json").unlink()
    broken, short, *_ = sorted((release / "test").glob("*.flac"))
    broken.write_text("not a recording")
    soundfile.write(short, np.zeros(16_000, dtype=np.float32), 16_000)
    folder = next((release / "train/audio").iterdir())
    recording = next(folder.iterdir())
    recording.write_text("not one either")
    (release / "train/metadata" / folder.name / "XC1.json").write_text("{}")
    (release / "val/ground_truth.csv").unlink()
    problems = found(release, media=True)
    assert "15 bytes that are not a recording" in problems["a soundscape cannot be read"].places[0]
    assert recording.name in problems["a recording cannot be read"].places[0]
    assert problems["metadata without a recording"].severity == "warning"
    assert problems["a soundscape is not ten minutes long"].times == 11
    assert problems["a soundscape is not sampled at 32 kHz in mono"].times == 1
    assert problems["the validation soundscapes have no annotations"].severity == "error"
