"""Dataclasses that keep arrays besides their fields, to be saved with a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from numpy.typing import NDArray


class KeepsArrays:
    """What a frozen dataclass has learned as arrays, which are no settings and stand in no field."""

    @property
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """What it keeps besides its fields; nothing before it was fitted."""
        kept: Mapping[str, NDArray[Any]] = self.__dict__.get("_kept", {})
        return kept

    def with_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The same with the arrays that were saved, or that it has just learned."""
        made: Self = replace(self)  # type: ignore[type-var]
        object.__setattr__(made, "_kept", dict(arrays))
        return made
