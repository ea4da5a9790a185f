"""Methods that read several inputs of an item, each of which is a modality that may be missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.features.settings import encoder_of
from fieldmark.methods.base import Method, Need
from fieldmark.methods.joined import input_names
from fieldmark.tables.inputs import Input
from fieldmark.views.parts import Part

# The setting that stands for every input that the release has and the task allows.
ALL = "all"
TOGETHER = "+"
# Who took a photo tells what they like to photograph: a benchmark would reward knowing people, not species.
LEFT_OUT = ("observer",)
# Read only where they are named: what a camera noted tells who owns it, and a series repeats its monthly means.
NAMED_ONLY = ("exif", "climate_series")


def modalities_of(inputs: str) -> tuple[tuple[str, ...], ...]:
    """The modalities in a setting `inputs=photo,habitat+substrate`: each is one input, or several joined by `+`.

    >>> modalities_of("photo, habitat+substrate")
    (('photo',), ('habitat', 'substrate'))

    Raises:
        MisuseError: When a name is empty, stands there twice, or tells who observed.
    """
    input_names(inputs.replace(TOGETHER, ","))  # refuses what is empty or twice
    made = tuple(tuple(name.strip() for name in group.split(TOGETHER)) for group in inputs.split(",") if inputs.strip())
    for name in (name for group in made for name in group):
        if name in LEFT_OUT:
            raise MisuseError(
                f"inputs={inputs}: {name} is left out on purpose: who made an observation tells what that person likes "
                "to find, not what it is."
            )
    return made


def is_table(declared: Input) -> bool:
    """Whether an input is numbers and categories: columns of the items, numbers of a layer, statistics of patches."""
    return encoder_of(declared.extractor) in ("columns", "numbers", "patches", "series")


def is_readable(declared: Input) -> bool:
    """Whether features can be made of an input, and may be: masks are none, and observers are left out."""
    return declared.name not in LEFT_OUT and (encoder_of(declared.extractor) != "columns" or bool(declared.columns))


def is_missing(part: Part, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """The items that have nothing of a modality: none of its inputs."""
    missing = np.ones(len(part), dtype=np.bool_)
    for name in names:
        missing &= part.missing.get(name, np.zeros(len(part), dtype=np.bool_))
    return missing


class OnModalities(Method):
    """A method whose setting `inputs` names what it reads; `all` is settled when the release is open.

    Subclasses are dataclasses with the field `inputs`.
    """

    inputs: str

    @property
    def modalities(self) -> tuple[tuple[str, ...], ...]:
        """What it reads; nothing as long as it reads all that a release will turn out to have."""
        return () if self.inputs == ALL else modalities_of(self.inputs)

    @property
    def needs(self) -> tuple[Need, ...]:
        return tuple(Need("features", name) for group in self.modalities for name in group)

    @property
    def open_inputs(self) -> bool:
        return self.inputs == ALL

    def takes(self, declared: Input) -> bool:
        """Whether an input is among those that `all` stands for."""
        return is_readable(declared)

    def for_release(self, inputs: Mapping[str, Input]) -> Self:
        if self.inputs != ALL:
            return self
        names = [name for name, declared in inputs.items() if self.takes(declared) and name not in NAMED_ONLY]
        if not names:
            told = ", ".join(inputs) or "nothing"
            raise MisuseError(f"{type(self).__name__.lower()} finds no inputs here: the release and task have {told}.")
        changed: dict[str, Any] = {"inputs": ",".join(names)}
        made: Self = replace(self, **changed)  # type: ignore[type-var]
        return made
