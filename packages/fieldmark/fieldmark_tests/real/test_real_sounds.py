"""Promises about real recordings."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import fieldmark
from fieldmark.audio.samples import Recording, read_samples
from fieldmark.identification import Circumstances


def test_the_acadian_flycatcher_is_named_in_every_full_window(real_data):
    path = real_data / "bird_recordings" / "BirdCLEF-Baseline_Acadian_Flycatcher.wav"
    answer = fieldmark.identify(path, "birdnet")
    full = [start for start in np.arange(0, answer.seconds, 3) if start + 3 <= answer.seconds]
    best = {}
    for found in answer.windows:
        best.setdefault(found.start_s, found)
    assert len(full) == 4 and all(best[start].common_name == "Acadian Flycatcher" for start in full)
    longest = max(answer.detections, key=lambda found: found.end_s - found.start_s)
    assert longest.common_name == "Acadian Flycatcher" and longest.end_s - longest.start_s >= 12
    somewhere = fieldmark.identify(path, "birdnet", context=Circumstances(lat=52.5, lon=13.4))
    assert not any(found.common_name == "Acadian Flycatcher" for found in somewhere.windows)


@pytest.mark.parametrize("name", ["opensoundscape_birds_10s.wav", "opensoundscape_rugr_drum.wav"])
def test_real_recordings_are_whole_and_of_the_length_their_header_says(real_data, name):
    with Recording(real_data / "bird_recordings" / name) as recording:
        samples = sum(len(block) for block in recording.blocks(32_000))
        assert samples / 32_000 == pytest.approx(recording.seconds, abs=0.01) and recording.remark is None


def test_real_clips_fit_from_a_folder_split_by_source(real_data, tmp_path):
    root = tmp_path / "birds"
    rows = []
    for code in ("AMRO", "SOSP", "RBWO"):
        for path in sorted((real_data / "birds_chipnotes" / code).glob("*.flac")):
            place = root / code / path.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path.resolve())
            rows.append((f"{code}/{path.name}", path.stem.split("_")[1]))
            assert np.isfinite(read_samples(path, 48_000)).all()
    with (root / "observations.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("file", "observation"), *rows])
    result = fieldmark.fit("folder", root, "linear", tmp_path / "run", settings={"backbone": "birdnet"})
    assert "CC BY-NC-SA" in " ".join(result.run.remarks) and not result.run.simulated
    assert result.scorecard.metrics["top_1"].value > 1 / 3
