"""How sets are cut: as the release does it, or by a seeded draw over observations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

PARTS = ("train", "val", "unlabeled", "test")


@dataclass(frozen=True)
class Seeded:
    """Shares of the observations of each class, drawn with a seed.

    Whole observations are drawn, so that photos of one specimen never lie on both sides, and class by class, so that
    each class with enough observations is on both sides. The first observation of a class always goes to train.
    """

    val: float
    test: float


@dataclass(frozen=True)
class Official:
    """The parts of a release by the names they have there.

    Args:
        train, val, test, unlabeled: Values of the `part` column of the `media` table; None where there is none.
        otherwise: How to cut what the release leaves uncut. Without a val part, val is drawn from train, and so is
            test where that is missing too; without any part at all, both are drawn from everything.
    """

    train: str
    val: str | None = None
    test: str | None = None
    unlabeled: str | None = None
    otherwise: Seeded | None = None


@dataclass(frozen=True)
class Cut:
    """Which part each medium goes to, and whether val was drawn by us (and may be trained on in the end)."""

    part: pl.Series
    val_is_drawn: bool


def cut(split: Official, media: pl.DataFrame, *, seed: int = 0) -> Cut:
    """Assigns each medium to train, val, unlabeled, test or no part.

    Args:
        split: The rule.
        media: One row per medium with `part`, `observation_id` and `label`.
        seed: The seed of what is drawn.
    """
    names = {split.train: "train", split.val: "val", split.test: "test", split.unlabeled: "unlabeled"}
    part = media["part"].replace_strict({k: v for k, v in names.items() if k is not None}, default=None)
    part = part.cast(pl.String).alias("part")
    rule = split.otherwise
    if rule is None or (part == "val").any():
        return Cut(part, val_is_drawn=False)
    pool = part.is_null() if part.is_null().all() else (part == "train").fill_null(False)
    test = 0.0 if (part == "test").any() else rule.test
    drawn = _draw(media.filter(pool), val=rule.val, test=test, seed=seed)
    where = pl.DataFrame({"observation_id": media["observation_id"], "pool": pool, "part": part})
    joined = where.join(drawn, on="observation_id", how="left", maintain_order="left")
    return Cut(joined.select(pl.when("pool").then("drawn").otherwise("part").alias("part")).to_series(), True)


def _draw(media: pl.DataFrame, *, val: float, test: float, seed: int) -> pl.DataFrame:
    """One row per observation with the part it was drawn for."""
    rng = np.random.default_rng(seed)
    one_each = media.group_by("observation_id").agg(pl.col("label").first()).sort("label", "observation_id")
    rows: list[tuple[str, str]] = []
    for (_,), group in one_each.group_by("label", maintain_order=True):
        ids = rng.permutation(group["observation_id"].to_numpy())
        n_test = _share(test, len(ids), spare=1)
        n_val = _share(val, len(ids), spare=1 + n_test)
        parts = ["test"] * n_test + ["val"] * n_val + ["train"] * (len(ids) - n_test - n_val)
        rows += zip(ids, parts, strict=True)
    return pl.DataFrame(rows, schema={"observation_id": pl.String, "drawn": pl.String}, orient="row")


def _share(fraction: float, count: int, *, spare: int) -> int:
    """How many of `count` to draw: the rounded share, at least one, but leaving `spare` behind; 0 for a share of 0."""
    if fraction == 0:
        return 0
    return max(0, min(max(1, round(fraction * count)), count - spare))
