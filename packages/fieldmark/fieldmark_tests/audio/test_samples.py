"""Recordings as they come: of any rate, cut, silent, short, or no recordings at all."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soxr

from fieldmark.audio.samples import Recording, SoundError, read_samples
from fieldmark_tests.audio.sounds import encoded, song, tone


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3"])
def test_every_format_is_read_at_the_rate_that_is_asked_for(kind):
    samples = read_samples(encoded(tone(2, 44_100), 44_100, kind), 32_000)
    assert len(samples) == pytest.approx(64_000, abs=2400)  # lossy codecs pad
    spectrum = np.abs(np.fft.rfft(samples[8000:40_000]))
    assert spectrum.argmax() * 32_000 / 32_000 == pytest.approx(3000, abs=2)


@pytest.mark.parametrize(("rate_hz", "channels"), [(8_000, 1), (96_000, 2), (11_025, 1)])
def test_other_rates_and_channels_become_one_channel_of_the_same_length(rate_hz, channels):
    samples = read_samples(encoded(tone(1.5, rate_hz, hz=1000, channels=channels), rate_hz), 48_000)
    assert samples.ndim == 1 and samples.dtype == np.float32 and len(samples) == pytest.approx(72_000, abs=2)
    assert np.sqrt((samples**2).mean()) == pytest.approx(0.3 / np.sqrt(2), rel=0.02)


@pytest.mark.parametrize("block_s", [0.1, 0.37, 10.0])
def test_streaming_in_blocks_gives_what_resampling_at_once_gives(block_s):
    whole = song(2, 44_100, hz=4000)
    with Recording(encoded(whole, 44_100, "FLAC")) as recording:
        streamed = np.concatenate(list(recording.blocks(32_000, block_s=block_s)))
    at_once = soxr.resample(whole, 44_100, 32_000)
    assert len(streamed) == len(at_once) and np.abs(streamed - at_once).max() < 1e-3


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3"])
def test_a_recording_cut_in_mid_frame_is_read_as_far_as_it_goes(kind):
    data = encoded(song(6, 32_000, hz=4000), 32_000, kind)
    with Recording(data[: len(data) // 2 + 1]) as recording:
        held = sum(len(block) for block in recording.blocks(32_000, block_s=0.5)) / 32_000
        remark = recording.remark
    assert 1.5 < held < 4
    # The length of an OGG stands at its end, which is lost.
    assert remark is not None and ("its last page is missing" if kind == "OGG" else "6.0 s that its header") in remark


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3"])
def test_a_cut_recording_that_is_shorter_than_a_block_is_read_as_far_as_it_goes(kind):
    data = encoded(song(8, 32_000, hz=4000), 32_000, kind)
    with Recording(data[: int(len(data) * 0.7)]) as recording:
        held = sum(len(block) for block in recording.blocks(32_000)) / 32_000
        assert 4 < held < 7 and recording.remark is not None and f"{held:.1f} s" in recording.remark


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG"])
def test_a_recording_of_which_nothing_is_left_is_refused_in_one_sentence(kind):
    data = encoded(song(8, 32_000, hz=4000), 32_000, kind)
    for length in range(20, len(data) // 100, 7):
        try:
            assert len(read_samples(data[:length], 32_000))
        except SoundError as error:
            assert "\n" not in str(error)


def test_a_recording_that_was_not_read_to_its_end_has_no_remark():
    data = encoded(song(8, 32_000, hz=4000), 32_000, "WAV")
    for content in (data, data[: len(data) // 2]):
        with Recording(content) as recording:
            next(recording.blocks(32_000, block_s=1.0))
            assert recording.remark is None


def test_a_whole_recording_has_no_remark():
    for kind in ("WAV", "FLAC", "OGG", "MP3"):
        with Recording(encoded(song(3, 32_000, hz=4000), 32_000, kind)) as recording:
            assert list(recording.blocks(48_000)) and recording.remark is None


def test_silence_and_a_fifth_of_a_second_are_recordings():
    assert not read_samples(encoded(np.zeros((16_000, 1)), 16_000), 32_000).any()
    assert len(read_samples(encoded(tone(0.2, 48_000), 48_000), 48_000)) == 9600


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"Dear diary, today I heard a wren.\n", "34 bytes that are not a recording"),
        (b"", "an empty file"),
        (encoded(np.empty((0, 1)), 8000), "a recording without a single sample"),
        (encoded(tone(1, 8000), 8000, "FLAC")[:60], "60 bytes that are not a recording"),
    ],
    ids=["text named .wav", "empty file", "no samples", "only a header"],
)
def test_what_is_no_recording_is_refused_in_one_sentence(data, sentence, tmp_path):
    (tmp_path / "a.wav").write_bytes(data)
    for source in (data, io.BytesIO(data), tmp_path / "a.wav"):
        with pytest.raises(SoundError, match=f"^{sentence}$"):
            read_samples(source, 48_000)


def test_samples_that_are_not_numbers_are_refused():
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, np.array([0.1, np.nan, 0.2] * 100), 8000, format="WAV", subtype="FLOAT")
    with pytest.raises(SoundError, match="not numbers"):
        read_samples(file.getvalue(), 8000)
