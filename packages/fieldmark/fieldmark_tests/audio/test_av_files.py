"""Recordings of phones: AAC in M4A."""

from __future__ import annotations

import io

import numpy as np
import pytest

from fieldmark.audio import av_files
from fieldmark.audio.samples import Recording, SoundError, read_samples
from fieldmark.tables.media import RECORDING
from fieldmark_tests.recordings import encode_aac

RATE = 32_000


def tone(seconds: float = 2.0, hertz: float = 1000.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


@pytest.fixture(scope="module")
def m4a() -> bytes:
    pytest.importorskip("av")
    return encode_aac(tone(), RATE)


def test_a_recording_in_m4a_is_read_as_it_sounds(m4a, tmp_path):
    assert RECORDING.owns("voice.M4A")
    path = tmp_path / "voice.m4a"
    path.write_bytes(m4a)
    for source in (m4a, path, io.BytesIO(m4a)):
        samples = read_samples(source, RATE)
        assert len(samples) == pytest.approx(2 * RATE, abs=2048)
        strongest = np.abs(np.fft.rfft(samples)).argmax() * RATE / len(samples)
        assert strongest == pytest.approx(1000, abs=5) and np.abs(samples[4000:-4000]).max() == pytest.approx(
            0.5, abs=0.1
        )


def test_blocks_hold_the_same_samples_and_a_recording_can_be_read_again(m4a):
    with Recording(m4a) as recording:
        assert recording.rate_hz == RATE and recording.seconds == pytest.approx(2, abs=0.1)
        whole = np.concatenate(list(recording.blocks(RATE)))
        again = np.concatenate(list(recording.blocks(RATE, block_s=0.3)))
        assert np.array_equal(whole, again) and recording.remark is None


def test_a_broken_file_and_a_missing_package_are_refused_in_a_sentence(m4a, monkeypatch):
    with pytest.raises(SoundError, match="no recording"):
        Recording(m4a[:40] + b"\0" * 400)
    monkeypatch.setattr(av_files, "find_spec", lambda name: None)
    with pytest.raises(SoundError, match=r"in AAC, which can be read after pip install 'fieldmark\[media\]'"):
        Recording(m4a)


def test_a_stretch_from_the_middle_holds_the_samples_of_the_whole(m4a):
    whole = read_samples(m4a, RATE)
    with Recording(m4a) as recording:
        for start_s, seconds in ((0.5, 0.25), (1.3, 0.5), (0.0, 0.1)):
            first = round(start_s * RATE)
            assert np.array_equal(recording.stretch(start_s, seconds), whole[first : first + round(seconds * RATE)])
