"""Whether answers depend on which other items are asked about: a few items are asked again, in other company.

Who says that it answers item by item is asked about each of them alone; who looks at the unit of an item, about that
unit alone. A fresh copy is asked, which has not seen the others. Batches of another size are summed up in another
order, and networks on a GPU multiply with few digits: two answers are the same where no score differs by more than 2 %
of itself and 0.1 % of the largest score of the item (of the probabilities, for logits), and no mask by more than 2 % of
its pixels and 0.1 % of the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import PeekingError
from fieldmark.runs.label_scores import CodeSets, LabelScores
from fieldmark.runs.masks import Masks

OF_ITSELF, OF_LARGEST = 2e-2, 1e-3
# So many items are asked again. A decision may turn by rounding; one alone is let pass.
ASKED_AGAIN, DECISIONS_TURNED, SEED = 5, 1, 0
Rows = NDArray[np.int64]


def refuse_dependent(
    who: str,
    ask: Callable[[Sequence[Rows]], Sequence[Any]],
    answers: Any,
    unit_of: Mapping[str, Any] | None = None,
) -> None:
    """Asks about a few items again, each in no other company than it may be in.

    Args:
        who: Who answers, for the message.
        ask: Answers each of several sets of rows by itself.
        answers: What was answered when all rows were asked about together.
        unit_of: The unit of each item, for those who look at all items of it; without, each item stands alone.

    Raises:
        PeekingError: When an answer differs by more than rounding does.
    """
    number = len(answers.items)
    if number < 2:
        return
    chosen = np.random.default_rng(SEED).permutation(number)[: min(ASKED_AGAIN, number)].astype(np.int64)
    units = None if unit_of is None else [unit_of[item] for item in answers.items]
    own = chosen[:, None] if units is None else [_unit(units, int(row)) for row in chosen]
    asked = [one for one in own if len(one) < number]
    items = [answers.items[row] for row, one in zip(chosen, own, strict=True) if len(one) < number]
    turned = []
    for item, again in zip(items, ask(asked), strict=True):
        before, after = (one.select([item]) for one in (answers, again))
        if not same_answers(before, after).all():
            _refuse(who, item, units is not None)
        if not _same_decisions(before, after):
            turned.append(item)
    if len(turned) > DECISIONS_TURNED:
        _refuse(who, turned[0], units is not None)


def _unit(units: Sequence[Any], row: int) -> Rows:
    return np.array([other for other, unit in enumerate(units) if unit == units[row]], dtype=np.int64)


def _refuse(who: str, item: str, of_units: bool) -> None:
    alone = "with the items of its unit alone" if of_units else "by itself"
    raise PeekingError(
        f"The answers of {who} depend on which other items are asked about ({item!r} is one): asked {alone}, it is "
        f"answered otherwise, by more than {OF_ITSELF:.0%} of a score. Declare `sees` as it is, or answer item by item."
    )


def same_answers(one: Any, other: Any) -> NDArray[np.bool_]:
    """For each item whether two predictions of the same items agree but for rounding; decisions are left aside."""
    if isinstance(one, Masks):
        return np.array([_same_masks(one, other, item) for item in one.items], dtype=np.bool_)
    if not isinstance(one, LabelScores):
        return np.full(len(one.items), tuple(one.items) == tuple(other.items))
    pairs: list[tuple[NDArray[Any], NDArray[Any]]] = [(_comparable(one), _comparable(other))]
    if one.unknown is not None and other.unknown is not None:
        pairs.append((one.unknown[:, None], other.unknown[:, None]))
    same = np.ones(len(one.items), dtype=np.bool_)
    for left, right in pairs:
        finite = np.where(np.isfinite(left) & np.isfinite(right), np.abs(left), 0.0)
        most = OF_LARGEST * finite.max(axis=1, initial=0.0, keepdims=True)
        with np.errstate(invalid="ignore"):
            near = np.abs(left - right) <= OF_ITSELF * np.abs(left) + most
        same &= (near | (left == right)).all(axis=1)
    return same


def _comparable(predictions: LabelScores) -> NDArray[np.float64]:
    """A score for each label; what a list leaves out is as low as the last of the list."""
    if predictions.dense:
        scores = predictions.columns if predictions.scale == "score" else predictions.probabilities()
        return np.asarray(scores, dtype=np.float64)
    lists, found = predictions.lists, np.zeros((len(predictions.items), len(predictions.labels) + 1))
    for row, (start, end) in enumerate(zip(lists.offsets, lists.offsets[1:], strict=False)):
        scores = np.asarray(predictions.scores[start:end], dtype=np.float64)
        found[row] = scores.min(initial=np.inf) if len(scores) else 0.0
        found[row, lists.codes[start:end]] = scores  # unknown, -1, is the last column
    return found


def _same_decisions(one: Any, other: Any) -> bool:
    left, right = getattr(one, "decisions", None), getattr(other, "decisions", None)
    if not isinstance(left, CodeSets) or not isinstance(right, CodeSets):
        return left is right
    return bool(np.array_equal(left.offsets, right.offsets) and np.array_equal(left.codes, right.codes))


def _same_masks(one: Masks, other: Masks, item: str) -> bool:
    left, right = one.open(item), other.open(item)
    for part in {*left, *right}:
        if part not in left or part not in right or left[part].shape != right[part].shape:
            return False
        apart, union = left[part] != right[part], left[part] | right[part]
        if np.count_nonzero(apart) > OF_ITSELF * np.count_nonzero(union) + OF_LARGEST * union.size:
            return False
    return True
