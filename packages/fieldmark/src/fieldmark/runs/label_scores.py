"""Scores of labels: what most methods say about each item, before it is cut down to a challenge's run file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fieldmark.runs.code_sets import Codes, CodeSets, Offsets, offsets_of, places, rows_of
from fieldmark.runs.label_scores_arrow import PER_ITEM, from_arrow, to_arrow
from fieldmark.runs.predictions import BLOCK_ITEMS, rows_by_item, write_blocks
from fieldmark.tables.labels import UNKNOWN, UNKNOWN_NAME, Labels
from fieldmark.tables.text_columns import fixed

Scale = Literal["logit", "log_probability", "score"]
# Which label comes first among equal scores: that with the lowest or that with the highest code.
Ties = Literal["lowest", "highest"]
Scores = NDArray[np.floating[Any]]

# In rankings: there is no further answer. Unknown is an answer, and is called -1.
NOTHING = -2
# Lists that are ranked at a time: what is computed of them stays in the processor's cache.
ITEMS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class LabelScores:
    """Scores of labels for items; higher is better.

    Args:
        items: The ids of the items.
        labels: The known labels; "-1" is none of them.
        scores: Dense: one row per item, one column per label. Listed: the scores of all lists, one after the other.
            Single or double precision, as they came.
        scale: What the scores are: logits, log-probabilities, or scores that only rank.
        codes: Only for lists: the label behind each score, best first; -1 for unknown.
        offsets: Only for lists: where the list of each item begins, and where the last one ends.
        unknown: How strongly each item looks like none of the labels, if somebody says so; higher is stranger.
        unknown_label: The score of the answer "unknown" on the scale of the others, where it competes with them.
        decisions: The answer of each item as a set of codes, where a rule gave it (least cost, unknown, a conformal
            set) and not the highest score. The scores stay what they are, so that another rule can be tried on them.
        stated_ranks: Only for lists: the rank that a run file states beside each score. It is not written to Parquet.
    """

    items: Sequence[str]
    labels: Labels
    scores: Scores
    scale: Scale
    codes: Codes | None = None
    offsets: Offsets | None = None
    unknown: NDArray[np.floating[Any]] | None = None
    unknown_label: NDArray[np.floating[Any]] | None = None
    decisions: CodeSets | None = None
    stated_ranks: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if UNKNOWN_NAME in self.labels.code_of:
            raise ValueError("unknown is the code -1 and no label")
        if (self.codes is None) != (self.offsets is None):
            raise ValueError("lists have codes and offsets")
        expected = (len(self.items), len(self.labels)) if self.codes is None else self.codes.shape
        if self.scores.shape != expected:
            raise ValueError(f"scores have shape {self.scores.shape}, expected {expected}")
        if self.offsets is not None and (
            len(self.offsets) != len(self.items) + 1 or self.offsets[-1] != len(self.scores)
        ):
            raise ValueError("offsets must say where the list of each item begins and where the last one ends")
        if self.codes is not None and self.unknown_label is not None:
            raise ValueError("a list names unknown itself")
        if np.isnan(self.scores).any():
            raise ValueError(f"the scores of item {self.items[self._first_nan()]!r} contain NaN")

    def _first_nan(self) -> int:
        if self.offsets is None:
            return int(np.isnan(self.scores).any(axis=1).argmax())
        return int(rows_of(self.offsets)[np.isnan(self.scores).argmax()])

    @classmethod
    def listed(
        cls,
        items: Sequence[str],
        labels: Labels,
        lists: CodeSets,
        scores: Scores,
        unknown: NDArray[np.floating[Any]] | None = None,
    ) -> Self:
        """Lists of labels with scores that only rank, each brought into order; equals stay in the order given."""
        order = np.lexsort((-scores, rows_of(lists.offsets)))
        codes = lists.codes[order]
        return cls(fixed(items), labels, scores[order], "score", codes, lists.offsets, unknown)

    @property
    def dense(self) -> bool:
        return self.codes is None

    @property
    def names_unknown(self) -> bool:
        """Whether "unknown" is among the answers."""
        listed = () if self.codes is None else self.codes
        decided = () if self.decisions is None else self.decisions.codes
        return self.unknown_label is not None or UNKNOWN in listed or UNKNOWN in decided

    @property
    def lists(self) -> CodeSets:
        """The listed labels of each item. Only for lists."""
        if self.codes is None or self.offsets is None:
            raise ValueError("dense predictions list nothing")
        return CodeSets(self.codes, self.offsets)

    @property
    def columns(self) -> Scores:
        """The scores of every label, and of unknown in a last column where it competes with them. Not for lists."""
        if not self.dense:
            raise ValueError("lists have no columns")
        return self.scores if self.unknown_label is None else np.column_stack([self.scores, self.unknown_label])

    def pairs(self) -> tuple[NDArray[np.int32], Codes, Scores]:
        """Item, label and score of every pair that has a score."""
        if self.offsets is None or self.codes is None:
            rows, codes = np.divmod(np.arange(self.scores.size), max(len(self.labels), 1))
            return rows.astype(np.int32), codes.astype(np.int32), self.scores.ravel()
        return rows_of(self.offsets), self.codes, self.scores

    def top(self, k: int, *, ties: Ties = "lowest") -> Codes:
        """The codes of the k best answers of each item, best first: -1 for unknown, -2 where there are fewer.

        Where a rule decided, what it decided for comes first, and the others follow by their scores.

        Among equal scores the "lowest" code comes first (or the "highest"), and unknown last (in lists, the one listed
        first), so that the order never depends on how the sort works.
        """
        ranked = self._top_of_lists(k) if self.offsets is not None else self._top_of_rows(k, ties)
        return ranked if self.decisions is None else _decided_first(self.decisions, ranked)

    def _top_of_rows(self, k: int, ties: Ties) -> Codes:
        codes = np.arange(len(self.labels)) if ties == "lowest" else np.arange(len(self.labels))[::-1]
        scores = self.scores if ties == "lowest" else self.scores[:, ::-1]
        scores = scores if self.unknown_label is None else np.column_stack([scores, self.unknown_label])
        width = scores.shape[1]
        order = _first_largest(scores, min(k, width)) if k <= 16 else np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best = np.append(codes, UNKNOWN)[order].astype(np.int32)
        return np.hstack([best, np.full((len(best), k - best.shape[1]), NOTHING, dtype=np.int32)])

    def _top_of_lists(self, k: int) -> Codes:
        lists = self.lists
        ranked = np.full((len(self.items), k), NOTHING, dtype=np.int32)
        for start in range(0, len(ranked), ITEMS_AT_ONCE):
            offsets = lists.offsets[start : start + ITEMS_AT_ONCE + 1]
            row, codes = rows_of(offsets), lists.codes[offsets[0] : offsets[-1]]
            place = np.arange(offsets[0], offsets[-1]) - offsets[row]
            kept = place < k
            ranked[start : start + ITEMS_AT_ONCE][row[kept], place[kept]] = codes[kept]
        return ranked

    def rank_of(self, codes: Codes) -> NDArray[np.int64]:
        """The rank of one label of each item among all that have a score, from 1; 0 where it has none."""
        if self.decisions is not None:
            ranked = self.top(len(self.labels) + 1)
            hit = ranked == codes[:, None]
            return np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, 0)
        if self.offsets is None:
            return self._rank_in_rows(codes)
        row = rows_of(self.offsets)
        hits = np.flatnonzero(self.lists.codes == codes[row])
        ranks = np.zeros(len(self.items), dtype=np.int64)
        ranks[row[hits[::-1]]] = hits[::-1] - self.offsets[row[hits[::-1]]] + 1
        return ranks

    def _rank_in_rows(self, codes: Codes) -> NDArray[np.int64]:
        ranks = np.zeros(len(self.items), dtype=np.int64)
        asked = np.flatnonzero(codes >= 0)
        own = self.scores[asked, codes[asked]][:, None]
        earlier = np.arange(len(self.labels)) < codes[asked][:, None]
        ranks[asked] = ((self.scores[asked] > own) | ((self.scores[asked] == own) & earlier)).sum(axis=1) + 1
        if self.unknown_label is not None:
            ranks[asked] += self.unknown_label[asked] > own[:, 0]
            strange = np.flatnonzero(codes == UNKNOWN)
            ranks[strange] = (self.scores[strange] >= self.unknown_label[strange, None]).sum(axis=1) + 1
        return ranks

    def scores_by_code(self, row: int) -> dict[int, float]:
        """The scores of one item by label code, for writing them out."""
        if self.offsets is None or self.codes is None:
            score_of = dict(enumerate(self.scores[row].tolist()))
            return score_of if self.unknown_label is None else {**score_of, UNKNOWN: float(self.unknown_label[row])}
        own = slice(self.offsets[row], self.offsets[row + 1])
        return dict(zip(self.codes[own].tolist(), self.scores[own].tolist(), strict=True))

    def probabilities(self) -> Scores:
        """Probabilities of the labels of each item, and of unknown in a last column where it competes with them.

        Only for dense logits and log-probabilities.
        """
        if self.scale == "score" or not self.dense:
            raise ValueError("only dense logits or log-probabilities turn into probabilities")
        return np.asarray(np.exp(log_softmax(self.columns)))

    def chances(self) -> Scores:
        """One number from 0 to 1 per item and label: scores as they are, logits as the shares of a softmax."""
        if not self.dense:
            raise ValueError("a list of labels does not give a chance to each")
        return self.scores if self.scale == "score" else self.probabilities()[:, : len(self.labels)]

    def with_scores(
        self, scores: Scores, scale: Scale, unknown_label: NDArray[np.floating[Any]] | None = None
    ) -> LabelScores:
        """The same items with other scores in the precision of the old; a decision taken on those goes with them."""
        kind = self.scores.dtype
        unknown = None if unknown_label is None else unknown_label.astype(kind, copy=False)
        scores = scores.astype(kind, copy=False)
        return replace(self, scores=scores, scale=scale, unknown_label=unknown, decisions=None)

    def with_columns(self, columns: Scores, scale: Scale) -> LabelScores:
        """The same items with other scores of every label, and of unknown where it competes with them."""
        unknown = None if self.unknown_label is None else columns[:, -1]
        return self.with_scores(columns[:, : len(self.labels)], scale, unknown)

    def decided(self, codes: NDArray[np.integer[Any]] | CodeSets) -> LabelScores:
        """The same scores with the decision that a rule took on them."""
        return replace(self, decisions=codes if isinstance(codes, CodeSets) else CodeSets.single(codes))

    def coded_by(self, labels: Labels) -> LabelScores:
        """The same predictions with the labels in another order, whose codes they then have.

        Raises:
            ValueError: When these are not the same labels.
        """
        if labels == self.labels:
            return self
        strange = {*labels.names} ^ {*self.labels.names}
        if strange:
            raise ValueError(f"predictions and benchmark do not have the same labels: only one has {min(strange)!r}")
        code = labels.encode(self.labels.names)
        decisions = self.decisions
        if decisions is not None:
            decisions = replace(decisions, codes=_recoded(decisions.codes, code))
        if self.codes is not None:
            return replace(self, labels=labels, codes=_recoded(self.codes, code), decisions=decisions)
        return replace(self, labels=labels, scores=self.scores[:, np.argsort(code)], decisions=decisions)

    def select(self, items: Iterable[str]) -> LabelScores:
        """The predictions of the given items, in their order."""
        wanted = fixed(items)
        if wanted == self.items:
            return self
        return self._rows(rows_by_item(self.items, wanted), wanted)

    def take(self, rows: NDArray[np.int64]) -> LabelScores:
        """The predictions of some rows, in the order asked for."""
        return self._rows(rows, tuple(self.items[row] for row in rows))

    def blocks(self, size: int = BLOCK_ITEMS) -> Iterator[LabelScores]:
        """The same predictions, a few thousand items at a time."""
        for start in range(0, len(self.items), size):
            rows = np.arange(start, min(start + size, len(self.items)))
            yield self._rows(rows, self.items[start : start + size])

    def _rows(self, rows: NDArray[np.int64], items: Sequence[str]) -> LabelScores:
        columns: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows] for name in PER_ITEM
        }
        if self.offsets is None or self.codes is None:
            columns["scores"] = self.scores[rows]
        else:
            kept = places(self.offsets, rows)
            columns |= {"codes": self.codes[kept], "scores": self.scores[kept]}
            columns["stated_ranks"] = None if self.stated_ranks is None else self.stated_ranks[kept]
            columns["offsets"] = offsets_of(np.diff(self.offsets)[rows])
        decisions = None if self.decisions is None else self.decisions.take(rows)
        return replace(self, items=items, decisions=decisions, **columns)

    @classmethod
    def concat(cls, parts: Sequence[LabelScores]) -> LabelScores:
        """Predictions of the same kind for different items, one after the other."""
        first = parts[0]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("scores", "codes", "stated_ranks", *PER_ITEM)
            if getattr(first, name) is not None
        }
        if first.offsets is not None:
            columns["offsets"] = offsets_of(np.concatenate([part.lists.lengths for part in parts]))
        if first.decisions is not None:
            columns["decisions"] = CodeSets.concat([part.decisions for part in parts if part.decisions is not None])
        return replace(first, items=tuple(item for part in parts for item in part.items), **columns)

    def write(self, path: Path) -> None:
        """Writes the predictions as Parquet, one row group per block."""
        write_blocks(path, (to_arrow(block) for block in self.blocks()))

    @classmethod
    def read(cls, table: pa.Table, header: dict[str, Any]) -> LabelScores:
        """The predictions of a table, as `write` made it or an earlier version did."""
        return cls(**from_arrow(table, header))


def log_softmax(scores: NDArray[np.floating]) -> NDArray[Any]:
    """Logits as log-probabilities.

    >>> np.exp(log_softmax(np.array([[0.0, 0.0]])))
    array([[0.5, 0.5]])
    """
    shifted = scores - scores.max(axis=1, keepdims=True)
    return cast(NDArray[Any], shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def _recoded(codes: Codes, code: Codes) -> Codes:
    """Codes of labels in another order; unknown stays what it is."""
    return np.where(codes >= 0, code[codes], codes).astype(np.int32)


def _first_largest(scores: Scores, k: int) -> NDArray[np.int64]:
    """Columns of the k largest values of each row; `argmax` takes the first of equals, which is the promised order."""
    left = scores.copy()
    left[left == -np.inf] = np.finfo(left.dtype).min
    rows = np.arange(len(left))
    order = np.empty((len(left), k), dtype=np.int64)
    for place in range(k):
        order[:, place] = left.argmax(axis=1)
        left[rows, order[:, place]] = -np.inf
    return order


def _decided_first(decisions: CodeSets, ranked: Codes) -> Codes:
    """The ranking with what was decided in front, and without it further back."""
    most = int(decisions.lengths.max(initial=0))
    front = np.full((len(ranked), most), NOTHING, dtype=np.int32)
    row = rows_of(decisions.offsets)
    front[row, np.arange(len(decisions.codes)) - decisions.offsets[row]] = decisions.codes
    together = np.hstack([front, ranked])
    again = np.zeros(together.shape, dtype=bool)
    again[:, :most] = front == NOTHING
    for place in range(most):
        again[:, most:] |= ranked == front[:, place, None]
    again[:, most:] |= ranked == NOTHING
    order = np.argsort(again, axis=1, kind="stable")[:, : ranked.shape[1]]
    kept = np.take_along_axis(together, order, axis=1)
    return np.where(np.take_along_axis(again, order, axis=1), NOTHING, kept).astype(np.int32)


__all__ = ["BLOCK_ITEMS", "NOTHING", "CodeSets", "Codes", "LabelScores", "Scale", "Scores", "log_softmax"]
