"""Which places were held out: train, val and test on one map, and how far test lies from train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from markupsafe import Markup

from fieldmark.reports.charts.maps import HELD_OUT, MapExtent, MapPoints, paint_held_out
from fieldmark.reports.charts.plots import draw
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.splits.quadrats import Apart, apart

WIDTH, MOST_HEIGHT = 1036, 520
BLOCK = "quadrat"
# What a reader calls a country by its code.
COUNTRIES = {"fr": "France", "us": "United States"}


@dataclass(frozen=True)
class HeldOut:
    """What lies in one part.

    Args:
        part: Its name.
        places, blocks: How many places, and how many quadrats where the release has those.
        apart: How far its places lie from train; None for train itself.
    """

    part: str
    places: int
    blocks: int | None
    apart: Apart | None


class HeldOutPlaces(Section):
    """Maps of the parts of a release of places."""

    name = "held-out"
    title = "Train and test on the map"
    shapes = ("codes", "pairs")

    def applies(self, context: Context) -> bool:
        if not context.opened.dataset.media.is_empty():
            return False
        rows = placed(context)
        return {"train", "test"} <= set(rows["part"])

    def render(self, context: Context) -> str:
        rows = placed(context)
        facts = held_out(rows)
        return render(
            "sections/held_out.html.j2",
            context=context,
            facts=facts,
            torn=torn_blocks(rows),
            blocks=BLOCK in rows.columns,
            map=_draw(regions(rows)),
        )


def placed(context: Context) -> pl.DataFrame:
    """The places of train, val and test: `part, lat, lon` and, where they are known, `quadrat` and `country`."""
    tables = []
    for part in HELD_OUT:
        items = context.opened.items.get(part)
        if items is not None and len(items):
            kept = [name for name in (BLOCK, "country") if name in items.columns]
            tables.append(items.select(pl.lit(part).alias("part"), "lat", "lon", *kept))
    rows = pl.concat(tables, how="diagonal")
    return rows.filter(pl.col("lat").is_not_null() & pl.col("lon").is_not_null())


def held_out(rows: pl.DataFrame) -> list[HeldOut]:
    """What lies in each part, and how far from train."""
    distances = apart(rows["lat"].to_numpy(), rows["lon"].to_numpy(), rows["part"].to_numpy())
    told = []
    for part in HELD_OUT:
        own = rows.filter(pl.col("part") == part)
        if len(own):
            blocks = own[BLOCK].n_unique() if BLOCK in own.columns else None
            told.append(HeldOut(part, len(own), blocks, distances.get(part)))
    return told


def torn_blocks(rows: pl.DataFrame) -> int | None:
    """How many quadrats lie in more than one part; None where the release has none."""
    if BLOCK not in rows.columns:
        return None
    return int((rows.group_by(BLOCK).agg(pl.col("part").n_unique())["part"] > 1).sum())


def regions(rows: pl.DataFrame) -> dict[str, dict[str, MapPoints]]:
    """The places of each part, each quadrat once, by country where the release tells countries apart."""
    codes: list[str | None] = [None]
    if "country" in rows.columns and rows["country"].is_not_null().all() and rows["country"].n_unique() <= 3:
        codes = rows["country"].unique().sort(descending=True).to_list()
    found = {}
    for code in codes:
        own = rows if code is None else rows.filter(pl.col("country") == code)
        parts = {}
        for part in HELD_OUT:
            some = own.filter(pl.col("part") == part)
            if BLOCK in some.columns:
                some = some.group_by(BLOCK, maintain_order=True).agg(pl.col("lat").mean(), pl.col("lon").mean())
            if len(some):
                parts[part] = MapPoints(some["lat"].to_numpy().astype(np.float64), some["lon"].to_numpy())
        if parts:
            found["" if code is None else COUNTRIES.get(code, code)] = parts
    return found


def _draw(places: Mapping[str, Mapping[str, MapPoints]]) -> Markup:
    extents = [MapExtent.around(parts) for parts in places.values()]
    height = min(round((WIDTH - 60 * len(extents)) / sum(1 / extent.shape for extent in extents)), MOST_HEIGHT) + 60
    return draw(
        "held-out-map",
        partial(paint_held_out, regions=places),
        width=WIDTH,
        height=height,
        description="A map of the places that are train in blue, val in green and test in orange.",
    )


SECTION = HeldOutPlaces()
