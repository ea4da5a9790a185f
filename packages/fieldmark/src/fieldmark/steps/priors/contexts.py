"""The context of items: the values of a column, and the wider values that each of them backs off to.

| context | levels, widest first |
|---|---|
| `month` | season (three months), month; from the date |
| `season` | season; from the date |
| `place` | cells of 200, 50 and 10 km around latitude and longitude, all of the same area |
| `country` | continent, country; the continent is that of the country, and the column `continent` where it has none |
| any other column of the items | its values |
| `habitat/month` | the levels of habitat, then those of month within each habitat |
"""

from __future__ import annotations

import numpy as np
import polars as pl

from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import MisuseError
from fieldmark.splits.grids import equal_area_cells
from fieldmark.steps.priors.countries import place_of
from fieldmark.tables.inputs import CONTEXT, input_of

WITHIN = "/"
# The sides of the cells that a place lies in, widest first; each is a multiple of the next, so that cells are nested.
CELLS_KM = (200, 50, 10)
# What a context backs off to: all wider ones in turn, or none but the labels of train.
BACK_OFFS = ("continent", "world")
SEASONS = ("Dec-Feb", "Mar-May", "Jun-Aug", "Sep-Nov")
# What stands between the values of a context within another.
JOINED = " / "
# Columns of the items that identify an item or its unit: a prior over those would learn the items by heart.
IDENTIFYING = ("item_id", "observation_id", "media_ids", "recording", "start_s", "end_s", "observer")


def columns_of(context: str) -> tuple[str, ...]:
    """The columns of the items that a context is read from.

    >>> columns_of("habitat/month")
    ('habitat', 'date')
    """
    columns = {"month": ("date",), "season": ("date",), "place": ("lat", "lon")}
    return tuple(column for name in context.split(WITHIN) for column in columns.get(name, (name,)))


def inputs_of(context: str) -> tuple[str, ...]:
    """The inputs that a context is read from, each once.

    >>> inputs_of("habitat/month"), inputs_of("place"), inputs_of("stand_age")
    (('habitat', 'date'), ('place',), ('stand_age',))
    """
    return tuple(dict.fromkeys(input_of(column) for column in columns_of(context)))


def check_context(step: str, context: str, task: Task) -> None:
    """Refuses a context that a task does not let anybody read, before anything is opened.

    Raises:
        MisuseError: Names the input that would be needed.
    """
    for column in columns_of(context):
        if not column:
            raise MisuseError(f"The step {step} needs a column, for example {step}:column=habitat; found {context!r}.")
        if column in IDENTIFYING:
            raise MisuseError(f"The step {step} takes no prior over {column}: it identifies items, not contexts.")
        for declared in CONTEXT:
            if column in declared.columns and declared.name not in task.inputs:
                allowed = ", ".join(task.inputs)
                raise MisuseError(
                    f"The step {step} reads {column}, which the task does not provide; it provides {allowed}."
                )


def levels_of(context: str, items: pl.DataFrame, *, months_later: int = 0) -> list[pl.Series]:
    """The values of a context for each item, one column of texts per level, widest first; null where not known.

    Args:
        context: The context, see above.
        items: The items.
        months_later: As if every date were so many months later in the year, for smoothing around the year.

    Raises:
        MisuseError: When the items have no such column, or one of numbers with decimals.
    """
    levels: list[pl.Series] = []
    for name in context.split(WITHIN):
        own = _levels(name, items, months_later)
        if levels:
            outer = levels[-1]
            own = [pl.select(pl.concat_str(outer, one, separator=JOINED)).to_series() for one in own]
        levels += own
    return levels


def _levels(name: str, items: pl.DataFrame, months_later: int) -> list[pl.Series]:
    for column in columns_of(name):
        if column not in items.columns:
            known = ", ".join(one for one in items.columns if one not in IDENTIFYING)
            raise MisuseError(f"A prior finds no column {column!r} among the inputs of the task: {known}.")
    if name == "place":
        return _cells(items)
    column = columns_of(name)[0]
    values = items[column]
    if column == "date":
        month = ((values.cast(pl.Date).dt.month().cast(pl.Int32) - 1 + months_later) % 12) + 1
        season = (month % 12 // 3).replace_strict(dict(enumerate(SEASONS)), return_dtype=pl.String)
        return [season] if name == "season" else [season, month.cast(pl.String).str.zfill(2)]
    if values.dtype.is_float() or values.dtype.is_nested():
        raise MisuseError(f"A prior counts categories, and {column} holds {values.dtype}: give it as classes.")
    texts = values.cast(pl.String)
    if column == "country":
        stated = items["continent"].cast(pl.String) if "continent" in items.columns else [None] * len(items)
        places = [place_of(*pair) for pair in zip(texts, stated, strict=True)]
        return [pl.Series([place[level] for place in places], dtype=pl.String) for level in (1, 0)]
    stripped = texts.str.strip_chars()
    return [stripped.set(stripped == "", None)]


def _cells(items: pl.DataFrame) -> list[pl.Series]:
    """The cells that each place lies in, one column per side; null where the place is missing or none on Earth."""
    lat, lon = (items[name].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy() for name in ("lat", "lon"))
    there = (np.abs(lat) <= 90) & (np.abs(lon) <= 180)
    levels = []
    for side in CELLS_KM:
        row, column = equal_area_cells(np.where(there, lat, 0.0), np.where(there, lon, 0.0), 1000.0 * side)
        cells = zip(row.tolist(), column.tolist(), there.tolist(), strict=True)
        levels.append(pl.Series([f"{side} km {y} {x}" if known else None for y, x, known in cells], dtype=pl.String))
    return levels
