"""Label sets: strings at the borders, int32 codes inside, -1 for unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

UNKNOWN = -1
# How unknown is written in files; no label is called so.
UNKNOWN_NAME = "-1"


@dataclass(frozen=True)
class Labels:
    """The classes of a benchmark in the order of their codes.

    >>> labels = Labels(("a", "b"))
    >>> labels.encode(["b", "z"])
    array([ 1, -1], dtype=int32)
    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names):
            raise ValueError("label names must be unique")

    @classmethod
    def of(cls, names: Iterable[str]) -> Labels:
        """Makes the label set of all distinct names, in alphabetical order."""
        return cls(tuple(sorted(set(names))))

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def code_of(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self.names)}

    def answers(self, *, unknown: bool) -> dict[str, int]:
        """The code of everything that may be answered: the labels and, in an open set, "-1".

        >>> Labels(("a",)).answers(unknown=True)
        {'a': 0, '-1': -1}
        """
        return {**self.code_of, UNKNOWN_NAME: UNKNOWN} if unknown else self.code_of

    def encode(self, names: Iterable[str | None]) -> NDArray[np.int32]:
        """Turns names into codes; whatever is not in the set becomes -1."""
        code_of = self.code_of
        return np.array([code_of.get(name, UNKNOWN) if name is not None else UNKNOWN for name in names], dtype=np.int32)

    def decode(self, codes: Sequence[int] | NDArray[np.int32], unknown: str = UNKNOWN_NAME) -> list[str]:
        """Turns codes into names."""
        return [self.names[code] if code >= 0 else unknown for code in codes]
