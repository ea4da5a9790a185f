"""A table cut by a rule: into train, val and test, or into folds; and what two sides of a cut share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.splits.assignment import dealt, drawn_groups, folds_of, shares_of
from fieldmark.splits.groups import Links, grouped
from fieldmark.splits.rules import Rule

Numbers = NDArray[np.int64]
Counted = Literal["rows", "groups"]
# Rows that a person leaves out on purpose stand in a split under this name.
UNUSED = "unused"


@dataclass(frozen=True)
class Division:
    """A table that was cut.

    Args:
        parts: The name of the part of each row.
        groups: The number of the group of each row; groups are never parted.
    """

    parts: pl.Series
    groups: Numbers

    def rows(self) -> dict[str, int]:
        """How many rows each part has."""
        return dict(self.parts.value_counts().sort(self.parts.name).iter_rows())

    def group_counts(self) -> dict[str, int]:
        """How many groups each part has."""
        table = pl.DataFrame({"part": self.parts, "group": self.groups})
        return dict(table.group_by("part").agg(pl.col("group").n_unique()).sort("part").iter_rows())


@dataclass(frozen=True)
class Shared:
    """How many of some things (sites, days, copies) lie in more than one part.

    Args:
        what: What they are.
        shared, total: How many do, of how many.
        example: One that does; empty for none.
    """

    what: str
    shared: int
    total: int
    example: str = ""


def divide(
    ids: Sequence[str],
    links: Sequence[Links],
    *,
    shares: Mapping[str, float],
    classes: pl.Series | None = None,
    counted: Counted = "rows",
    seed: int = 0,
    where: object = "the table",
) -> Division:
    """Cuts rows into train, val and test.

    Args:
        ids: One for each row, all different: the cut does not depend on the order of rows.
        links: What holds rows together.
        shares: Of val and test; train gets the rest.
        classes: The class of each row, of which each part gets its share as well.
        counted: Whether shares are of rows, dealt out as evenly as the groups allow, or of groups, by a plain draw.
        seed: The seed of the draw.
        where: What to call the table in messages.

    Raises:
        InputError: When a part would be empty.
    """
    of_all, groups = shares_of(shares), grouped(ids, links)
    if counted == "groups":
        part = drawn_groups(groups, list(of_all.values()), seed)
    else:
        part = dealt(groups, _codes(classes), list(of_all.values()), seed)
    names = list(of_all)
    for number, name in enumerate(names):
        if not (part == number).any():
            found = f"{int(groups.max()) + 1} group(s) that must not be parted, none of them for {name}"
            hint = "Give larger shares, or a rule that makes smaller groups."
            raise InputError(where, found=found, expected="at least one for each part", hint=hint)
    return Division(pl.Series("part", [names[number] for number in part], dtype=pl.String), groups)


def divide_into_folds(
    ids: Sequence[str], links: Sequence[Links], *, number: int, classes: pl.Series | None = None, seed: int = 0
) -> Division:
    """Cuts rows into folds, `fold-1` and so on, by the same rules."""
    groups = grouped(ids, links)
    fold = folds_of(groups, _codes(classes), number, seed)
    width = len(str(number))
    return Division(pl.Series("part", [f"fold-{one + 1:0{width}}" for one in fold], dtype=pl.String), groups)


def balanced_by(rule: Rule, classes: pl.Series | None) -> pl.Series | None:
    """The classes that parts can be balanced by: none where a rule keeps them whole."""
    return None if rule.keeps_classes_whole else classes


def shared_between(parts: pl.Series, links: Links, names: Sequence[str], what: str) -> Shared:
    """How many keys lie in more than one part; rows that are left out do not count.

    Args:
        parts: The part of each row.
        links: The rows of each key.
        names: What to call each row in an example.
        what: What the keys are.
    """
    table = pl.DataFrame({"key": links.keys, "row": links.rows, "part": parts.gather(links.rows)})
    spread = (
        table.filter(pl.col("part") != UNUSED)
        .group_by("key")
        .agg(pl.col("part").n_unique().alias("parts"), pl.col("row").min())
        .sort("row")
    )
    torn = spread.filter(pl.col("parts") > 1)
    return Shared(what, len(torn), len(spread), names[torn["row"][0]] if len(torn) else "")


def row_by_row(ids: Sequence[str], division: Division, seed: int) -> pl.Series:
    """The same numbers of rows in each part, drawn row by row as if nothing belonged together."""
    order = pl.DataFrame({"id": pl.Series(ids, dtype=pl.String)}).with_row_index().sort("id")["index"].to_numpy()
    parts = np.array(division.parts.sort().to_list(), dtype=object)
    drawn = np.empty(len(ids), dtype=object)
    drawn[order] = parts[np.random.default_rng(seed).permutation(len(ids))]
    return pl.Series("part", drawn.tolist(), dtype=pl.String)


def _codes(classes: pl.Series | None) -> Numbers | None:
    """Classes as numbers in the order of their names; rows without a class are one of their own."""
    return None if classes is None else classes.rank("dense").fill_null(0).to_numpy().astype(np.int64)
