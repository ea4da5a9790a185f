from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pytest

from fieldmark_worlds.fungi.fungi_kingdom import FUNGI
from fieldmark_worlds.fungi.painter import BODY_PARTS, paint, paint_with_parts
from fieldmark_worlds.nature.kingdom import Categorical, Specimen
from fieldmark_worlds.nature.nature import Nature
from fieldmark_worlds.nature.observations import draw_traits
from fieldmark_worlds.scenery.camera import Camera


def _specimen(**traits: float | str) -> Specimen:
    plain: dict[str, float | str] = {trait.name: trait.mean for trait in FUNGI.continuous}
    plain |= {trait.name: trait.options[0] for trait in FUNGI.categorical}
    return plain | traits


def _pixels(specimen: Specimen, seed: int = 0) -> np.ndarray:
    return np.asarray(paint(specimen, np.random.default_rng(seed)), dtype=float)


def _differ(one: Specimen, other: Specimen, *, by: float) -> bool:
    """Returns whether some photo taken under the same circumstances differs so far; not every pose shows all."""
    return any(np.abs(_pixels(one, seed) - _pixels(other, seed)).mean() > by for seed in range(12))


def test_equal_traits_and_equal_chance_give_equal_pixels_whatever_the_species() -> None:
    one = _specimen() | {"label": "Velarina alba", "habitat": "bog"}
    other = _specimen() | {"label": "Grinoma fusca", "habitat": "dunes"}
    assert np.array_equal(_pixels(one), _pixels(other))
    assert not np.array_equal(_pixels(one, seed=0), _pixels(one, seed=1))


@pytest.mark.parametrize("trait", [trait.name for trait in FUNGI.continuous])
def test_every_continuous_trait_shows(trait: str) -> None:
    # Under-cap and surface traits need a view and a texture in which they can be seen.
    base = _specimen(texture="spotted", cap_convexity=0.5)
    assert _differ(base | {trait: -1.5}, base | {trait: 1.5}, by=0.1)


@pytest.mark.parametrize("trait", FUNGI.categorical, ids=lambda trait: trait.name)
def test_every_option_of_a_categorical_trait_shows(trait: Categorical) -> None:
    looks = [_specimen(**{trait.name: option}) for option in trait.options]
    for one, other in combinations(looks, 2):
        assert _differ(one, other, by=0.1)


def test_traits_leave_the_circumstances_of_the_photo_alone() -> None:
    """The corners of the photo show ground and distance; they are the same whatever the mushroom's skin."""
    smooth, warty = (_pixels(_specimen(texture=texture), 1) for texture in ("smooth", "spotted"))
    assert np.array_equal(smooth[:12], warty[:12]) and np.array_equal(smooth[-8:, :8], warty[-8:, :8])
    assert not np.array_equal(smooth, warty)


def test_the_photo_with_parts_is_the_same_photo_and_parts_do_not_overlap() -> None:
    specimen = _specimen(ring="present")
    seen = dict.fromkeys(BODY_PARTS, 0)
    for seed in range(12):
        photo, parts = paint_with_parts(specimen, np.random.default_rng(seed), 128)
        assert np.array_equal(np.asarray(photo), np.asarray(paint(specimen, np.random.default_rng(seed), 128)))
        assert tuple(parts) == BODY_PARTS
        stacked = np.stack(list(parts.values()))
        assert stacked.shape == (len(BODY_PARTS), 128, 128) and stacked.sum(axis=0).max() == 1
        assert 0.03 < stacked.any(axis=0).mean() < 0.85
        for name, mask in parts.items():
            seen[name] += int(mask.sum())
    assert seen["pores"] == 0 and all(seen[name] > 0 for name in ("cap", "gills", "stem", "ring"))


def test_parts_lie_where_the_traits_paint_them() -> None:
    """A recolored cap changes the pixels of the cap, and hardly any others."""
    for seed in range(4):
        red, parts = paint_with_parts(_specimen(cap_hue=-1.5, stem_tint=-4.0), np.random.default_rng(seed))
        yellow = _pixels(_specimen(cap_hue=1.5, stem_tint=-4.0), seed)
        change = np.abs(np.asarray(red, dtype=float) - yellow).mean(axis=2)
        on_mushroom = np.stack(list(parts.values())).any(axis=0)
        assert change[parts["cap"]].mean() > 10
        assert change[~on_mushroom].mean() < 1


def test_pores_are_called_pores() -> None:
    masks = [paint_with_parts(_specimen(underside="pores"), np.random.default_rng(s), 96)[1] for s in range(10)]
    assert any(mask["pores"].any() for mask in masks)
    assert not any(mask["gills"].any() for mask in masks)


def test_a_better_camera_gives_a_sharper_photo() -> None:
    def sharpness(camera: Camera) -> float:
        photo = paint(_specimen(), np.random.default_rng(3), camera=camera).convert("L")
        return float(np.abs(np.diff(np.asarray(photo, dtype=float), axis=1)).mean())

    assert sharpness(Camera(blur_px=2.0, noise=0.0)) < 0.8 * sharpness(Camera(blur_px=0.1, noise=0.0))


def test_painting_is_fast_enough_for_thousands_of_photos(nature: Nature) -> None:
    traits = draw_traits(nature, np.arange(0, 40), np.random.default_rng(0))
    start = time.process_time()
    for row in range(len(traits)):
        paint(traits.specimen(row), np.random.default_rng(row))
    assert (time.process_time() - start) / len(traits) < 0.1  # five times the budget, for slow machines
