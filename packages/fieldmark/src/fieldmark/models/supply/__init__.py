"""What methods are given besides the items themselves: features and numbers of each input that they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fieldmark.errors import MisuseError
from fieldmark.features.second_order import Axes
from fieldmark.methods.base import Method, input_of
from fieldmark.models.supply.encodings import InputEncoder
from fieldmark.models.supply.sources import FeatureSource
from fieldmark.tables.inputs import MEDIA_INPUTS, Input
from fieldmark.tables.media import MEDIA, Medium
from fieldmark.views.parts import Part, View


@dataclass(frozen=True)
class Supply:
    """Everything that is made for a method before it sees a part: the features of each input that it needs.

    Args:
        sources: What makes features of pictures and recordings, by the name of the input; empty for the media.
        encoders: What makes numbers of all other inputs.
    """

    sources: Mapping[str, FeatureSource]
    encoders: Mapping[str, InputEncoder] = field(default_factory=dict)

    def fit(self, train: Part) -> Supply:
        """The supply with everything that encoders and second-order features learn from train.

        Raises:
            MisuseError: When the release has no pictures of an input that is needed.
        """
        held = {layer.input for layer in train.layers.values()} | set(MEDIA_INPUTS)
        for name in self.sources:
            if input_of(name) and input_of(name) not in held:
                raise MisuseError(f"There is no input called {input_of(name)!r} here, or the task does not allow it.")
        sources = {name: one.fit(train, input_of(name)) for name, one in self.sources.items()}
        return Supply(sources, {name: one.fit(train) for name, one in self.encoders.items()})

    def keeping_maps(self) -> Supply:
        """The supply for who fits it again and again to other photos of one release."""
        return Supply({name: one.keeping_maps() for name, one in self.sources.items()}, self.encoders)

    @property
    def axes(self) -> dict[str, Axes]:
        """The axes of second-order features, by the name of the input."""
        return {name: one.axes for name, one in self.sources.items() if one.axes is not None}

    def supply(self, part: Part, what: str | None = None) -> Part:
        """The part with the features that are missing.

        Args:
            part: The part.
            what: What its media are called on the progress bar.
        """
        for name, source in self.sources.items():
            own = name or (part.media.medium.name if part.media is not None else "")
            if own in part.features:
                continue
            if input_of(name) == name:
                part = source.supply(part, name, what if not name else None)
            else:
                part = _supply_apart(source, part, name, what)
        for name, encoder in self.encoders.items():
            if name not in part.features:
                part = encoder.supply(part)
        return part

    @property
    def main(self) -> FeatureSource | None:
        """The source of features of the media themselves."""
        media = ("", *MEDIA_INPUTS)
        plain = (self.sources[name] for name in media if name in self.sources)
        return next(plain, None) or next((one for name, one in self.sources.items() if input_of(name) in media), None)

    @property
    def remarks(self) -> list[str]:
        """What a person should know who uses these features."""
        return [remark for source in self.sources.values() for remark in source.remarks]


def _supply_apart(source: FeatureSource, part: Part, key: str, what: str | None) -> Part:
    """The part with features under a name of their own, beside others of the same input."""
    name = input_of(key)
    made = source.supply(replace(part, features={}, missing={}), name, what if not name else None)
    (features,) = made.features.values()
    missing = dict(zip([key], made.missing.values(), strict=False))  # none where every item has it
    return replace(part, features={**part.features, key: features}, missing={**part.missing, **missing})


def remarks_on_missing(view: View) -> list[str]:
    """How many items have nothing of an input that was read, one sentence for each input that some lack."""
    remarks = []
    parts = {"train": view.train, "val": view.val, "test": view.test}
    for name in dict.fromkeys(name for part in parts.values() if part for name in part.missing):
        counts = {
            called: (int(part.missing[name].sum()), len(part))
            for called, part in parts.items()
            if part is not None and name in part.missing
        }
        if any(lacking for lacking, _ in counts.values()):
            told = ", ".join(
                f"{lacking:,} of {number:,} items of {called}" for called, (lacking, number) in counts.items()
            )
            remarks.append(f"Without {name}: {told}.")
    return remarks


def feature_inputs(method: Method) -> tuple[str, ...]:
    """What a method needs features of, by what they are called (`Need.key`); empty for the media of the release."""
    return tuple(need.key for need in method.needs if need.form == "features")


def table_inputs(method: Method) -> tuple[str, ...]:
    """The inputs whose columns a method needs as numbers."""
    return tuple(need.input for need in method.needs if need.form == "table")


def refuse_unfit(name: str, method: Method, declared: Mapping[str, Input], medium: Medium, root: str) -> None:
    """Refuses a network for photos on recordings, and an input that a release does not have."""
    wanted = {one.form: one for one in MEDIA.values()}
    for need in method.needs:
        if need.input and need.input not in declared:
            known = ", ".join(declared)
            raise MisuseError(f"The method {name!r} needs the input {need.input!r}; {root} has {known}.")
        if not need.input and need.form in wanted and wanted[need.form] != medium:
            raise MisuseError(f"The method {name!r} reads {wanted[need.form].plural}; {root} holds {medium.plural}.")


__all__ = [
    "FeatureSource",
    "InputEncoder",
    "Supply",
    "feature_inputs",
    "refuse_unfit",
    "remarks_on_missing",
    "table_inputs",
]
