"""What a world in the layout of FungiTastic is drawn from, before any of it is written."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark_tests.worlds.layouts.fungitastic_release import SEED, Source, source_of
from fieldmark_worlds import WORLDS
from fieldmark_worlds.fungi.spores import paint_spores
from fieldmark_worlds.layouts import fungitastic
from fieldmark_worlds.layouts.fungitastic_photos import mask_rows
from fieldmark_worlds.scenery.landcover import Ground, as_picture, reflectance_of


@pytest.fixture(scope="module")
def source() -> Source:
    return source_of(SEED)


def test_the_world_is_found_by_its_name() -> None:
    assert WORLDS["fungitastic"] is fungitastic.write


def test_equal_seeds_give_equal_tables_and_other_seeds_others(source: Source) -> None:
    assert source_of(SEED).photos.equals(source.photos)
    assert not source_of(SEED + 1).photos.equals(source.photos)


@pytest.mark.parametrize("seed", range(8))
def test_tiny_is_small_and_yet_has_something_of_everything(seed: int) -> None:
    made = source_of(seed)
    photos, finds = made.photos, made.finds
    assert photos.height <= 300 and photos["filename"].n_unique() == photos.height
    assert 12 <= finds.known.sum() <= 24 and finds.few_shot.sum() >= 4 and (finds.known & finds.mini).sum() >= 4
    for split in ("val", "test"):
        for species in (
            finds.known & finds.mini,
            finds.known & ~finds.mini,
            finds.few_shot,
            finds.unknown & finds.mini,
        ):
            assert len(finds.of(split, species)) > 0
    known = photos.filter("known").unique("scientificName")
    assert known["species"].is_duplicated().any()
    assert photos.filter(pl.col("masked") & pl.col("microscopic")).height > 0


def test_spores_follow_from_the_traits_alone(source: Source) -> None:
    specimen = dict(source.finds.seen.traits.specimen(0))
    one, mask = paint_spores(specimen | {"label": "a"}, np.random.default_rng(0), 96)
    same, _ = paint_spores(specimen | {"label": "b"}, np.random.default_rng(0), 96)
    darker, _ = paint_spores(specimen | {"underside_color": 3.0}, np.random.default_rng(0), 96)
    paler, _ = paint_spores(specimen | {"underside_color": -3.0}, np.random.default_rng(0), 96)
    assert np.array_equal(np.asarray(one), np.asarray(same)) and 0.02 < mask.mean() < 0.6
    assert np.asarray(darker)[mask].mean() < np.asarray(paler)[mask].mean() - 20


def test_a_mask_that_begins_in_the_corner_begins_with_no_background() -> None:
    mask = np.array([[True, False], [True, True]])
    rows = mask_rows("a.JPG", {"cap": mask})
    assert [(row.label, row.rle) for row in rows] == [
        ("cap", [0, 1, 1, 2, 0, 0, 2, 2]),
        ("fruiting_body", [0, 1, 1, 2, 0, 0, 2, 2]),
    ]


def test_satellites_show_the_habitat_that_was_noted() -> None:
    woods, dunes = (
        as_picture(reflectance_of(Ground("1.png", 45.0, -30.0, habitat, seed=0, observation=1)))
        for habitat in ("coniferous woodland", "dunes")
    )
    middle = slice(56, 72)
    assert woods[middle, middle, :3].mean() < dunes[middle, middle, :3].mean() - 40
    assert np.array_equal(woods[:8, :8], dunes[:8, :8])


def test_the_picture_of_reflectance_is_clipped_brightened_and_rounded() -> None:
    raw = np.array([-5.0, 0.0, 1.0, 400.0, 9_999.0, 10_000.0, 60_000.0])
    expected = [round(255 * (min(max(value, 0.0), 10_000.0) / 10_000) ** 0.4) for value in raw]
    assert as_picture(raw).tolist() == expected
