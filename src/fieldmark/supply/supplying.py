"""Supplies parts with what a method needs: features of pictures and recordings, and numbers of all other inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fieldmark.datasets.inputs import MEDIA_INPUTS, Input
from fieldmark.errors import MisuseError
from fieldmark.methods.base import Method
from fieldmark.supply.encoding import InputEncoder
from fieldmark.supply.sources import FeatureSource
from fieldmark.views import Part, View


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
        """The supply with everything learned that encoders learn from train.

        Raises:
            MisuseError: When the release has no pictures of an input that is needed.
        """
        held = {layer.input for layer in train.layers.values()} | set(MEDIA_INPUTS)
        for name in self.sources:
            if name and name not in held:
                raise MisuseError(f"There is no input called {name!r} here, or the task does not allow it.")
        return replace(self, encoders={name: one.fit(train) for name, one in self.encoders.items()})

    def supply(self, part: Part, what: str | None = None) -> Part:
        """The part with the features that are missing.

        Args:
            part: The part.
            what: What its media are called on the progress bar.
        """
        for name, source in self.sources.items():
            own = name or (part.media.kind if part.media is not None else "")
            if own not in part.features:
                part = source.supply(part, name, what if not name else None)
        for name, encoder in self.encoders.items():
            if name not in part.features:
                part = encoder.supply(part)
        return part

    @property
    def main(self) -> FeatureSource | None:
        """The source of features of the media themselves."""
        return next((self.sources[name] for name in ("", *MEDIA_INPUTS) if name in self.sources), None)

    @property
    def remarks(self) -> list[str]:
        """What a person should know who uses these features."""
        return [remark for source in self.sources.values() for remark in source.remarks]


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
    """The inputs that a method needs features of; empty for the media of the release."""
    return tuple(need.input for need in method.needs if need.form == "features")


def table_inputs(method: Method) -> tuple[str, ...]:
    """The inputs whose columns a method needs as numbers."""
    return tuple(need.input for need in method.needs if need.form == "table")


def refuse_unfit(name: str, method: Method, declared: Mapping[str, Input], medium: str, root: str) -> None:
    """Refuses a network for photos on recordings, and an input that a release does not have."""
    wanted = {"pixels": "photo", "audio": "recording"}
    for need in method.needs:
        if need.input and need.input not in declared:
            known = ", ".join(declared)
            raise MisuseError(f"The method {name!r} needs the input {need.input!r}; {root} has {known}.")
        if not need.input and need.form in wanted and wanted[need.form] != medium:
            raise MisuseError(f"The method {name!r} reads {wanted[need.form]}s; {root} holds {medium}s.")
