"""Train, val and test on the map, against the tables of a land."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.releases import open_dataset
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.section import Context
from fieldmark.reports.sections import SECTIONS, held_out


@pytest.fixture(scope="module")
def context(land_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Context:
    run = tmp_path_factory.mktemp("held-out") / "run"
    fieldmark.fit("geolifeclef-2020", land_world, "frequent", run)
    return load_context([run])


def test_the_numbers_are_those_of_the_release(context: Context, land_world: Path) -> None:
    rows = held_out.placed(context)
    observations = open_dataset("geolifeclef-2020", land_world).observations.explode("parts")
    facts = {one.part: one for one in held_out.held_out(rows)}
    for part, one in facts.items():
        own = observations.filter(pl.col("parts") == part)
        assert (one.places, one.blocks) == (len(own), own["quadrat"].n_unique())
    assert held_out.torn_blocks(rows) == 0
    assert facts["train"].apart is None and facts["test"].apart is not None
    test, train = (
        observations.filter(pl.col("parts") == part).select("lat", "lon").to_numpy() for part in ("test", "train")
    )
    up, across = (np.radians(test[:, None, axis] - train[None, :, axis]) for axis in (0, 1))
    narrow = np.cos(np.radians(test[:, None, 0]))
    flat = 6_371_007 * np.sqrt(up**2 + (across * narrow) ** 2)  # near enough for the nearest of all
    assert facts["test"].apart.nearest_m == pytest.approx(flat.min(), rel=0.02)


def test_a_quadrat_on_both_sides_is_told(context: Context) -> None:
    rows = held_out.placed(context)
    one = rows.filter(pl.col("part") == "train").head(1).with_columns(part=pl.lit("test"))
    assert held_out.torn_blocks(pl.concat([rows, one])) == 1
    assert held_out.torn_blocks(rows.drop("quadrat")) is None


def test_countries_have_a_map_each_and_a_quadrat_is_one_dot(context: Context) -> None:
    rows = held_out.placed(context)
    found = held_out.regions(rows)
    assert list(found) == ["United States", "France"]
    dots = sum(len(places) for parts in found.values() for places in parts.values())
    assert dots == rows.select("quadrat", "part").n_unique()
    assert list(held_out.regions(rows.drop("country"))) == [""]
    section = SECTIONS["held-out"]
    assert section.applies(context)
    page = section.render(context)
    assert "No quadrat lies in more than one part." in page and page.count("<svg") == 1
