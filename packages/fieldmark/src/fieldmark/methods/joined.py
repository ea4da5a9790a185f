"""The features of several inputs side by side, for methods that take any numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import Arrays, Need, features_of
from fieldmark.views.parts import Part
from fieldmark.work.large_arrays import joined_columns, kept_rows, mean_and_spread, row_by_row

PREFIX = "joined."


def input_names(inputs: str) -> tuple[str, ...]:
    """The names in a setting `inputs=photo,habitat`; empty for the media of the release alone.

    >>> input_names("photo, habitat"), input_names("")
    (('photo', 'habitat'), ())

    Raises:
        MisuseError: When a name is empty or stands there twice.
    """
    names = tuple(name.strip() for name in inputs.split(",")) if inputs.strip() else ()
    if len(set(names)) < len(names) or "" in names:
        raise MisuseError(f"inputs={inputs}: expected each input once, with commas between them.")
    return names


def needs_of(names: Sequence[str]) -> tuple[Need, ...]:
    """What a method needs that reads these inputs."""
    return tuple(Need("features", name) for name in names) or (Need("features"),)


@dataclass(frozen=True)
class Joined:
    """Features of several inputs as one table: what is missing has the mean of train.

    Args:
        names: The inputs.
        widths: How many features each has.
        means: The mean of train over the items that have the input.
        flagged: The inputs that some items of train have and others lack: one more column each says which.
    """

    names: tuple[str, ...]
    widths: NDArray[np.int64]
    means: NDArray[np.float32]
    flagged: NDArray[np.bool_]

    @classmethod
    def fit(cls, names: tuple[str, ...], train: Part) -> Joined:
        """Takes widths and means from train."""
        features = [features_of(train, name) for name in names]
        missing = [_missing(train, name) for name in names]
        means = [
            mean_and_spread(kept_rows(own, ~lacking))[0] if not lacking.all() else np.zeros(own.shape[1])
            for own, lacking in zip(features, missing, strict=True)
        ]
        widths = np.array([own.shape[1] for own in features], dtype=np.int64)
        flagged = np.array([bool(lacking.any() and not lacking.all()) for lacking in missing], dtype=np.bool_)
        return cls(names, widths, np.concatenate(means).astype(np.float32), flagged)

    def __call__(self, part: Part) -> NDArray[np.float32]:
        """One row per item: the features of all inputs, then whether those are missing that some of train lack."""
        columns, flags = [], []
        means = np.split(self.means, np.cumsum(self.widths)[:-1])
        for name, mean, flagged in zip(self.names, means, self.flagged, strict=True):
            own, missing = features_of(part, name), _missing(part, name)
            if missing.all():
                own = np.zeros((len(part), len(mean)), dtype=np.float32)
            columns.append(row_by_row(partial(_filled, mean), own, missing))
            if flagged:
                flags.append(missing.astype(np.float32)[:, None])
        joined = joined_columns([*columns, *flags]).astype(np.float32, copy=False)
        return joined if joined.shape[1] else np.zeros((len(part), 1), dtype=np.float32)

    @property
    def arrays(self) -> Arrays:
        """Everything that was learned."""
        return {f"{PREFIX}{name}": getattr(self, name) for name in ("widths", "means", "flagged")}

    @classmethod
    def of(cls, names: tuple[str, ...], arrays: Arrays) -> Joined:
        """What these arrays were made by."""
        return cls(names, *(arrays[f"{PREFIX}{name}"] for name in ("widths", "means", "flagged")))


def _filled(mean: NDArray[np.float32], rows: NDArray[np.float32], missing: NDArray[np.bool_]) -> NDArray[np.float32]:
    return np.where(missing[:, None], mean, rows)


def _missing(part: Part, name: str) -> NDArray[np.bool_]:
    return np.asarray(part.missing.get(name, np.zeros(len(part), dtype=np.bool_)))
