"""The parts of a benchmark: as the release has them, or by a seeded draw over observations, blocks or groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.splits.assignment import dealt
from fieldmark.splits.grids import RADIUS_M, equal_area_cells
from fieldmark.splits.groups import grouped, links_of

PARTS = ("train", "val", "unlabeled", "test")
# How the domain of photos in the field is called, where a release has others beside it.
FIELD_WORDS = ("photo", "field")
# Of some observations, those that must not be drawn apart: the first of those that it belongs to.
Together = Callable[[pl.Series], Mapping[str, str]]


@dataclass(frozen=True)
class Seeded:
    """Shares of the observations of each class, drawn with a seed.

    Whole observations are drawn, so that photos of one specimen never lie on both sides, and class by class, so that
    each class with enough observations is on both sides. The first observation of a class always goes to train.
    Observations that belong together (copies of one photo) are drawn as one; those of several classes go to train.
    Of media in several domains, only observations of the domain that is asked about are drawn (`asked_domain`).
    """

    val: float
    test: float


@dataclass(frozen=True)
class InBlocks:
    """Shares of the blocks of a region, drawn with a seed: no block has places on both sides.

    Blocks are cells of equal area; their side is the longer side of the region divided by `across`, so that a valley
    and a continent are cut alike. Unlabeled places (the background of a region) of a block that is drawn for val are
    left out; those of one that is drawn for test go to test, as places where nothing is known to live.
    """

    val: float
    test: float
    across: int = 16


@dataclass(frozen=True)
class InGroups:
    """Shares of the observations, drawn with a seed: no two that share a value of a column lie on both sides.

    For observations that are not independent, such as animals in one photo. Each part gets its share of every class as
    far as whole groups allow (`assigning.dealt`), and every class has at least one group in train.

    Args:
        val, test: The shares.
        by: The column; observations without a value are groups of their own.
    """

    val: float
    test: float
    by: str


@dataclass(frozen=True)
class Official:
    """The parts of a release by the names they have there.

    Args:
        train, val, test, unlabeled: Names in the `parts` of the `media` table; None where there is none.
        otherwise: How to cut what the release leaves uncut. Without a val part, val is drawn from train, and so is
            test where that is missing too; without any part at all, both are drawn from everything.
    """

    train: str
    val: str | None = None
    test: str | None = None
    unlabeled: str | None = None
    otherwise: Seeded | InBlocks | InGroups | None = None


@dataclass(frozen=True)
class Cut:
    """Which media go to each part, and whether val was drawn by us (and may be trained on in the end)."""

    members: dict[str, pl.Series]
    val_is_drawn: bool


def cut(split: Official, media: pl.DataFrame, *, seed: int = 0, together: Together | None = None) -> Cut:
    """Assigns media to train, val, unlabeled and test.

    Args:
        split: The rule.
        media: One row per medium with `parts`, `observation_id`, `label` and, where there are several, `domain`.
        seed: The seed of what is drawn.
        together: Asked for what is drawn: which observations are drawn as one.
    """
    names = {"train": split.train, "val": split.val, "unlabeled": split.unlabeled, "test": split.test}
    members = {part: media["parts"].list.contains(pl.lit(name, pl.String)) for part, name in names.items()}
    rule = split.otherwise
    if rule is None or members["val"].any():
        return Cut(members, val_is_drawn=False)
    if isinstance(rule, InBlocks):
        return _cut_in_blocks(rule, media, members, seed)
    flat = not any(member.any() for member in members.values())
    pool = ~members["train"] if flat else members["train"]
    test = 0.0 if members["test"].any() else rule.test
    whole, pool = pool, pool & _drawable(media, members["test"])
    about = ["label", rule.by] if isinstance(rule, InGroups) else ["label"]
    observations = media.filter(pool).group_by("observation_id").agg(pl.col(about).first())
    first_of = together(observations["observation_id"]) if together is not None else {}
    if isinstance(rule, InGroups):
        drawn = _draw_groups(observations, first_of, rule.by, val=rule.val, test=test, seed=seed)
    else:
        drawn = _draw(observations, first_of, val=rule.val, test=test, seed=seed)
    part = media.select("observation_id").join(drawn, on="observation_id", how="left", maintain_order="left")["drawn"]
    fresh = {name: pool & (part == name).fill_null(False) for name in ("val", "test")}
    fresh["train"] = whole & ~(fresh["val"] | fresh["test"])
    if not test:
        fresh["test"] = members["test"]
    return Cut({**members, **fresh}, val_is_drawn=True)


def block_side_m(lat: NDArray[np.float64], lon: NDArray[np.float64], across: int) -> float:
    """The side of blocks of which `across` fit along the longer side of the extent of some places, in metres."""
    height = np.radians(np.ptp(lat)) * RADIUS_M
    width = np.radians(np.ptp(lon)) * RADIUS_M * np.cos(np.radians(lat.mean()))
    return float(max(height, width, float(across)) / across)


def _cut_in_blocks(rule: InBlocks, places: pl.DataFrame, members: dict[str, pl.Series], seed: int) -> Cut:
    lat, lon = (places[name].to_numpy() for name in ("lat", "lon"))
    train = members["train"].to_numpy()
    side = block_side_m(lat[train], lon[train], rule.across)
    row, column = equal_area_cells(lat, lon, side)
    cell = np.unique(np.column_stack([row, column]), axis=0, return_inverse=True)[1].ravel()
    blocks = np.random.default_rng(seed).permutation(np.unique(cell[train]))
    n_test = 0 if members["test"].any() else _share(rule.test, len(blocks), spare=1)
    n_val = _share(rule.val, len(blocks), spare=1 + n_test)
    in_test, in_val = np.isin(cell, blocks[:n_test]), np.isin(cell, blocks[n_test : n_test + n_val])
    unlabeled = members["unlabeled"].to_numpy()
    fresh = {
        "train": train & ~in_test & ~in_val,
        "val": train & in_val,
        "unlabeled": unlabeled & ~in_test & ~in_val,
        "test": (train | unlabeled) & in_test if n_test else members["test"].to_numpy(),
    }
    return Cut({name: pl.Series(name, member) for name, member in fresh.items()}, val_is_drawn=True)


def asked_domain(media: pl.DataFrame, test: pl.Series) -> str | None:
    """The domain that a benchmark asks about, among media of several: that of test, or else the one named as in use.

    Args:
        media: One row per medium, with `domain` where there are several.
        test: Which of them are test.
    """
    if "domain" not in media.columns or media["domain"].n_unique() < 2:
        return None
    tested = media.filter(test)["domain"].drop_nulls().unique().to_list()
    if len(tested) == 1:
        return str(tested[0])
    return field_domain(media["domain"].drop_nulls().unique().sort().to_list())


def field_domain(domains: Iterable[str]) -> str | None:
    """The domain of photos in the field, by its name; None where no name says so, or several do.

    >>> field_domain(["herbarium", "photo"]), field_domain(["day", "night"])
    ('photo', None)
    """
    named = [name for name in domains if any(word in name.lower() for word in FIELD_WORDS)]
    return named[0] if len(named) == 1 else None


def _drawable(media: pl.DataFrame, test: pl.Series) -> pl.Series:
    """Which media may be drawn: with several domains, observations wholly in the one that is asked about."""
    asked = asked_domain(media, test)
    if asked is None:
        return pl.Series([True]).new_from_index(0, len(media))
    within = (pl.col("domain") == asked).fill_null(False).all().over("observation_id")
    return media.select(within).to_series()


def _draw(
    observations: pl.DataFrame, first_of: Mapping[str, str], *, val: float, test: float, seed: int
) -> pl.DataFrame:
    """One row per observation with the part it was drawn for."""
    rng = np.random.default_rng(seed)
    first = pl.Series("first", [first_of.get(one, one) for one in observations["observation_id"]], dtype=pl.String)
    groups = observations.with_columns(first).group_by("first").agg("observation_id", "label")
    mixed = groups.filter(pl.col("label").list.n_unique() > 1)
    rows = [(one, "train") for ids in mixed["observation_id"] for one in ids]
    alike = groups.filter(pl.col("label").list.n_unique() == 1).with_columns(pl.col("label").list.first())
    members = dict(alike.select("first", "observation_id").iter_rows())
    for (_,), group in alike.sort("label", "first").group_by("label", maintain_order=True):
        ids = rng.permutation(group["first"].to_numpy())
        n_test = _share(test, len(ids), spare=1)
        n_val = _share(val, len(ids), spare=1 + n_test)
        parts = ["test"] * n_test + ["val"] * n_val + ["train"] * (len(ids) - n_test - n_val)
        rows += [(one, part) for first_id, part in zip(ids, parts, strict=True) for one in members[first_id]]
    return pl.DataFrame(rows, schema={"observation_id": pl.String, "drawn": pl.String}, orient="row")


def _draw_groups(
    observations: pl.DataFrame, first_of: Mapping[str, str], by: str, *, val: float, test: float, seed: int
) -> pl.DataFrame:
    """One row per observation with the part it was drawn for; those of a group, and copies, get the same."""
    names = [name for name, share in (("train", 1 - val - test), ("val", val), ("test", test)) if share > 0]
    rows = observations.sort("observation_id")
    if rows.is_empty() or len(names) == 1:
        return rows.select("observation_id", drawn=pl.lit("train"))
    copies = pl.Series([first_of.get(one, one) for one in rows["observation_id"]], dtype=pl.String)
    group = grouped(rows["observation_id"].to_list(), [links_of(rows[by].cast(pl.String)), links_of(copies)])
    label = rows["label"].fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
    shares = {"train": 1 - val - test, "val": val, "test": test}
    part = dealt(group, label, [shares[name] for name in names], seed)
    for one in np.setdiff1d(label, label[part == 0]):  # what nobody has learned cannot be named
        part[group == group[label == one].min()] = 0
    return rows.select("observation_id", drawn=pl.Series([names[int(number)] for number in part], dtype=pl.String))


def _share(fraction: float, count: int, *, spare: int) -> int:
    """How many of `count` to draw: the rounded share, at least one, but leaving `spare` behind; 0 for a share of 0."""
    if fraction == 0:
        return 0
    return max(0, min(max(1, round(fraction * count)), count - spare))
