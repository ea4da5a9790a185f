from __future__ import annotations

import io

import numpy as np
import pytest

from fieldmark.audio import spectrograms
from fieldmark.audio.samples import Recording
from fieldmark.errors import InputError, MisuseError
from fieldmark.features import sounds
from fieldmark.features.embedders import LogMelStatistics, load_embedder
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.sounds import Clip, extract_sounds, remark_on_cut, salient_windows, windows_of
from fieldmark.features.store import FeatureStore
from fieldmark_tests.audio.sounds import encoded, song

RATE = 8000


class Loudness:
    """Two numbers for each window of two seconds: its mean and its loudest sample. Counts what it is asked."""

    rate_hz, window_s, padding = RATE, 2.0, "zeros"

    def __init__(self, fail_after: int | None = None) -> None:
        self.windows, self.fail_after = 0, fail_after

    def __call__(self, windows):
        if self.fail_after is not None and self.windows >= self.fail_after:
            raise KeyboardInterrupt
        self.windows += len(windows)
        assert windows.shape[1] == 2 * RATE
        loudest = windows.max(axis=1)
        return {"features": np.stack([windows.mean(axis=1), loudest], axis=1), "logits": loudest[:, None]}


def steps(*levels: float) -> bytes:
    """A recording whose loudness changes once a second."""
    return encoded(np.repeat(np.array(levels, dtype=np.float32), RATE)[:, None], RATE)


MEDIA = {"a": steps(*np.arange(10) / 16), "b": steps(0.5), "c": steps(*[0.25] * 4)}


def opened(media_id: str) -> io.BytesIO:
    return io.BytesIO(MEDIA[media_id])


def test_a_segment_has_the_mean_of_the_windows_that_cover_it_and_the_highest_logit(tmp_path):
    clips = [Clip("a", 0.0, 5.0), Clip("a", 5.0, 10.0)]
    store = FeatureStore(tmp_path, "x")
    features = extract_sounds(clips, opened, Loudness(), store)
    # Windows begin at 0, 1.5 and 3 s within a segment of 5 s.
    first = np.mean([(0 + 1) / 2, (0.5 * 1 + 2 + 0.5 * 3) / 2, (3 + 4) / 2]) / 16
    assert features[0, 0] == pytest.approx(first, abs=1e-3)
    assert features[1, 0] - features[0, 0] == pytest.approx(5 / 16, abs=1e-3)
    logits = extract_sounds(clips, opened, Loudness(), store, output="logits")
    assert logits[:, 0] == pytest.approx([4 / 16, 9 / 16], abs=1e-3)


def test_rows_come_in_the_order_of_the_clips_and_a_segment_beyond_the_end_is_silence(tmp_path):
    clips = [Clip("c"), Clip("a", 5.0, 10.0), Clip("b", 0.0, 5.0), Clip("b", 5.0, 10.0), Clip("a", 0.0, 5.0)]
    features = extract_sounds(clips, opened, Loudness(), FeatureStore(tmp_path, "x"))
    assert features[0] == pytest.approx([0.25, 0.25], abs=1e-3)
    assert features[3].tolist() == [0, 0] and 0 < features[2, 0] < 0.5
    assert features[1, 0] > features[4, 0]


def test_nothing_is_computed_twice_and_each_recording_is_opened_once(tmp_path):
    clips = [Clip("a", float(start), start + 2.0) for start in range(0, 10, 2)]
    names = []

    def counted(media_id):
        names.append(media_id)
        return opened("a")

    embedder = Loudness()
    extract_sounds(clips, counted, embedder, FeatureStore(tmp_path, "x"))
    assert embedder.windows == 5 and names == ["a"]
    renamed = [clip._replace(media_id="moved") for clip in reversed(clips)]
    extract_sounds(renamed, counted, embedder, FeatureStore(tmp_path, "x"))
    assert embedder.windows == 5


def test_an_interrupted_extraction_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(sounds, "BATCH_WINDOWS", 2)
    clips = [Clip("a", float(start), start + 2.0) for start in range(0, 10, 2)]
    with pytest.raises(KeyboardInterrupt):
        extract_sounds(clips, opened, Loudness(fail_after=2), FeatureStore(tmp_path, "x"))
    second = Loudness()
    extract_sounds(clips, opened, second, FeatureStore(tmp_path, "x"))
    assert second.windows == 3


def test_recordings_that_cannot_be_read_are_all_found_and_the_good_ones_kept(tmp_path, monkeypatch):
    monkeypatch.setitem(MEDIA, "text.wav", b"no sound here")
    monkeypatch.setitem(MEDIA, "empty.wav", b"")
    clips = [Clip("text.wav"), Clip("b"), Clip("empty.wav")]
    expected = "^at text.wav: found 13 bytes that are not a recording, expected a WAV, .* or M4A file.*1 more"
    with pytest.raises(InputError, match=expected):
        extract_sounds(clips, opened, Loudness(), FeatureStore(tmp_path, "x"), where=lambda name: f"at {name}")
    assert len(FeatureStore(tmp_path, "x")) == 1


def test_recordings_that_were_cut_are_named_each_time_their_features_are_used(tmp_path):
    media = {name: data[: len(data) * 6 // 10] if name == "a" else data for name, data in MEDIA.items()}
    clips = [Clip("a"), Clip("b"), Clip("a", 0.0, 2.0), Clip("a", 4.0, 8.0), Clip("c")]
    for _ in range(2):  # the second time everything comes from the store
        cut_short: dict[str, str] = {}
        extract_sounds(
            clips, lambda name: io.BytesIO(media[name]), Loudness(), FeatureStore(tmp_path, "x"), cut_short=cut_short
        )
        assert cut_short == {"a": "6.0 s of the 10.0 s that its header promises could be read"}
    (said,) = remark_on_cut(cut_short)
    assert said.startswith("1 recording was cut and is used as far as it goes: a (6.0 s of the 10.0 s")


def test_a_segment_of_which_a_cut_recording_has_left_nothing_is_refused(tmp_path):
    cut = MEDIA["a"][: len(MEDIA["a"]) * 6 // 10]
    clips = [Clip("a", 0.0, 5.0), Clip("a", 8.0, 10.0)]
    with pytest.raises(InputError, match=r"a recording that was cut before 8 s: 6\.0 s of the 10\.0 s"):
        extract_sounds(clips, lambda name: io.BytesIO(cut), Loudness(), FeatureStore(tmp_path, "x"))


def test_of_many_recordings_that_were_cut_a_few_are_named():
    (said,) = remark_on_cut({f"{number}.wav": "1.0 s" for number in range(8)})
    assert said.startswith("8 recordings were cut") and said.endswith("4.wav (1.0 s); and 3 more.")


def test_of_a_long_recording_the_windows_with_a_voice_are_taken():
    hiss = np.random.default_rng(0).normal(0, 0.003, 60 * RATE).astype(np.float32)
    for start_s in (20, 44):
        hiss[start_s * RATE : (start_s + 2) * RATE] += song(2, RATE, hz=2000)
    with Recording(encoded(hiss, RATE)) as recording:
        chosen = salient_windows(recording, Loudness(), at_most=2)
    assert chosen.number == 30 and np.abs(chosen.quietest).max() < 0.1
    assert [float(np.abs(window).max()) > 0.1 for window in chosen.windows] == [True, True]


def test_the_filter_bank_of_salience_is_made_once_for_all_recordings(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(
        spectrograms, "band_edges", lambda how, real=spectrograms.band_edges: made.append(how) or real(how)
    )
    spectrograms.mel_bands.cache_clear()
    extract_sounds([Clip(name) for name in MEDIA], opened, Loudness(), FeatureStore(tmp_path, "x"))
    assert len(made) == 1


def test_a_recording_is_not_opened_for_no_clips(monkeypatch):
    monkeypatch.setattr(sounds, "Recording", None)
    assert list(windows_of(io.BytesIO(b"no sound"), {}, Loudness())) == []


def test_log_mel_statistics_tell_pitches_apart_and_survive_silence():
    embedder = LogMelStatistics()
    sounds_in = np.stack([song(5, 32_000, hz=2000), song(5, 32_000, hz=6000), np.zeros(160_000)]).astype(np.float32)
    features = embedder(sounds_in)["features"]
    assert features.shape == (3, 128) and np.isfinite(features).all() and not features[2].any()
    spread = features[:2, 64:].argmax(axis=1)
    assert spread[0] < spread[1]


def test_a_backbone_that_is_none_for_recordings_is_named():
    with pytest.raises(MisuseError, match=r"no backbone for recordings called 'brdnet'\. Did you mean birdnet"):
        load_embedder(FeatureSettings(backbone="brdnet"))
    with pytest.raises(MisuseError, match="logmel has features and no logits"):
        load_embedder(FeatureSettings(backbone="logmel", output="logits"))
