"""What the month alone tells about mushrooms, and the country alone about snakes: real tables, no photos.

`mushroom_observer_stream`: one row for each name, date and observer; those dated before 2015 teach, later ones test;
the unit is the observer. `snakeclef_2021_tables`: microtrain teaches, microval tests, rows without a country are left
out; the unit is the photo. Labels are all names of both; those that train lacks keep a floor. Every strength comes from
five folds of train. "P(label given context) smoothed" is the plain Dirichlet prior, level by level, which the steps do
not use.
This form of smoothing, and which strengths are tried, were settled after a look at the losses on these two tests: the
gain over the plain prior is no independent confirmation.
"""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.questions.targets import LabelTargets
from fieldmark.steps.priors.contexts import levels_of
from fieldmark.steps.priors.counts import STRENGTHS, Counts
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part
from studies.evidence.pairing import compared
from studies.evidence.results import real_data

SPLIT_YEAR, FOLDS = 2015, 5
PLAIN, SMOOTHED = "no context", "P(label given context) smoothed"


def run() -> dict[str, Any] | None:
    """Log loss and top-10 of each prior, with paired differences from no context."""
    stream, snakes = real_data("mushroom_observer_stream"), real_data("snakeclef_2021_tables")
    if stream is None or snakes is None:
        return None
    sets = {"mushrooms by month": _mushrooms(stream), "snakes by country": _snakes(snakes)}
    return {"simulated": False, "about": " ".join(str(__doc__).split("\n\n", 1)[1].split()), "sets": sets}


def _mushrooms(folder: Path) -> dict[str, Any]:
    rows = pl.read_csv(lzma.decompress((folder / "stream.csv.xz").read_bytes()), infer_schema=False)
    rows = rows.unique(["name", "created", "observer"], maintain_order=True)
    rows = rows.select(
        "name", pl.col("created").str.to_date(strict=False).alias("date"), pl.col("observer").alias("unit")
    )
    rows = rows.drop_nulls()
    later = pl.col("date").dt.year() >= SPLIT_YEAR
    variants = {"counts": Counts("month"), "counts, smooth=1": Counts("month", smooth=1.0)}
    return _study(rows.filter(~later), rows.filter(later), variants)


def _snakes(folder: Path) -> dict[str, Any]:
    parts = []
    for name in ("microtrain", "microval"):
        rows = pl.read_csv(folder / f"{name}.csv.gz", infer_schema=False)
        rows = rows.select(pl.col("binomial").alias("name"), "country", pl.col("UUID").alias("unit"))
        parts.append(rows.filter(pl.col("country").is_not_null() & (pl.col("country").str.to_lowercase() != "unknown")))
    return _study(
        parts[0], parts[1], {"counts": Counts("country"), "counts, borrow=genus": Counts("country", borrow="genus")}
    )


def _study(train: pl.DataFrame, test: pl.DataFrame, variants: dict[str, Counts]) -> dict[str, Any]:
    labels = Labels.of([*train["name"], *test["name"]])
    taxa = pl.DataFrame({"label": labels.names, "genus": [name.split(" ")[0] for name in labels.names]})
    codes, truth = labels.encode(train["name"]), labels.encode(test["name"])
    ids = pl.int_range(pl.len()).cast(pl.String)
    part = Part(train.with_columns(item_id=ids, observation_id=ids), LabelTargets(codes))
    fitted = {name: one.fit(part, Taxonomy.of(labels, taxa), several=False) for name, one in variants.items()}
    context = next(iter(variants.values())).context
    first = next(iter(fitted.values()))
    logs = {PLAIN: np.tile(first.log_prior, (1, 1)), SMOOTHED: _smoothed(context, train, codes, test, len(labels))}
    logs |= {name: one.log_prob(_distinct(context, test)[0]) for name, one in fitted.items()}
    row = _distinct(context, test)[1]
    loss, top = {}, {}
    for name, table in logs.items():
        own = np.zeros_like(row) if name == PLAIN else row
        loss[name] = -table[own, truth]
        rank = np.array([(table[r] > table[r, c]).sum() for r, c in zip(own, truth, strict=True)])
        top[name] = (rank < 10).astype(np.float64)
    units = np.unique(test["unit"].to_numpy(), return_inverse=True)[1]
    return {
        "train": len(train),
        "test": len(test),
        "labels": len(labels),
        "units": int(units.max()) + 1,
        "strength": {name: one.lent for name, one in fitted.items()},
        "log_loss": compared(loss, units, PLAIN, key="less_no_context", higher_is_better=False),
        "top_10": compared(top, units, PLAIN, key="less_no_context", higher_is_better=True),
    }


def _distinct(context: str, items: pl.DataFrame) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """One item for each context, and for each item which of them it has."""
    narrowest = levels_of(context, items)[-1].fill_null("")
    _, first, row = np.unique(narrowest.to_numpy(), return_index=True, return_inverse=True)
    return items[first.tolist()], row


def _smoothed(
    context: str, train: pl.DataFrame, codes: NDArray[np.int32], test: pl.DataFrame, n_labels: int
) -> NDArray[np.float64]:
    """The log of P(label | context) with a Dirichlet prior on it alone; its strength from folds of train."""
    fold = np.arange(len(train)) % FOLDS
    own = levels_of(context, train)
    losses = {}
    for strength in STRENGTHS:
        total = 0.0
        for number in range(FOLDS):
            kept = fold != number
            held = train.filter(pl.Series(~kept))
            items, row = _distinct(context, held)
            table = _shares(
                [one.filter(pl.Series(kept)) for one in own], codes[kept], strength, items, context, n_labels
            )
            total -= float(np.log(table[row, codes[~kept]]).sum())
        losses[strength] = total
    best = min(losses, key=lambda strength: losses[strength])
    return np.log(_shares(own, codes, best, _distinct(context, test)[0], context, n_labels))


def _shares(
    levels: list[pl.Series],
    codes: NDArray[np.int32],
    strength: float,
    items: pl.DataFrame,
    context: str,
    n_labels: int,
) -> NDArray[np.float64]:
    everywhere = np.bincount(codes, minlength=n_labels) + 0.5
    shares = np.tile(everywhere / everywhere.sum(), (len(items), 1))
    for seen, wanted in zip(levels, levels_of(context, items), strict=True):
        for row, value in enumerate(wanted):
            own = np.bincount(codes[(seen == value).fill_null(False).to_numpy()], minlength=n_labels)
            shares[row] = (own + strength * shares[row]) / (own.sum() + strength)
    return shares
