from __future__ import annotations

import numpy as np
import pytest
import torch

from fieldmark.audio import augmentations


@pytest.fixture
def sounds() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).normal(0, 0.1, (6, 400)).astype(np.float32))


def rms(sounds: torch.Tensor) -> np.ndarray:
    return sounds.square().mean(dim=1).sqrt().numpy()


def test_shifting_turns_a_sound_around_and_loses_nothing(sounds):
    shares = np.array([0, 0.25, 0.5, 0.75, 0.999, 1.0])
    shifted = augmentations.shifted(sounds, shares)
    for before, after, share in zip(sounds, shifted, shares, strict=True):
        assert (before.roll(-int(share * 400)) == after).all()


def test_gain_is_the_decibels_that_were_drawn(sounds):
    decibels = np.array([-12.0, -6, 0, 3, 6, 20])
    assert 20 * np.log10(rms(augmentations.louder(sounds, decibels)) / rms(sounds)) == pytest.approx(decibels, abs=0.01)


def test_a_mixed_sound_has_the_ratio_that_was_drawn_however_loud_the_other_was(sounds):
    others = torch.from_numpy(np.random.default_rng(5).normal(0, 2.0, (6, 400)).astype(np.float32))
    decibels = np.array([-25.0, -12, -6, 0, 0, 3])
    mixed = augmentations.mixed(sounds, others, decibels)
    assert 20 * np.log10(rms(mixed - sounds) / rms(sounds)) == pytest.approx(decibels, abs=0.02)
    assert (augmentations.mixed(sounds, torch.zeros(6, 400), decibels) == sounds).all()


@pytest.mark.parametrize(("mask", "axis"), [(augmentations.time_masked, 2), (augmentations.band_masked, 1)])
def test_masks_blank_one_stretch_of_the_width_and_at_the_place_that_were_drawn(mask, axis):
    rng = np.random.default_rng(0)
    pictures = torch.ones(50, 20, 40)
    widths, places = rng.uniform(0, 0.25, 50), rng.uniform(0, 1, 50)
    places[0], places[1] = 0.0, 1.0
    blank = mask(pictures, widths, places) == 0
    across = blank.all(dim=3 - axis)
    assert (blank.any(dim=3 - axis) == across).all()  # whole frames or whole bands
    length = pictures.shape[axis]
    assert across.sum(dim=1).tolist() == np.floor(widths * length).tolist()
    assert (across.int().diff(dim=1).abs().sum(dim=1) <= 2).all()  # in one piece
    assert across[0, 0] == (widths[0] * length >= 1) and across[1, -1] == (widths[1] * length >= 1)
