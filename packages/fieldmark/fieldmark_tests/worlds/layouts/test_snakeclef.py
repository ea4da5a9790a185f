"""The world of snakes: its layout opens, and it holds what it promises."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from fieldmark.releases import open_dataset
from fieldmark.releases.checks import CHECKS
from fieldmark.storage.release import Release
from fieldmark_worlds.layouts import snakeclef
from fieldmark_worlds.layouts.release_files import finding_rng
from fieldmark_worlds.snakes.snake_nature import MORPHS, SnakeSettings, grow_snakes
from fieldmark_worlds.snakes.snake_painter import paint_snake
from fieldmark_worlds.snakes.snakes_kingdom import SNAKES, WARNING_TRAITS


@pytest.fixture(scope="module")
def nature():
    return grow_snakes(SnakeSettings(80, 24, continents=4, countries=6), seed=5)


def test_a_world_opens_and_its_check_is_sound(snake_world):
    report = CHECKS["snakeclef-2020"](Release(snake_world), media=True)
    assert report.sound and report.simulated
    assert {part.part: part.found.photos for part in report.counts if part.found.photos} == {
        "train": 56, "val": 24, "test": 24,
    }  # fmt: skip
    data = open_dataset("snakeclef-2020", snake_world)
    assert data.taxa["poisonous"].is_not_null().all() and data.taxa["poisonous"].any()
    assert 0.5 < data.observations["country"].is_not_null().mean() < 1
    for media_id, box in zip(data.media["media_id"], data.layers["boxes"].read(data.media["media_id"]), strict=True):
        assert box is not None and box.width * box.height < 160 * 160, media_id


def test_test_labels_are_apart_and_every_species_is_in_every_part(snake_world):
    assert "scientific_name" not in pl.read_csv(snake_world / "test_metadata.csv").columns
    data = open_dataset("snakeclef-2020", snake_world)
    rows = data.media.join(data.observations, on="observation_id").explode("parts")
    assert rows.group_by("parts").agg(pl.col("label").n_unique())["label"].to_list() == [8, 8, 8]
    assert json.loads((snake_world / "WORLD.json").read_text())["best_possible"]["test_top_1"] > 0.5


def test_mimics_are_harmless_and_bear_the_warning_of_a_venomous_species(nature):
    taxa = nature.taxa.with_row_index("row")
    venomous = dict(taxa.select("label", "venomous").iter_rows())
    row_of = dict(taxa.select("label", "row").iter_rows())
    warning = [number for number, trait in enumerate(SNAKES.continuous) if trait.name in WARNING_TRAITS]
    mimics = taxa.drop_nulls("model")
    assert len(mimics) > 5
    apart, abroad = [], []
    for row, own, model in mimics.select("row", "label", "model").iter_rows():
        assert venomous[model] and not venomous[own]
        apart.append(np.abs(nature.tree.means[row, warning] - nature.tree.means[row_of[model], warning]).max())
        abroad.append(not (nature.lives[row] & nature.lives[row_of[model]]).any())
    assert max(apart) < 0.6
    assert 0 < sum(abroad) < len(abroad)  # some live with their model, others on another continent


def test_sexes_and_ages_differ_in_some_species(nature):
    female, male, young, _ = (nature.looks_of(morph).means for morph in MORPHS)
    differ = (np.abs(female - male).max(axis=1) > 0.5).mean()
    assert 0.1 < differ < 0.6
    thickness = [trait.name for trait in SNAKES.continuous].index("body_thickness")
    assert (young[:, thickness] < female[:, thickness]).all()


def test_every_species_lives_on_one_continent_and_none_in_the_last_country(nature):
    assert nature.lives.any(axis=1).all() and not nature.lives[:, -1].any()
    for species in nature.lives:
        assert len(set(nature.atlas.continent_of[species])) == 1
    assert np.allclose(nature.country_shares.sum(axis=1), 1)


def test_the_country_helps_even_who_knows_the_traits(nature):
    extent = snakeclef.SnakeExtent(SnakeSettings(80, 24, continents=4, countries=6), (300, 100, 600))
    photos = snakeclef.take_photos(nature, extent, finding_rng(1))
    logs = nature.log_likelihood(photos.traits) + np.log(nature.abundance)
    truth = photos.table["species"].to_numpy()
    with_country = logs + np.log(nature.country_shares).T[photos.country]
    assert (with_country.argmax(axis=1) == truth).mean() > (logs.argmax(axis=1) == truth).mean()


def test_a_photo_is_painted_from_its_traits_and_shows_the_whole_snake(nature):
    means = nature.looks_of(MORPHS[0]).means
    thick = {trait.name: float(value) for trait, value in zip(SNAKES.continuous, means[0], strict=True)}
    thick |= {"pattern": "bands", "body_thickness": 3.0}
    thin = {**thick, "body_thickness": -3.0}
    masks = [paint_snake(specimen, np.random.default_rng(7), 96)[1] for specimen in (thick, thin)]
    assert masks[0].sum() > 1.5 * masks[1].sum() > 0
    for mask in masks:
        edges = np.concatenate([mask[0], mask[-1], mask[:, 0], mask[:, -1]])
        assert edges.mean() < 0.05
