"""The land: its layout opens, one thing follows from another, and its probabilities are exact."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from fieldmark.releases import open_dataset
from fieldmark.releases.checks import CHECKS
from fieldmark.storage.release import Release
from fieldmark_worlds.land.land_cover import COVERS
from fieldmark_worlds.land.settlement import scattered
from fieldmark_worlds.land.terrain import COUNTRIES, FRANCE
from fieldmark_worlds.land.whole_land import WholeLand
from fieldmark_worlds.layouts import geolifeclef
from fieldmark_worlds.layouts.geolifeclef_posterior import posterior_of

LITTLE = geolifeclef.LandExtent(40, (80, 80), (4, 4), (0.5, 1.0), 8, 0.15)


@pytest.fixture(scope="module")
def land() -> WholeLand:
    return geolifeclef.grow_land(geolifeclef.EXTENTS["tiny"], seed=5)


def test_a_world_opens_in_the_layout_of_2020_and_its_check_is_sound(land_world):
    report = CHECKS["geolifeclef-2020"](Release(land_world), media=True)
    assert report.sound and report.simulated
    assert {problem.severity for problem in report.problems} <= {"note", "warning"}
    assert not any("missing" in problem.what for problem in report.problems)
    dataset = open_dataset("geolifeclef-2020", land_world)
    first = dataset.observations.select(pl.col("observation_id").str.slice(0, 1), "country").unique()
    assert sorted(first.rows()) == [("1", "fr"), ("2", "us")]
    assert pl.read_csv(land_world / "occurrences_fr_test.csv", separator=";").columns == ["id", "lat", "lon"]
    ids = dataset.observations["observation_id"].to_list()
    numbers = dataset.layers["environment"].numbers(ids)
    assert numbers.shape == (160, 27) and np.isnan(numbers).mean() < 0.1
    own = ids[0]
    patch = np.load(land_world / "patches" / own[-2:] / own[-4:-2] / f"{own}.npy")
    assert patch.shape == (8, 8, 5) and patch.dtype == np.uint8
    codes = {cover.codes[0 if own[0] == "1" else 1] for cover in COVERS}
    assert set(np.unique(patch[..., 4])) <= codes


def test_the_same_seed_gives_the_same_files_and_another_one_does_not(land_world, tmp_path):
    geolifeclef.write_extent(tmp_path / "again", LITTLE, "little", seed=4)
    files = sorted(path.relative_to(land_world) for path in land_world.rglob("*") if path.is_file())
    assert len(files) == 2 * 160 + 2 * 27 + 4 + 3
    for file in files[:: len(files) // 20]:
        assert (land_world / file).read_bytes() == (tmp_path / "again" / file).read_bytes(), file
    other = geolifeclef.note_down(geolifeclef.grow_land(LITTLE, 6), LITTLE, 6)
    assert set(other.table["id"]) != set(geolifeclef.note_down(geolifeclef.grow_land(LITTLE, 4), LITTLE, 4).table["id"])


def test_climate_follows_height_and_latitude_and_cover_follows_both(land):
    rng = np.random.default_rng(0)
    lat, lon = scattered(COUNTRIES[1], 3000, rng)
    ground = land.terrains[1].at(lat, lon)
    dry = ground.land > 0
    warmth = ground.normals.tas.mean(axis=1)
    assert np.corrcoef(warmth[dry], lat[dry])[0, 1] < -0.7
    left = warmth[dry] + 0.62 * lat[dry]
    assert np.corrcoef(left, ground.elevation_m[dry])[0, 1] < -0.95
    texture = ground.soil[[3, 6, 7]]  # clay, silt and sand make up the soil
    np.testing.assert_allclose(texture.sum(axis=0), 100, atol=1e-9)
    cover = land.covers[1].at(lat, lon, ground)[dry]
    conifer, field = (np.array([one.name for one in COVERS])[cover] == name for name in ("conifer", "field"))
    assert ground.elevation_m[dry][conifer].mean() > ground.elevation_m[dry][field].mean()


def test_patches_agree_with_the_points_in_their_middle(land):
    rng = np.random.default_rng(1)
    lat, lon = land.covers[0].settlement.places(60, rng)
    ground = land.terrains[0].at(lat, lon)
    around = land.covers[0].around(lat, lon, ground, 33)
    assert (around[:, 16, 16] == land.covers[0].at(lat, lon, ground)).all()
    assert len(np.unique(around)) > 3


def test_people_look_near_towns_and_roads(land):
    rng = np.random.default_rng(2)
    settlement = land.covers[0].settlement
    looked = settlement.nearness(*settlement.places(400, rng))
    anywhere = settlement.nearness(*scattered(FRANCE, 400, rng))
    for near, far in zip(looked, anywhere, strict=True):
        assert near.mean() > 3 * far.mean()


def test_probabilities_are_those_that_observations_are_drawn_with(land):
    """Over many observations, the probability given to what was noted is on average what it should be."""
    notes = land.noted(4000, 0, np.random.default_rng(3))
    expected, found, surprise = [], [], []
    for rows, block in land.probabilities_of(notes):
        np.testing.assert_allclose(block.sum(axis=1), 1)
        found.append(block[np.arange(len(rows)), notes.species[rows]])
        expected.append(np.square(block).sum(axis=1))
        surprise.append(-np.log(found[-1]) + (block * np.log(block)).sum(axis=1))
    for difference in (np.concatenate(found) - np.concatenate(expected), np.concatenate(surprise)):
        assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(difference))
    native = land.flora.native[notes.species, 0]
    assert native.mean() > 0.999


def test_the_posterior_of_a_world_is_about_its_test_places(land_world):
    posterior = posterior_of(LITTLE, 4)
    dataset = open_dataset("geolifeclef-2020", land_world)
    test = dataset.observations.filter(pl.col("parts").list.contains("test"))
    assert set(posterior.items) == set(test["observation_id"]) and len(posterior.labels) == 40
    label = dict(test.select("observation_id", "label").iter_rows())
    guesses = zip(posterior.items, posterior.probabilities.argmax(axis=1), strict=True)
    first = [posterior.labels[guess] == label[item] for item, guess in guesses]
    best = json.loads((land_world / "WORLD.json").read_text())["best_possible"]
    assert np.mean(first) == pytest.approx(best["test_top_1"], abs=1e-3)
    assert best["test_recall_at_30"] >= best["test_top_1"]
    presence = geolifeclef.grow_land(LITTLE, 4).presence(np.array([46.0]), np.array([2.0]), 0)
    assert presence.shape == (1, 40) and (presence >= 0).all() and (presence < 1).all()
