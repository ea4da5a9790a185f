"""How often each label occurs in each context, learned from items with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import MisuseError
from fieldmark.questions.targets import Targets
from fieldmark.settings import setting
from fieldmark.steps.priors.base import Logs, PriorSource
from fieldmark.steps.priors.contexts import BACK_OFFS, check_context, columns_of, levels_of
from fieldmark.steps.priors.smoothing import HALF, hierarchical_ratios
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part

# Which strengths are tried where none is given, on so many folds of the observations.
STRENGTHS, FOLDS = (1.0, 3.0, 10.0, 30.0, 100.0), 5
CROSS_VALIDATED = "train"
# How far smoothing reaches around the year.
MOST_MONTHS = 5
# Where several labels may hold, nothing is held for more certain than this.
CERTAIN = 1 - 1e-6


@dataclass(frozen=True)
class Counts(PriorSource):
    """The share of each label in each context, shrunk toward wider contexts as `smoothing` says.

    Each observation counts once, however many photos it has. A value that train does not have, and one that is
    missing, give exactly what the next wider context gives; the widest is the distribution of labels in train.

    Args:
        context: Of what (`contexts`).
        strength: How many further observations each label and each context are lent; "train": the one of lowest log
            loss over five folds of the observations.
        borrow: The rank (genus, family, ...) from which labels with few observations borrow; empty for none.
        smooth: With months: the width of a bell curve, in months, by which observations count in neighboring months.
        back_off: `continent` shrinks toward all wider contexts in turn, `world` toward the labels of train at once.
        lent: The strength that was taken, found by `fit`.
        tried: The log loss per observation for each strength that was tried.
        groups: For each level the values that were seen.
        observations: How many observations it has learned from.
    """

    context: str
    strength: str = setting(CROSS_VALIDATED, above=0, also=(CROSS_VALIDATED,))
    borrow: str = ""
    smooth: float = setting(0.0, least=0)
    back_off: str = setting(BACK_OFFS[0], choices=BACK_OFFS)
    lent: float = 0.0
    tried: Mapping[str, float] = field(default_factory=dict)
    groups: Sequence[Sequence[str]] = ()
    observations: float = 0.0
    kind: ClassVar[str] = "counts"

    def check_settings(self) -> None:
        if self.smooth and "date" not in columns_of(self.context):
            raise MisuseError("smooth is the width, in months, of a bell curve around the year: it needs column=month.")

    def check(self, step: str, task: Task) -> None:
        check_context(step, self.context, task)

    def fit(self, part: Part, taxonomy: Taxonomy, *, several: bool) -> Self:
        taxon_of = _taxa(self.borrow, taxonomy)
        table = self._count(part, len(taxonomy.labels))
        tried: dict[str, float] = {}
        if self.strength == CROSS_VALIDATED:
            losses = {value: _held_out_loss(table, value, taxon_of, several=several) for value in STRENGTHS}
            tried = {f"{value:g}": round(loss, 6) for value, loss in losses.items()}
            lent = min(losses, key=lambda value: (losses[value], value))
        else:
            lent = float(self.strength)
        prior = _log_prior(table.counts, table.seen, several=several)
        ratios = hierarchical_ratios(table.counts, table.seen, table.levels, lent, taxon_of)
        logs = [_log_ratios(level, prior, several=several) for level in ratios]
        groups = tuple(tuple(names) for names in table.groups)
        fitted = replace(self, lent=lent, tried=tried, groups=groups, observations=round(float(table.seen.sum()), 3))
        return fitted.with_arrays({"log_prior": prior, "log_ratios": np.concatenate(logs).astype(np.float32)})

    def _count(self, part: Part, n_labels: int) -> _LeafCounts:
        """The observations of a part by leaf, label and fold."""
        if part.targets is None:
            raise ValueError("counts are made of items with labels")
        ids, per_item = np.unique(part.items["observation_id"].to_numpy(), return_inverse=True)
        known = part.targets.known | (part.targets.shape == "pairs")  # an item of no label at all is one of a pair's
        weight = known / np.maximum(np.bincount(per_item, weights=known, minlength=len(ids)), 1)[per_item]
        moves = _months(self.smooth)
        frames = [self._levels(part.items, months_later=move) for move in moves]
        columns = [pl.concat([frame[level] for frame in frames]) for level in range(len(frames[0]))]
        shares = np.concatenate([share * weight for share in moves.values()])
        rows, codes = _pairs(part.targets)
        rows = np.concatenate([rows + number * len(part) for number in range(len(moves))])
        return _tabled(
            columns, shares, np.tile(per_item % FOLDS, len(moves)), rows, np.tile(codes, len(moves)), n_labels
        )

    def _levels(self, items: pl.DataFrame, *, months_later: int = 0) -> list[pl.Series]:
        levels = levels_of(self.context, items, months_later=months_later)
        return levels if self.back_off == BACK_OFFS[0] else levels[-1:]

    @property
    def log_prior(self) -> Logs:
        return np.asarray(self.arrays["log_prior"])

    def log_ratio(self, items: pl.DataFrame) -> Logs:
        absent = [name for name in columns_of(self.context) if name not in items.columns]
        known = items.with_columns(pl.lit(None, pl.String).alias(name) for name in absent)
        found, first = np.full(len(items), -1), 0
        for values, names in zip(self._levels(known), self.groups, strict=True):
            row_of = {name: first + row for row, name in enumerate(names)}
            own = np.array([row_of.get(value, -1) for value in values], dtype=np.int64)
            found, first = np.where(own >= 0, own, found), first + len(names)
        return np.asarray(self._padded[found])

    @cached_property
    def _padded(self) -> Logs:
        """The table with a last row of zeros, which -1 leads to."""
        table = self.arrays["log_ratios"]
        return np.vstack([table, np.zeros((1, table.shape[1]))])


class _LeafCounts(NamedTuple):
    """Observations by leaf: by the combination of values of all levels.

    Args:
        counts: For each fold and leaf how many observations each label has.
        seen: For each fold and leaf how many observations there are.
        levels: For each level the number of the context of each leaf, -1 where it is not known.
        groups: For each level the names of its contexts.
    """

    by_fold: NDArray[np.float64]
    seen_by_fold: NDArray[np.float64]
    levels: list[NDArray[np.int64]]
    groups: list[list[str]]

    @property
    def counts(self) -> NDArray[np.float64]:
        return np.asarray(self.by_fold.sum(axis=0))

    @property
    def seen(self) -> NDArray[np.float64]:
        return np.asarray(self.seen_by_fold.sum(axis=0))


def _tabled(
    columns: Sequence[pl.Series],
    weight: NDArray[np.float64],
    fold: NDArray[np.int64],
    rows: NDArray[np.int64],
    codes: NDArray[np.int32],
    n_labels: int,
) -> _LeafCounts:
    frame = pl.DataFrame({str(number): column for number, column in enumerate(columns)})
    leaves = frame.unique().sort(frame.columns, nulls_last=True).with_row_index("leaf")
    leaf = frame.join(leaves, on=frame.columns, how="left", nulls_equal=True, maintain_order="left")["leaf"].to_numpy()
    by_fold, seen = np.zeros((FOLDS, len(leaves), n_labels)), np.zeros((FOLDS, len(leaves)))
    np.add.at(seen, (fold, leaf), weight)
    np.add.at(by_fold, (fold[rows], leaf[rows], codes), weight[rows])
    groups = [leaves[name].drop_nulls().unique().sort().to_list() for name in frame.columns]
    levels = []
    for name, names in zip(frame.columns, groups, strict=True):
        number_of = {value: number for number, value in enumerate(names)}
        levels.append(np.array([number_of.get(value, -1) for value in leaves[name]], dtype=np.int64))
    return _LeafCounts(by_fold, seen, levels, groups)


def _pairs(targets: Targets) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Row and label of every label that holds."""
    if targets.shape == "codes":
        rows = np.flatnonzero(targets.known)
        return rows, targets.codes[rows]
    row: NDArray[np.int32] = targets.row  # type: ignore[attr-defined]
    code: NDArray[np.int32] = targets.code  # type: ignore[attr-defined]
    return row.astype(np.int64), code


def _log_prior(counts: NDArray[np.float64], seen: NDArray[np.float64], *, several: bool) -> Logs:
    """The log-probability of each label in any context; one that was never seen has a little."""
    labels = counts.sum(axis=0) + HALF
    return np.asarray(np.log(labels / (seen.sum() + 2 * HALF if several else labels.sum())))


def _log_ratios(ratios: NDArray[np.float64], log_prior: Logs, *, several: bool) -> Logs:
    """Ratios as logs; where one label holds, such that the probabilities of each context sum to one."""
    logs = np.log(ratios)
    if several:
        return np.asarray(np.minimum(log_prior + logs, np.log(CERTAIN)) - log_prior)
    return np.asarray(logs - np.log(np.exp(log_prior + logs).sum(axis=1, keepdims=True)))


def _held_out_loss(table: _LeafCounts, strength: float, taxon_of: NDArray[np.int32] | None, *, several: bool) -> float:
    """The log loss per observation, each fold judged by the counts of the others."""
    counts, seen, loss = table.counts, table.seen, 0.0
    for own, own_seen in zip(table.by_fold, table.seen_by_fold, strict=True):
        prior = _log_prior(counts - own, seen - own_seen, several=several)
        ratios = hierarchical_ratios(counts - own, seen - own_seen, table.levels, strength, taxon_of)
        per_leaf = np.ones_like(counts)
        for contexts, level in zip(table.levels, ratios, strict=True):
            per_leaf[contexts >= 0] = level[contexts[contexts >= 0]]
        logs = prior + _log_ratios(per_leaf, prior, several=several)
        loss -= float((own * logs).sum())
        if several:
            loss -= float(((own_seen[:, None] - own) * np.log(-np.expm1(logs))).sum())
    return loss / max(float(seen.sum()), 1.0)


def _taxa(rank: str, taxonomy: Taxonomy) -> NDArray[np.int32] | None:
    if not rank:
        return None
    if rank not in taxonomy.ranks:
        known = ", ".join(taxonomy.ranks) or "no rank at all"
        raise MisuseError(f"A prior cannot borrow from the {rank} of a label: the taxa of this release tell {known}.")
    return taxonomy.ranks[rank][1]


def _months(width: float) -> dict[int, float]:
    """By how many months observations are moved around the year, each with its share; a bell curve of this width."""
    if width <= 0:
        return {0: 1.0}
    shares = {move: float(np.exp(-0.5 * (move / width) ** 2)) for move in range(-MOST_MONTHS, MOST_MONTHS + 1)}
    kept = {move: share for move, share in shares.items() if share > 1e-4}
    return {move: share / sum(kept.values()) for move, share in kept.items()}
