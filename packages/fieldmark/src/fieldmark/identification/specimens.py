"""What a model says about the photos of one specimen, and what it would say if less were known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.features.photos import HeldPhoto
from fieldmark.identification.packaged.photo_groups import group_chances, most_plausible
from fieldmark.models import Model
from fieldmark.models.guides.contexts import columns_of_contexts, contexts_of, with_columns_of, without_contexts
from fieldmark.models.photo_by_photo import answer
from fieldmark.questions.items import loose_items
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import apply_step
from fieldmark.storage.files import check_name
from fieldmark.tables.inputs import MediaFiles
from fieldmark.tables.labels import UNKNOWN
from fieldmark.tables.media import PHOTO
from fieldmark.views.parts import LooseFiles, Part

Floats = NDArray[np.float64]
# Names of contexts as options of the command line give them, by the columns they fill.
CONTEXT_OF = {"lat": "place", "lon": "place", "country": "region"}


class _HeldFiles(LooseFiles):
    """Photos that are read once."""

    def __init__(self) -> None:
        self._held: dict[str, HeldPhoto] = {}

    def read(self, path: str) -> bytes:
        if path not in self._held:
            self._held[path] = HeldPhoto(super().read(path))
        return self._held[path]


@dataclass(frozen=True)
class SpecimenQuery:
    """A model asked about one specimen; everything is computed once, when it is first needed.

    Args:
        model: The model.
        photos: The photos of the specimen.
        pooling: How they are pooled.
        known: What else is known, by the names of columns.
        supplied: The features of each photo, where somebody has made them already.
        supplied_groups: What `packaged.photo_groups` says about each photo, where somebody has asked already.
        ask_groups: Whether `packaged.photo_groups` is asked at all.
    """

    model: Model
    photos: tuple[Path, ...]
    pooling: str
    known: Mapping[str, Any]
    supplied: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    supplied_groups: Floats | None = field(default=None, repr=False, compare=False)
    ask_groups: bool = True

    @cached_property
    def media(self) -> MediaFiles:
        """The photos by their paths, each read and decoded once."""
        return MediaFiles(PHOTO, _HeldFiles(), {str(photo): str(photo) for photo in self.photos})

    @property
    def held(self) -> list[bytes]:
        """The bytes of each photo, with what was decoded of them."""
        return [self.media.read(str(photo)) for photo in self.photos]

    @cached_property
    def usable(self) -> tuple[str, ...]:
        """The contexts that the model can take into account: those of its priors, and tables that its method reads."""
        return tuple(dict.fromkeys([*contexts_of(self.model.steps), *self.model.encoders]))

    @cached_property
    def given(self) -> tuple[str, ...]:
        """The contexts that are known."""
        return tuple(dict.fromkeys(CONTEXT_OF.get(name, name) for name in self.known))

    @property
    def used(self) -> tuple[str, ...]:
        """The contexts that are known and taken into account."""
        return tuple(name for name in self.usable if name in self.given and self._read(name))

    def _read(self, context: str) -> bool:
        columns = columns_of_contexts([context])
        return any(name in self.known for name in columns)

    @cached_property
    def items(self) -> pl.DataFrame:
        """The specimen as one item."""
        table = loose_items(self.photos[:1], self.known).with_columns(
            media_ids=pl.lit([str(photo) for photo in self.photos])
        )
        return with_columns_of(table, self.usable)

    @cached_property
    def features(self) -> NDArray[np.float32] | None:
        """The features of each photo; None for a model that has none."""
        if self.supplied is not None or self.model.supply.main is None:
            return self.supplied
        for photo in self.photos:
            check_name(str(photo))
        part = Part(loose_items(self.photos), media=self.media)
        return self.model.supply.main.supply(part).features["photo"]

    def _supply(self, part: Part) -> Part:
        """The features of photos as they were computed, and those of all other inputs."""
        if self.features is not None and len(self.features) == len(part):
            part = replace(part, features={**part.features, "photo": self.features})
        return self.model.supply.supply(part)

    @cached_property
    def raw(self) -> Any:
        """What the method says, before any step."""
        part = Part(self.items, media=self.media)
        pooling = self.pooling if len(self.photos) > 1 else self.model.pooling
        return answer(self.model.fitted, part, self.model.labels, self._supply, pooling)

    def predict(self, without: Sequence[str] = ()) -> LabelScores:
        """The answer with all steps applied, as if nothing were known of some contexts."""
        if self.model.fitted.method.sees == "past":
            part = Part(self.items, media=self.media)
            past: LabelScores = self.model.predict(part, pooling=self.pooling)
            return past
        items = without_contexts(self.items, without)
        predictions = self.raw
        for step in self.model.steps:
            predictions = apply_step(step, predictions, items)
        made: LabelScores = predictions
        return made

    @cached_property
    def final(self) -> LabelScores:
        return self.predict()

    @cached_property
    def chances(self) -> Floats:
        """The probability of each label."""
        return np.asarray(self.final.chances()[0], dtype=np.float64)

    @cached_property
    def seen(self) -> dict[str, float] | None:
        """How plausible each group of living things is by the packaged network; None where it is not asked.

        It has learned from photographs, and is not asked about the drawings of a simulated world.
        """
        if self.model.simulated or not self.ask_groups:
            return None
        chances = self.supplied_groups if self.supplied_groups is not None else group_chances(self.held)
        return None if chances is None else most_plausible(chances)

    @property
    def called_unknown(self) -> bool:
        """Whether a rule of the model itself answers unknown."""
        return int(self.final.top(1)[0, 0]) == UNKNOWN

    @cached_property
    def contributions(self) -> list[tuple[str, float, float]]:
        """For photo and each context the probability of the first label without it and with everything."""
        best = int(self.chances.argmax())
        full = float(self.chances[best])
        rows = []
        counts = self.model.guide.counts if self.model.guide is not None else None
        contexts = [name for name in self.used if name in contexts_of(self.model.steps)]
        if counts is not None and counts.sum():
            without = self.predict(contexts).chances()[0][best] if contexts else full
            rows.append(("photo", float(counts[best] / counts.sum()), float(without)))
        if self.model.fitted.method.sees != "past":
            rows += [(name, float(self.predict([name]).chances()[0][best]), full) for name in contexts]
        return rows
