"""Recordings in bulk: several at once, folders with photos and sounds together, and every format on every path."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import fieldmark
from fieldmark.audio.samples import Recording, read_samples
from fieldmark.features.embedders import load_embedder
from fieldmark.features.settings import FeatureSettings
from fieldmark.identification.pages import answer_page
from fieldmark.releases.soundfiles import read_header
from fieldmark.reports.pages.sounds import read_stretch
from fieldmark.tables.media import RECORDING
from fieldmark_tests.recordings import FORMATS, encode

RATE_HZ, SECONDS = 24_000, 4


def song() -> np.ndarray:
    moments = np.arange(SECONDS * RATE_HZ) / RATE_HZ
    return (0.3 * np.sin(2 * np.pi * (3000 + 800 * np.sin(20 * moments)) * moments)).astype(np.float32)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("sounds")
    for ending in FORMATS:
        (folder / f"voice.{ending}").write_bytes(encode(song(), RATE_HZ, ending))
    return {ending: folder / f"voice.{ending}" for ending in FORMATS}


def test_every_ending_of_a_recording_is_tried():
    assert {f".{ending}" for ending in FORMATS} == set(RECORDING.suffixes)


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_is_heard_drawn_measured_and_made_into_features(recordings, ending):
    path = recordings[ending]
    answer = fieldmark.identify(path)
    assert answer.seconds == pytest.approx(SECONDS, abs=0.2)
    page = answer_page(answer)
    assert "data:image/jpeg;base64," in page and "data:audio/mpeg;base64," in page
    with path.open("rb") as file:
        assert read_stretch(file, 1.0, 2.0).seconds == pytest.approx(2.0)
    with path.open("rb") as file:
        # A bare stream of AAC tells no length: its header gives an estimate.
        assert read_header(file, path).seconds == pytest.approx(SECONDS, abs=0.6 if ending == "aac" else 0.2)
    with Recording(path) as recording:
        assert recording.rate_hz in (RATE_HZ, 48_000)
    samples = read_samples(path, 32_000)
    assert len(samples) / 32_000 == pytest.approx(SECONDS, abs=0.2)
    network = load_embedder(FeatureSettings("logmel"))
    window = read_samples(path, network.rate_hz)[: round(network.rate_hz * 1.0)]
    assert np.isfinite(window).all() and np.abs(window).max() > 0.1


def test_several_recordings_are_answered_one_by_one(run_main, recordings):
    code, out, _ = run_main("identify", recordings["wav"], recordings["m4a"])
    assert code == 0 and out.index("voice.wav") < out.index("voice.m4a")
    code, out, _ = run_main("identify", recordings["wav"], recordings["mp3"], "--json")
    assert code == 0 and [Path(one["file"]).name for one in json.loads(out)] == ["voice.wav", "voice.mp3"]


def test_a_recording_that_cannot_be_read_does_not_stop_the_others(run_main, recordings, tmp_path):
    (tmp_path / "broken.wav").write_bytes(b"RIFF")
    code, out, err = run_main("identify", tmp_path / "broken.wav", recordings["wav"])
    assert code == 1 and "voice.wav" in out and "broken.wav: found 4 bytes that are not a recording" in err


def test_what_is_for_one_recording_is_refused_for_several_with_what_to_do(run_main, recordings, tmp_path):
    code, _, err = run_main("identify", recordings["wav"], recordings["mp3"], "--html", tmp_path / "page.html")
    assert code == 2 and "fieldmark identify FOLDER --out ANSWERS" in err


def test_a_folder_of_photos_and_sounds_is_answered_by_both_models(run_main, recordings, tmp_path):
    (tmp_path / "walk").mkdir()
    Image.new("RGB", (64, 48), (90, 120, 40)).save(tmp_path / "walk" / "leaf.jpg")
    (tmp_path / "walk" / "dawn.wav").write_bytes(recordings["wav"].read_bytes())
    code, out, _ = run_main("identify", tmp_path / "walk", "--out", tmp_path / "answers", "--json")
    told = json.loads(out)
    assert code == 0 and list(told) == ["photos", "recordings"]
    assert [one["observations"] for one in told.values()] == [1, 1]
    for part, by in (("photos", "imagenet"), ("recordings", "birdnet")):
        assert json.loads((tmp_path / "answers" / part / "answers.json").read_text())["model"] == by
