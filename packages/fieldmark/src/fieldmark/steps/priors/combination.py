"""How a prior and predictions are put together, and how much the prior counts.

Where one label holds, with the posterior P(c | photo) that a classifier gives, and renormalized:

    df20:     P(c | photo) (P(c | context) / P(c))^exponent
    product:  P(c | photo)  P(c | context)^exponent

`df20` is for classifiers that have learned how frequent labels are; `product` for those that have learned from balanced
classes, which then learn the frequencies from the prior, also where nothing is known about the context. The two are the
same where all labels are alike without a context.

Where several labels may hold, the exponent times the difference of the log-odds with and without the context is added
to the log-odds of each label. Exponents minimize the log loss on val, which is convex in them: there is one minimum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fieldmark.runs.code_sets import rows_of
from fieldmark.runs.label_scores import LabelScores, log_softmax
from fieldmark.steps.multilabel import chances_of, logits_of
from fieldmark.steps.priors.base import Logs

Rule = Literal["df20", "product"]
RULES: tuple[Rule, ...] = ("df20", "product")
# Exponents are sought from 0 to this; classifiers that are far too sure of themselves need more than 1.
LARGEST = 4.0
BLOCK_ITEMS = 1024
# What one exponent of each prior adds to each label of some items: priors x items x labels.
Shifts = Callable[[slice], NDArray[np.float64]]


class PriorCombination(ABC):
    """Predictions and what priors add to them, a block of items at a time."""

    def __init__(self, predictions: LabelScores, shifts: Shifts) -> None:
        self.predictions, self.shifts = predictions, shifts

    def blocks(self) -> Iterator[slice]:
        """Some rows after the others."""
        for start in range(0, len(self.predictions.items), BLOCK_ITEMS):
            yield slice(start, start + BLOCK_ITEMS)

    @abstractmethod
    def combined(self, exponents: Sequence[float]) -> LabelScores:
        """The predictions with each prior taken to the power of its exponent."""

    @abstractmethod
    def loss(self, exponents: NDArray[np.float64], truth: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
        """The mean log loss and its slope in each exponent.

        Args:
            exponents: One for each prior.
            truth: One code per item where one label holds, else one row of flags per item.
        """


class ProbabilityCombination(PriorCombination):
    """Log-probabilities are added and normalized. Unknown, where it competes, is held equally likely in any context.

    Args:
        predictions: Logits or log-probabilities.
        shifts: What the priors add.
        unknown_shift: What each of them adds to unknown.
    """

    def __init__(self, predictions: LabelScores, shifts: Shifts, unknown_shift: float = 0.0) -> None:
        super().__init__(predictions, shifts)
        self._columns, self._unknown_shift = predictions.columns, unknown_shift

    def combined(self, exponents: Sequence[float]) -> LabelScores:
        columns = np.empty_like(self._columns)
        for rows in self.blocks():
            columns[rows] = log_softmax(self._sum(rows, np.asarray(exponents), self._shifts(rows)))
        return self.predictions.with_columns(columns, "log_probability")

    def loss(self, exponents: NDArray[np.float64], truth: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
        total, slope = 0.0, np.zeros(len(exponents))
        for rows in self.blocks():
            shifts, codes = self._shifts(rows), truth[rows]
            logs = log_softmax(self._sum(rows, exponents, shifts))
            each = np.arange(len(codes))
            total -= float(logs[each, codes].sum())
            slope += np.einsum("il,kil->k", np.exp(logs), shifts) - shifts[:, each, codes].sum(axis=1)
        return total / len(truth), slope / len(truth)

    def _sum(self, rows: slice, exponents: NDArray[np.float64], shifts: NDArray[np.float64]) -> Logs:
        plain = log_softmax(self._columns[rows].astype(np.float64))
        return np.asarray(plain + np.tensordot(exponents, shifts, axes=1))

    def _shifts(self, rows: slice) -> NDArray[np.float64]:
        shifts = self.shifts(rows)
        if self.predictions.unknown_label is None:
            return shifts
        return np.concatenate([shifts, np.full((*shifts.shape[:2], 1), self._unknown_shift)], axis=2)


class ListedCombination(PriorCombination):
    """The same for lists of some labels: those that are not listed stay impossible, whatever a prior says of them.

    Args:
        predictions: Lists with log-probabilities or logits.
        shifts: What the priors add.
    """

    def combined(self, exponents: Sequence[float]) -> LabelScores:
        scores, lists = np.empty(len(self.predictions.scores)), self.predictions.lists
        for rows in self.blocks():
            logs = log_softmax(self._plain(rows) + np.tensordot(np.asarray(exponents), self.shifts(rows), axes=1))
            row, listed = self._places(rows)
            scores[listed] = logs[row, lists.codes[listed]]
        order = np.lexsort((-scores, rows_of(lists.offsets)))
        changed = replace(self.predictions, codes=lists.codes[order], stated_ranks=None)
        return changed.with_scores(scores[order], "log_probability")

    def loss(self, exponents: NDArray[np.float64], truth: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
        """The mean over items whose true label is listed: of the others no exponent makes more."""
        total, slope, n_listed = 0.0, np.zeros(len(exponents)), 0
        for rows in self.blocks():
            plain, shifts, codes = self._plain(rows), self.shifts(rows), truth[rows]
            kept = np.flatnonzero(np.isfinite(plain[np.arange(len(codes)), codes]))
            plain, shifts, codes, each = plain[kept], shifts[:, kept], codes[kept], np.arange(len(kept))
            logs = log_softmax(plain + np.tensordot(exponents, shifts, axes=1)) if len(kept) else plain
            total -= float(logs[each, codes].sum())
            slope += np.einsum("il,kil->k", np.exp(logs), shifts) - shifts[:, each, codes].sum(axis=1)
            n_listed += len(kept)
        return total / max(n_listed, 1), slope / max(n_listed, 1)

    def _places(self, rows: slice) -> tuple[NDArray[np.int32], slice]:
        """The row within a block of each listed label, and where those labels stand."""
        offsets = self.predictions.lists.offsets[rows.start : rows.stop + 1]
        return rows_of(offsets), slice(int(offsets[0]), int(offsets[-1]))

    def _plain(self, rows: slice) -> Logs:
        """The scores of a block with a column for every label."""
        row, listed = self._places(rows)
        n_rows = min(rows.stop, len(self.predictions.items)) - rows.start
        plain = np.full((n_rows, len(self.predictions.labels)), -np.inf)
        plain[row, self.predictions.lists.codes[listed]] = self.predictions.scores[listed]
        return plain


class LogOddsCombination(PriorCombination):
    """Log-odds are added. What scores exactly 0 was ruled out, teaches nothing and stays so."""

    def combined(self, exponents: Sequence[float]) -> LabelScores:
        chances = chances_of(self.predictions)
        for rows in self.blocks():
            chances[rows] = shifted(chances[rows], np.tensordot(np.asarray(exponents), self.shifts(rows), axes=1))
        return self.predictions.with_scores(chances, "score")

    def loss(self, exponents: NDArray[np.float64], truth: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
        total, slope, chances = 0.0, np.zeros(len(exponents)), chances_of(self.predictions)
        for rows in self.blocks():
            shifts, possible = self.shifts(rows), chances[rows] > 0
            logits = logits_of(chances[rows]) + np.tensordot(exponents, shifts, axes=1)
            total += float(((np.logaddexp(0, logits) - truth[rows] * logits) * possible).sum())
            slope += np.einsum("il,kil->k", (expit(logits) - truth[rows]) * possible, shifts)
        return total / truth.size, slope / truth.size


def shifted(chances: Logs, shift: Logs) -> Logs:
    """Chances with something added to their log-odds; what scores exactly 0 was ruled out, and stays so."""
    return np.where(chances > 0, expit(logits_of(chances) + shift), 0.0)


def best_exponents(
    combination: PriorCombination, n_priors: int, truth: NDArray[Any]
) -> tuple[tuple[float, ...], dict[str, float]]:
    """The exponents of lowest log loss, each from 0 to `LARGEST`, and the log loss at 0, at 1 and at what was found.

    They are 0 where nothing is gained.
    """
    from scipy.optimize import minimize

    found = minimize(
        combination.loss,
        np.full(n_priors, 0.5),
        args=(truth,),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, LARGEST)] * n_priors,
        options={"ftol": 1e-12, "gtol": 1e-7},
    )
    exponents = tuple(round(float(value), 4) for value in found.x)
    tried = {
        "0": combination.loss(np.zeros(n_priors), truth)[0],
        "1": combination.loss(np.ones(n_priors), truth)[0],
        "fitted": combination.loss(np.asarray(exponents), truth)[0],
    }
    if tried["fitted"] >= tried["0"]:
        exponents, tried["fitted"] = (0.0,) * n_priors, tried["0"]
    return exponents, {name: round(value, 6) for name, value in tried.items()}
