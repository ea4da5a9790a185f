"""What methods learn from: the labels of the items of a part, in one of three shapes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from fieldmark.masks.parts import only_spores
from fieldmark.runs.masks import Masks
from fieldmark.tables.labels import UNKNOWN

Codes = NDArray[np.int32]
Shape = Literal["codes", "pairs", "masks"]


@dataclass(frozen=True)
class Targets(ABC):
    """The labels of the items of a part.

    Attributes:
        shape: How they are given, which a method must be able to learn from.
        coarse: Labels of higher ranks by the name of the rank, as codes of their own; -1 where it is not known.
    """

    shape: ClassVar[Shape]
    coarse: Mapping[str, Codes] = field(default_factory=dict, kw_only=True)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, rows: NDArray[np.int64]) -> Self:
        """The labels of some of the items."""

    @classmethod
    @abstractmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """The labels of several parts, one after the other."""

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether an item has at least one known label."""
        return np.asarray(self.codes >= 0)

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """Whether an item is of none of the known labels; silence is an answer, and not unknown."""
        return np.zeros(len(self), dtype=np.bool_)

    @property
    def codes(self) -> Codes:
        """One label per item: the only one, or the foremost; -1 for unknown or none."""
        raise ValueError(f"{self.shape} do not come down to one label per item")

    @property
    def main_codes(self) -> Codes | None:
        """The same, for those who can do without; None where items do not come down to one label."""
        return self.codes

    def holds(self, n_labels: int) -> NDArray[np.bool_]:
        """One row per item, one column per label: whether it holds."""
        return np.asarray(self.codes[:, None] == np.arange(n_labels))

    def _coarse(self, rows: NDArray[np.int64]) -> dict[str, Codes]:
        return {rank: codes[rows] for rank, codes in self.coarse.items()}


def _coarse_of(parts: Sequence[Targets]) -> dict[str, Codes]:
    ranks = dict.fromkeys(rank for part in parts for rank in part.coarse)
    unknown = {id(part): np.full(len(part), UNKNOWN, dtype=np.int32) for part in parts}
    return {rank: np.concatenate([part.coarse.get(rank, unknown[id(part)]) for part in parts]) for rank in ranks}


@dataclass(frozen=True)
class LabelTargets(Targets):
    """One label per item.

    Args:
        values: The code of each label, -1 for unknown.
    """

    values: Codes
    shape: ClassVar[Shape] = "codes"

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[np.int64]) -> LabelTargets:
        return LabelTargets(self.values[rows], coarse=self._coarse(rows))

    @classmethod
    def concat(cls, parts: Sequence[LabelTargets]) -> LabelTargets:
        return cls(np.concatenate([part.values for part in parts]), coarse=_coarse_of(parts))

    @property
    def unknown(self) -> NDArray[np.bool_]:
        return np.asarray(self.values == UNKNOWN)

    @property
    def codes(self) -> Codes:
        return self.values


@dataclass(frozen=True)
class PairTargets(Targets):
    """Any number of labels per item, as pairs of item and label.

    Args:
        row: The row of the item in its part.
        code: The code of the label.
        foreground: Whether it is what the recording was made for; species heard behind it are not.
        foremost: For each item the label that stands for it where only one can: heard longest, -1 for none.
        n_labels: How many labels there are.
        asked: One row per item, one column per label: whether somebody looked; None where everything was.
    """

    row: Codes
    code: Codes
    foreground: NDArray[np.bool_]
    foremost: Codes
    n_labels: int
    asked: NDArray[np.bool_] | None = None
    shape: ClassVar[Shape] = "pairs"

    def __len__(self) -> int:
        return len(self.foremost)

    def take(self, rows: NDArray[np.int64]) -> PairTargets:
        # An item may be taken several times, and its pairs go with it each time.
        order = np.argsort(self.row, kind="stable")
        count = np.bincount(self.row, minlength=len(self))
        begin = np.concatenate([[0], np.cumsum(count)])[:-1]
        lengths = count[rows]
        first = np.repeat(begin[rows] - np.concatenate([[0], np.cumsum(lengths)])[:-1], lengths)
        pairs = order[first + np.arange(lengths.sum())]
        return replace(
            self,
            row=np.repeat(np.arange(len(rows), dtype=np.int32), lengths),
            code=self.code[pairs],
            foreground=self.foreground[pairs],
            foremost=self.foremost[rows],
            asked=None if self.asked is None else self.asked[rows],
            coarse=self._coarse(rows),
        )

    @classmethod
    def concat(cls, parts: Sequence[PairTargets]) -> PairTargets:
        before = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        shifted = [part.row + np.int32(first) for part, first in zip(parts, before, strict=False)]
        asked = [part.looked_for() for part in parts] if any(part.asked is not None for part in parts) else None
        return cls(
            np.concatenate(shifted),
            np.concatenate([part.code for part in parts]),
            np.concatenate([part.foreground for part in parts]),
            np.concatenate([part.foremost for part in parts]),
            parts[0].n_labels,
            None if asked is None else np.concatenate(asked),
            coarse=_coarse_of(parts),
        )

    @property
    def codes(self) -> Codes:
        return self.foremost

    @property
    def unranked(self) -> bool:
        """Whether items list labels, and none of these stands for the item: all species of a place."""
        return len(self.row) > 0 and not (self.foremost >= 0).any()

    @property
    def known(self) -> NDArray[np.bool_]:
        return np.bincount(self.row, minlength=len(self)) > 0 if self.unranked else np.asarray(self.codes >= 0)

    def holds(self, n_labels: int) -> NDArray[np.bool_]:
        matrix = np.zeros((len(self), n_labels), dtype=np.bool_)
        matrix[self.row, self.code] = True
        return matrix

    def looked_for(self) -> NDArray[np.bool_]:
        """One row per item, one column per label: whether somebody looked."""
        return np.ones((len(self), self.n_labels), dtype=np.bool_) if self.asked is None else self.asked


@dataclass(frozen=True)
class MaskTargets(Targets):
    """Masks of photos by part."""

    masks: Masks
    shape: ClassVar[Shape] = "masks"

    def __len__(self) -> int:
        return len(self.masks.items)

    def take(self, rows: NDArray[np.int64]) -> MaskTargets:
        return MaskTargets(self.masks.select([self.masks.items[row] for row in rows]), coarse=self._coarse(rows))

    @classmethod
    def concat(cls, parts: Sequence[MaskTargets]) -> MaskTargets:
        items = tuple(item for part in parts for item in part.masks.items)
        rows = tuple(row for part in parts for row in part.masks.rows)
        return cls(Masks(items, rows), coarse=_coarse_of(parts))

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether a photo has a mask of more than spores; what has none was not looked at, and teaches nothing."""
        return np.array([not only_spores(rows) for rows in self.masks.rows], dtype=np.bool_)

    @property
    def main_codes(self) -> None:
        return None
