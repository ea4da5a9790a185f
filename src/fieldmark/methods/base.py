"""What a method is: settings, what it needs and sees, and two functions."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import IO, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Sees
from fieldmark.errors import MisuseError
from fieldmark.features.embeddings import unit_rows
from fieldmark.labels import Labels
from fieldmark.runs.predictions import Predictions, Scale
from fieldmark.steps.base import Step
from fieldmark.views import Part, View

Need = Literal["features", "pixels", "audio", "patches", "table"]
Arrays = dict[str, NDArray[Any]]


class Method(Protocol):
    """An idea with its settings. Settings are dataclass fields; what was learned is a dictionary of arrays.

    Attributes:
        needs: What the harness must supply with each part.
        sees: What the method is shown at prediction time; the harness refuses what the task does not allow.
        scale: What its scores are.
    """

    needs: ClassVar[tuple[Need, ...]]
    sees: ClassVar[Sees]

    @property
    def scale(self) -> Scale: ...

    def fit(self, view: View) -> Fitted:
        """Learns from train; chooses what its settings leave open on val, if the view has one."""
        ...

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        """Scores every label for every item of a part, from what was learned."""
        ...


@runtime_checkable
class OpenMethod(Protocol):
    """A method that says how strange an item is. It gets val with its unknown items (truth -1)."""

    def unknown(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        """How strongly each item looks like none of the labels; higher is stranger."""
        ...

    def unknown_scores(self, arrays: Arrays, part: Part) -> dict[str, NDArray[np.float32]]:
        """The same by every score that was tried, under its name."""
        ...

    def refit(self, arrays: Arrays, view: View) -> Fitted:
        """Learns once more, from a larger train and without val, with the choices as they were made."""
        ...

    def default_steps(self) -> tuple[Step, ...]:
        """The steps that follow where none are asked for."""
        ...


@dataclass(frozen=True)
class Fitted:
    """A method with all its choices made, what it learned, and what a reader of its numbers should know."""

    method: Method
    arrays: Arrays
    remarks: tuple[str, ...] = ()

    def predict(self, part: Part, labels: Labels) -> Predictions:
        """Scores the items of a part."""
        scores = self.method.scores(self.arrays, part).astype(np.float32, copy=False)
        predictions = Predictions(part.item_ids, labels, scores, self.method.scale)
        if isinstance(self.method, OpenMethod):
            return replace(predictions, unknown=self.method.unknown(self.arrays, part))
        return predictions


def features_of(part: Part) -> NDArray[np.float32]:
    """The features of a part, which the harness supplies to methods that need them."""
    if part.features is None:
        raise ValueError("this part comes without features")
    return part.features


def truth_of(part: Part) -> NDArray[np.int32]:
    """The labels of a part that a method may learn from."""
    if part.truth is None:
        raise ValueError("this part comes without labels")
    return part.truth


def with_lengths(features: NDArray[np.float32], lengths: str) -> NDArray[np.float32]:
    """Features scaled to length one ("unit") or as they come ("given")."""
    return unit_rows(features) if lengths == "unit" else features


def check_lengths(method: str, lengths: str) -> None:
    """Refuses a setting of lengths that does not exist."""
    if lengths not in ("unit", "given"):
        raise MisuseError(f"{method} has no lengths={lengths}: expected unit or given.")


def opener_of(part: Part) -> Callable[[str], IO[bytes]]:
    """The function that opens the media of a part, as a stream where there is one."""
    if part.open_medium is not None:
        return part.open_medium
    read = part.read_medium
    if read is None:
        raise ValueError("this part comes without a way to open its media")
    return lambda media_id: io.BytesIO(read(media_id))


__all__ = [
    "Arrays",
    "Fitted",
    "Method",
    "Need",
    "check_lengths",
    "features_of",
    "opener_of",
    "truth_of",
    "unit_rows",
    "with_lengths",
]
