from __future__ import annotations

import librosa
import numpy as np
import pytest

from fieldmark.audio.spectrograms import (
    SPECTROGRAMS,
    MelSpectrogram,
    mel_bands,
    most_salient,
    salience,
    spectrogram_settings,
)
from fieldmark.errors import MisuseError
from fieldmark_tests.audio.sounds import song


@pytest.mark.parametrize("name", ["segment", "birdclef-baseline"])
def test_log_mel_is_what_librosa_computes(name):
    how = SPECTROGRAMS[name]
    sound = song(how.window_s, how.rate_hz, hz=4000)[: how.samples]
    emphasized = np.append(sound[:1], sound[1:] - np.float32(how.pre_emphasis) * sound[:-1])
    power = librosa.feature.melspectrogram(
        y=emphasized,
        sr=how.rate_hz,
        n_fft=how.fft,
        hop_length=how.hop,
        n_mels=how.bands,
        fmin=how.low_hz,
        fmax=how.high_hz,
    )
    decibel = librosa.power_to_db(power, top_db=80)[:, : how.frames]
    expected = (decibel - decibel.min()) / (decibel.max() - decibel.min())
    assert MelSpectrogram(how, "cpu")(sound[None])[0].numpy() == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("name", list(SPECTROGRAMS))
def test_a_picture_has_the_promised_size_and_lies_between_0_and_1(name):
    how = SPECTROGRAMS[name]
    rng = np.random.default_rng(0)
    sounds = np.stack([song(how.window_s, how.rate_hz, hz=5000)[: how.samples], rng.normal(0, 0.1, how.samples)])
    pictures = MelSpectrogram(how, "cpu")(sounds.astype(np.float32)).numpy()
    assert pictures.shape == (2, how.bands, how.frames)
    assert pictures.min() == 0 and pictures.max() == pytest.approx(1)


@pytest.mark.parametrize("name", list(SPECTROGRAMS))
def test_silence_is_a_black_picture_and_never_a_division_by_zero(name):
    how = SPECTROGRAMS[name]
    assert not MelSpectrogram(how, "cpu")(np.zeros((1, how.samples), dtype=np.float32)).numpy().any()


def test_the_bands_of_birdnet_follow_its_mel_scale():
    how = SPECTROGRAMS["birdnet"]
    centers = mel_bands(how).argmax(axis=1) * how.rate_hz / how.fft
    mel = 4581 * np.log10(1 + centers / 1750)
    wide = centers > 3000  # below, a band is narrower than two frequencies of the spectrum
    steps = np.diff(mel[wide])
    assert steps == pytest.approx(np.full(len(steps), steps.mean()), rel=0.35)
    assert centers[0] > 150 and centers[-1] < 15_000


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(MisuseError, match="Did you mean birdnet"):
        spectrogram_settings("birdnt")


def test_a_song_stands_out_where_noise_hum_and_silence_do_not():
    how = SPECTROGRAMS["segment"]
    rng = np.random.default_rng(2)
    time = np.arange(how.samples) / how.rate_hz
    noise = rng.normal(0, 0.02, how.samples)
    sounds = [
        song(5, how.rate_hz, hz=4000),
        noise,
        noise + 0.2 * np.sin(2 * np.pi * 2000 * time),  # an insect that never stops
        np.zeros(how.samples),
    ]
    scores = salience(MelSpectrogram(how, "cpu").loudness(np.stack(sounds).astype(np.float32)))
    assert scores[0] > 3 * scores[1:].max() and scores[3] == 0


def test_the_most_salient_come_in_the_order_of_time():
    assert most_salient(np.array([0.1, 0.9, 0.5, 0.9]), 2).tolist() == [1, 3]
    assert most_salient(np.array([0.5, 0.5, 0.5]), 2).tolist() == [0, 1]
    assert most_salient(np.array([0.5]), 4).tolist() == [0]
