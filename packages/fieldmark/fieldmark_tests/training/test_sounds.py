"""Recordings as examples: packs, choirs, and what the network sees."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

from fieldmark.audio.spectrograms import MelSettings
from fieldmark.features import sounds as feature_sounds
from fieldmark.features.sounds import Clip
from fieldmark.training import sounds as packed_sounds
from fieldmark.training.draws import Draws, example_seeds
from fieldmark.training.sounds import SoundSource, SoundTransform, choirs, open_sound_pack
from fieldmark_tests.audio.sounds import encoded, song

RATE = 8000
HOW = MelSettings(RATE, 1.0, bands=16, frames=26, fft=512, low_hz=150, high_hz=3800)
CLIPS = [Clip("long"), Clip("short"), Clip("scape", 0.0, 1.0), Clip("scape", 1.0, 2.0)]


def recording(seconds: float, hz: float) -> bytes:
    return encoded(song(seconds, RATE, hz=hz, seed=int(hz)), RATE, "FLAC")


class Media:
    """Recordings by name, and how often they were opened."""

    def __init__(self) -> None:
        self.files = {"long": recording(12, 800), "short": recording(0.4, 1600), "scape": recording(2, 2400)}
        self.opened = 0

    def __call__(self, name: str) -> io.BytesIO:
        self.opened += 1
        return io.BytesIO(self.files[name])


@pytest.fixture
def media() -> Media:
    return Media()


def draws(number: int, seed: int = 0) -> Draws:
    return Draws(example_seeds(seed, 0, np.arange(number)))


def test_a_pack_holds_a_few_windows_of_a_recording_one_of_a_segment_and_backgrounds(media, tmp_path):
    pack = open_sound_pack(CLIPS, media, HOW, 4, tmp_path)
    assert pack.owners.tolist() == [0, 0, 0, 0, 1, 2, 3, -1] and pack.windows.shape == (8, RATE)
    assert [values.tolist() for values in pack.first_and_number] == [[0, 4, 5, 6], [4, 1, 1, 1]]
    assert pack.backgrounds.tolist() == [7] and not pack.problems
    assert np.abs(pack.windows[4]).max() > 3000  # a short one is repeated, not followed by silence
    half = np.abs(pack.windows[4].astype(int)).reshape(2, -1).max(axis=1)
    assert half.min() > 3000


def test_a_pack_is_made_once_and_again_when_recordings_have_changed(media, tmp_path):
    first = open_sound_pack(CLIPS, media, HOW, 4, tmp_path)
    made = media.opened
    open_sound_pack(CLIPS, media, HOW, 4, tmp_path)
    assert media.opened - made == 3  # only looked at
    media.files["scape"] = recording(2, 3000)
    changed = open_sound_pack(CLIPS, media, HOW, 4, tmp_path)
    assert (changed.windows[:5] == first.windows[:5]).all() and (changed.windows[5] != first.windows[5]).any()


def test_each_recording_is_decoded_once_for_a_pack(media, tmp_path, monkeypatch):
    decoded = []
    for module in (packed_sounds, feature_sounds):
        real = module.Recording
        monkeypatch.setattr(module, "Recording", lambda sound, real=real: decoded.append(sound) or real(sound))
    open_sound_pack(CLIPS, media, HOW, 4, tmp_path)
    assert len(decoded) == 3


def test_what_cannot_be_read_is_named_and_the_rest_is_packed(media, tmp_path):
    media.files["short"] = b"no sound"
    pack = open_sound_pack(CLIPS, media, HOW, 2, tmp_path)
    assert pack.problems == {"short": "8 bytes that are not a recording"} and 1 not in pack.owners


def test_recordings_that_were_cut_are_packed_as_far_as_they_go_and_named(media, tmp_path):
    for name in ("long", "scape"):
        media.files[name] = media.files[name][: int(len(media.files[name]) * 0.8)]
    for _ in range(2):  # the second time from the pack
        pack = open_sound_pack(CLIPS, media, HOW, 4, tmp_path)
        assert set(pack.cut_short) == {"long", "scape"} and not pack.problems and set(pack.owners) >= {0, 1, 2, 3}
    assert "of the 12.0 s that its header promises" in pack.cut_short["long"]
    whole = encoded(song(2, RATE, hz=2400), RATE, "WAV")
    media.files["scape"] = whole[: len(whole) * 45 // 100]  # nothing is left of the last clip
    pack = open_sound_pack(CLIPS, media, HOW, 4, tmp_path)
    assert set(pack.cut_short) == {"long"} and "was cut before 1 s" in pack.problems["scape"]


def make_source(media, tmp_path, *, mixing: int = 4) -> SoundSource:
    pack = open_sound_pack(CLIPS, media, HOW, 4, tmp_path)
    return SoundSource(pack, np.arange(4), np.eye(4, dtype=np.int32), choirs(4, mixing, seed=0))


def test_the_labels_of_a_choir_are_those_of_both_voices(media, tmp_path):
    source = make_source(media, tmp_path)
    assert len(source) == 8 and source.labels.shape == (8, 4)
    assert (source.labels[:4] == np.eye(4)).all() and (source.labels[4:].sum(axis=1) == 2).all()
    assert (source.labels[4:].diagonal() == 1).all()


@pytest.mark.parametrize("clips", [1, 2, 7])
def test_nobody_sings_in_a_choir_with_themselves(clips):
    for seed in range(20):
        partners = choirs(clips, clips, seed)
        assert (partners != np.arange(len(partners))).all() and (clips > 1 or not len(partners))


def test_a_choir_sounds_like_both_and_a_single_bird_has_no_second_voice(media, tmp_path):
    source = make_source(media, tmp_path)
    sounds, seconds, backgrounds = source.read(np.arange(8), draws(8))
    assert not seconds[:4].any() and all(second.any() for second in seconds[4:])
    assert sounds.shape == backgrounds.shape == (8, RATE) and sounds.dtype == np.int16
    (alone,) = source.read(np.arange(4), None)
    assert (alone == source.pack.windows[[0, 4, 5, 6]]).all()


def test_the_same_draws_give_the_same_picture_and_evaluation_draws_nothing(media, tmp_path):
    source, transform = make_source(media, tmp_path), SoundTransform(HOW, "cpu")

    def picture(seed: int | None) -> torch.Tensor:
        drawn = None if seed is None else draws(8, seed)
        raw = [torch.from_numpy(np.array(array)) for array in source.read(np.arange(8), drawn)]
        return transform(raw, drawn)

    assert picture(0).shape == (8, 1, 16, 26)
    assert (picture(0) == picture(0)).all() and (picture(0) != picture(1)).any()
    assert (picture(None) == picture(None)).all()


def test_gain_makes_a_voice_stand_out_of_its_background_and_alone_it_changes_nothing():
    voice, background = (torch.from_numpy(song(1, RATE, hz=hz, seed=1)[None]).float() for hz in (800, 2400))
    none = torch.zeros_like(voice)

    def picture(gain: float, loudness: float) -> torch.Tensor:
        fixed = {"mask_time": 0.0, "mask_bands": 0.0, "background_db": (loudness, loudness)}
        return SoundTransform(HOW, "cpu", **fixed)([gain * voice, none, background], draws(1))

    assert picture(0.3, -30) == pytest.approx(picture(1.0, -30), abs=1e-3)
    assert (picture(1.0, 5) - picture(1.0, -30)).abs().max() > 0.1
