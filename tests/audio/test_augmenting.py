from __future__ import annotations

import numpy as np
import pytest
import torch

from fieldmark.audio import augmenting


@pytest.fixture
def sounds() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).normal(0, 0.1, (6, 400)).astype(np.float32))


def rms(sounds: torch.Tensor) -> np.ndarray:
    return sounds.square().mean(dim=1).sqrt().numpy()


def test_shifting_turns_a_sound_around_and_loses_nothing(sounds):
    shifted = augmenting.shifted(sounds, np.random.default_rng(0))
    assert (shifted.sort(dim=1).values == sounds.sort(dim=1).values).all() and not (shifted == sounds).all()
    for before, after in zip(sounds, shifted, strict=True):
        assert any((before.roll(-step) == after).all() for step in range(400))


def test_gain_stays_within_its_decibels(sounds):
    changed = 20 * np.log10(rms(augmenting.louder(sounds, np.random.default_rng(0), decibel=(-6, 3))) / rms(sounds))
    assert (changed >= -6.001).all() and (changed <= 3.001).all() and np.ptp(changed) > 1


def test_noise_has_the_signal_to_noise_ratio_that_was_asked_for(sounds):
    noises = torch.from_numpy(np.random.default_rng(5).normal(0, 2.0, (3, 400)).astype(np.float32))
    noisy = augmenting.noisier(sounds, noises, np.random.default_rng(0), signal_to_noise_db=(10, 10))
    assert 20 * np.log10(rms(sounds) / rms(noisy - sounds)) == pytest.approx(np.full(6, 10.0), abs=0.01)
    silent = augmenting.noisier(sounds, torch.zeros(1, 400), np.random.default_rng(0))
    assert (silent == sounds).all()


def test_mixing_unites_the_targets_of_both_voices(sounds):
    targets = torch.eye(6)
    heard, united = augmenting.mixed(sounds, targets, np.random.default_rng(3), share=1.0, decibel=(0, 0))
    assert (united >= targets).all() and ((united.sum(dim=1) == 2) | (heard == 2 * sounds).all(dim=1)).all()
    alone, same = augmenting.mixed(sounds, targets, np.random.default_rng(3), share=0.0)
    assert (alone == sounds).all() and (same == targets).all()


@pytest.mark.parametrize(("mask", "axis"), [(augmenting.time_masked, 2), (augmenting.band_masked, 1)])
def test_masks_blank_one_stretch_of_at_most_their_share(mask, axis):
    pictures = torch.ones(50, 20, 40)
    blank = mask(pictures, np.random.default_rng(0), at_most=0.25) == 0
    across = blank.all(dim=3 - axis)
    assert (blank.any(dim=3 - axis) == across).all()  # whole frames or whole bands
    widths = across.sum(dim=1)
    assert widths.max() <= 0.25 * pictures.shape[axis] and widths.max() > 0
    assert (across.int().diff(dim=1).abs().sum(dim=1) <= 2).all()  # in one piece


def test_the_same_generator_gives_the_same_sounds(sounds):
    for change in (augmenting.shifted, augmenting.louder):
        assert (change(sounds, np.random.default_rng(9)) == change(sounds, np.random.default_rng(9))).all()
