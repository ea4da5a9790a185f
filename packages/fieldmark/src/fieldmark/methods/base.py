"""What a method is: everything that the harness may ask of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import LearnsFrom, Sees
from fieldmark.errors import MisuseError
from fieldmark.features.embeddings import unit_rows
from fieldmark.features.second_order import SECOND_ORDER
from fieldmark.features.settings import PACKAGED
from fieldmark.questions.targets import PairTargets, Shape
from fieldmark.registry import imported_anew
from fieldmark.runs.label_scores import LabelScores, Scale
from fieldmark.runs.predictions import Predictions
from fieldmark.settings import Settings
from fieldmark.steps.base import Step
from fieldmark.tables.inputs import Input, MediaFiles
from fieldmark.tables.labels import Labels
from fieldmark.views.opaque_ids import blinded, blinded_view
from fieldmark.views.parts import Part, View

Form = Literal["features", "pixels", "audio", "patches", "table"]
Arrays = dict[str, NDArray[Any]]
# The array that tells which photos a network has learned from, by the content of each (`methods.encoder`).
SEEN_PHOTOS = "seen_photos"
NOT_STATED = "not stated"
# Features scaled to length one, or as they come.
LENGTHS = ("unit", "given")


@dataclass(frozen=True)
class Need:
    """What a method reads of an item.

    Args:
        form: Features (made by a backbone, or by the encoder that an input comes with), the pixels or the sound itself,
            patches of maps, or columns of the items, which are there as numbers as well (`features_of(part, input)`).
        input: The input (`tables.inputs`) by its name; empty for the media of the release, whatever they are.
        settings: Of features that are not those of the whole method: an ensemble has some for each member.
    """

    form: Form
    input: str = ""
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> str:
        """What its features are called: after the input, and after settings of their own.

        >>> Need("features", "photo", (("size", 160), ("views", "flips"))).key
        'photo[size=160,views=flips]'
        """
        own = ",".join(f"{name}={value}" for name, value in self.settings)
        return f"{self.input}[{own}]" if own else self.input


def input_of(key: str) -> str:
    """The input that features are made of, by what they are called.

    >>> input_of("photo[size=160]"), input_of("photo"), input_of("[size=160]")
    ('photo', 'photo', '')
    """
    return key.partition("[")[0]


class Method(Settings, ABC):
    """An idea with its settings. Methods are dataclasses; what was learned is a dictionary of arrays.

    Attributes:
        sees: What it looks at besides the item when it answers; the harness refuses what the task does not allow.
        learns_from: What it learns from; the harness refuses what the task does not allow.
        targets: In which shapes it can take labels (`questions.targets`).
        wants_unknown: Whether it is shown the unknown items of val.
        feature_defaults: Settings of features that it wants unless others are given.
        second_order: Whether it wants photos in second order where a packaged network looks at them and nothing else is
            said: on real photos, heads were better for it (docs/results.md).
        trains_network: Whether it trains a network that others can take features from (`backbone`).
        search_space: Settings worth choosing by cross-validation (`--search auto`), each with its values in the order
            of preference among equals.
        exportable: Whether its network can be written as ONNX: it has `load(arrays)` and `transform(network)`.
        follows_from_task: Settings that `fit` finds out from what is asked, and not on val.
        added_settings: Settings that it was given after models had been saved; they go unsaid where they are at their
            defaults, so that a model that is saved anew stays as it was.
    """

    sees: ClassVar[Sees] = "item"
    learns_from: ClassVar[tuple[LearnsFrom, ...]] = ("train",)
    targets: ClassVar[tuple[Shape, ...]] = ("codes", "pairs")
    wants_unknown: ClassVar[bool] = False
    feature_defaults: ClassVar[Mapping[str, Any]] = {}
    second_order: ClassVar[bool] = False
    trains_network: ClassVar[bool] = False
    search_space: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    exportable: ClassVar[bool] = False
    follows_from_task: ClassVar[tuple[str, ...]] = ()
    added_settings: ClassVar[tuple[str, ...]] = ()

    def usual_features(self, backbone: str) -> dict[str, Any]:
        """Settings of features where no others are given.

        Args:
            backbone: What makes them.
        """
        output = {"output": SECOND_ORDER} if self.second_order and backbone in PACKAGED else {}
        return {**output, **self.feature_defaults}

    @property
    def options(self) -> dict[str, Any]:
        """Its settings as plain data."""
        usual = {one.name: one.default for one in fields(self) if one.name in self.added_settings}  # type: ignore[arg-type]
        settings: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return {name: value for name, value in settings.items() if name not in usual or value != usual[name]}

    @property
    def shuffled(self) -> bool:
        """Whether it is asked about items in an order that tells nothing, as all are that are not part of Fieldmark."""
        return not type(self).__module__.startswith("fieldmark.")

    def copied(self, *, anew: bool) -> Method:
        """The same method as if it had never been asked; `anew` imports its package anew."""
        cls = imported_anew(type(self)) if anew else type(self)
        made: Method = cls(**deepcopy(self.options))
        return made

    @property
    def needs(self) -> tuple[Need, ...]:
        """What the harness must supply with each part, for these settings."""
        return ()

    @property
    @abstractmethod
    def scale(self) -> Scale:
        """What its scores are."""

    @classmethod
    def expand(cls, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Settings that stand for others, such as a recipe, replaced by those."""
        return settings

    @property
    def external_data(self) -> tuple[str, ...]:
        """What it brings in from outside the release, one sentence each; features are recorded by themselves."""
        return ()

    @property
    def origin_known(self) -> bool:
        """Whether `external_data` is all there is; not for objects that say nothing about themselves."""
        return True

    @property
    def license(self) -> str:
        """The terms of weights that others have published, where it answers with those."""
        return NOT_STATED

    @property
    def learns_from_val(self) -> bool:
        """Whether the final model is fitted to val as well, where val was ours to draw."""
        return True

    @property
    def network_name(self) -> str:
        """What the network is called that it trains or answers with; empty for none."""
        return ""

    @property
    def chooses_on_val(self) -> bool:
        """Whether a network that it trains is chosen among several by how it does on val."""
        return False

    @property
    def open_inputs(self) -> bool:
        """Whether what it reads is settled only when a release is open (`for_release`)."""
        return False

    def for_release(self, inputs: Mapping[str, Input]) -> Method:
        """The method with the settings that follow from what a release has and its task allows; itself as a rule.

        Args:
            inputs: Those inputs by name.
        """
        return self

    def check(self, view: View) -> None:
        """Refuses what cannot be done on a release, before features are computed."""

    @abstractmethod
    def fit(self, view: View) -> Fitted:
        """Learns from train; chooses what its settings leave open on val, if the view has one."""

    def fit_again(self, arrays: Arrays, view: View) -> Fitted:
        """Learns once more, from a larger train and without val, with the choices as they were made."""
        return self.fit(view)

    @abstractmethod
    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        """Scores every label for every item of a part, from what was learned."""

    def answer(self, arrays: Arrays, part: Part, labels: Labels) -> Predictions:
        """Answers a part; the scores of all labels unless a method would rather list a few, or draw masks."""
        scores = self.scores(arrays, part).astype(np.float32, copy=False)
        return LabelScores(part.item_ids, labels, scores, self.scale, unknown=self.unknown(arrays, part))

    def unknown(self, arrays: Arrays, part: Part) -> NDArray[np.float32] | None:
        """How strongly each item looks like none of the labels; higher is stranger. None where it does not say."""
        return None

    def unknown_scores(self, arrays: Arrays, part: Part) -> dict[str, NDArray[np.float32]]:
        """The same by every score that was tried, under its name."""
        return {}

    def unknown_scores_on_val(self, arrays: Arrays, val: Part) -> dict[str, NDArray[np.float32]]:
        """The same on val, labels included, where a score that was fitted to these very items must be judged apart."""
        return self.unknown_scores(arrays, val)

    @property
    def unknown_choice(self) -> tuple[str, str] | None:
        """The novelty score behind the answers and how it was chosen; None for a method without any."""
        return None

    def default_steps(self) -> tuple[Step, ...] | None:
        """The steps that follow where none are asked for; None for those of the task."""
        return None

    def backbone(self, arrays: Arrays, size: int = 0, resize: str = "") -> Any:
        """The network it trained as a source of features."""
        raise MisuseError(f"{type(self).__name__} trains no network that features could come from.")

    def start(self, arrays: Arrays) -> Any:
        """What a method that sees the past knows before the first day of a stream."""
        return None

    def answer_day(self, state: Any, arrays: Arrays, day: Part, labels: Labels) -> Predictions:
        """Answers some items of one day of a stream, knowing what earlier days have left in `state`.

        Only methods that see the past are asked in this way. They get one item at a time unless the task shows the
        items of a day to each other, and must leave `state` as it is.
        """
        return self.answer(arrays, day, labels)

    def observe(self, state: Any, arrays: Arrays, day: Part) -> Any:
        """What the method knows after a day that it has answered; the items of the day come without labels."""
        return state

    def reveal(self, state: Any, arrays: Arrays, day: Part, truth: NDArray[np.int32]) -> Any:
        """What the method knows once the labels of an earlier day have become known, where the task tells them.

        Args:
            state: What it knew before.
            arrays: What was learned.
            day: The items of that day, without labels.
            truth: Their label codes, -1 for unknown.
        """
        return state


class OnFeatures(Method):
    """A method that reads features of the media of a release, whatever they are."""

    @property
    def needs(self) -> tuple[Need, ...]:
        return (Need("features"),)


ON_TRAIN: Final = "train"
ON_VAL: Final = "val"
ON_BOTH: Final = "train and val"
# Of what was neither given nor chosen on anything.
USUAL: Final = "nothing"


class ChosenSetting(NamedTuple):
    """What a method chose as it was fitted.

    Args:
        name: The setting, or in words what is none.
        on: The part that it was chosen on, such as "val" or "train, by leaving species out"; `USUAL` for none.
        value: What was chosen; None where a remark of the method tells it.
    """

    name: str
    on: str
    value: Any = None

    @property
    def on_val(self) -> bool:
        """Whether val had a say in it."""
        return "val" in self.on.replace(",", " ").split()


@dataclass(frozen=True)
class Fitted:
    """A method with all its choices made, what it learned, and what a reader of its numbers should know.

    Args:
        method: The method.
        arrays: What it learned.
        remarks: What a reader should know, one sentence each.
        chosen: What its settings had left open and it chose, and on which part.
    """

    method: Method
    arrays: Arrays
    remarks: tuple[str, ...] = ()
    chosen: tuple[ChosenSetting, ...] = ()

    @classmethod
    def to(cls, method: Method, view: View, *, again: Arrays | None = None) -> Fitted:
        """A method fitted to a view, of which it sees everything but the names.

        Args:
            method: The method.
            view: What it may learn from.
            again: What it had learned before, where it learns once more (`Method.fit_again`).
        """
        with blinded_view(view, shuffled=method.shuffled) as (shown, names):
            made = method.fit(shown) if again is None else method.fit_again(again, shown)
        return replace(made, remarks=tuple(names.text(remark) for remark in made.remarks))

    def fresh(self, *, anew: bool) -> Fitted:
        """A copy that has answered nothing yet; `anew` imports its package anew, and copies what was learned."""
        arrays = {name: np.array(array) if anew else array for name, array in self.arrays.items()}
        return replace(self, method=self.method.copied(anew=anew), arrays=arrays)

    def predict(self, part: Part, labels: Labels) -> Any:
        """Answers the items of a part; the method is handed neither their labels nor their names."""
        with blinded(part.unlabeled(), shuffled=self.method.shuffled) as (shown, names):
            return names.back(self.method.answer(self.arrays, shown, labels))

    def answer_day(self, state: Any, day: Part, labels: Labels) -> Any:
        """Answers some items of one day of a stream."""
        with blinded(day) as (shown, names):
            return names.back(self.method.answer_day(state, self.arrays, shown, labels))

    def observe(self, state: Any, day: Part) -> Any:
        """What the method knows after a day that it has answered."""
        with blinded(day) as (shown, _):
            return self.method.observe(state, self.arrays, shown)

    def reveal(self, state: Any, day: Part, truth: NDArray[np.int32]) -> Any:
        """What the method knows once the labels of an earlier day are known."""
        with blinded(day) as (shown, _):
            return self.method.reveal(state, self.arrays, shown, truth)

    def unknown_scores(self, part: Part, *, on_val: bool) -> dict[str, NDArray[np.float32]]:
        """How strange each item is by every score that was tried; on val the labels are shown as well."""
        with blinded(part if on_val else part.unlabeled()) as (shown, _):
            asked = self.method.unknown_scores_on_val if on_val else self.method.unknown_scores
            return asked(self.arrays, shown)


def choices(asked: Method, fitted: Method, on: str) -> tuple[ChosenSetting, ...]:
    """The settings that differ after a fit, as chosen on a part; not those that follow from what is asked.

    Args:
        asked: The method as it was configured.
        fitted: The same with its choices made.
        on: The part that they were chosen on.
    """
    before, after = asked.options, fitted.options
    changed = [name for name in after if after[name] != before.get(name) and name not in asked.follows_from_task]
    return tuple(ChosenSetting(name, on, after[name]) for name in changed)


def told_choices(chosen: Sequence[ChosenSetting]) -> list[str]:
    """What was chosen on which part, a sentence for each part.

    >>> told_choices([ChosenSetting("l2", ON_VAL, 0.01), ChosenSetting("margin", ON_TRAIN, 0.1)])
    ['Chosen on val: l2 0.01.', 'Chosen on train: margin 0.1.']
    """
    told: dict[str, list[str]] = {}
    for name, on, value in chosen:
        if value is not None:
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            told.setdefault(on, []).append(f"{name} {shown}")
    start = {USUAL: "Neither given nor chosen, so at the usual values"}
    return [f"{start.get(on, f'Chosen on {on}')}: {', '.join(settings)}." for on, settings in told.items()]


def features_of(part: Part, name: str = "") -> NDArray[np.float32]:
    """The features of a part, which the harness supplies to methods that need them.

    Args:
        part: The part.
        name: Of which input; empty for the only one there is.
    """
    if not part.features:
        raise ValueError("this part comes without features")
    if name:
        return part.features[name]
    if len(part.features) > 1:
        raise ValueError(f"which features are meant: {', '.join(part.features)}?")
    return next(iter(part.features.values()))


def truth_of(part: Part) -> NDArray[np.int32]:
    """The labels of a part that a method may learn from, one for each item.

    Raises:
        MisuseError: When items list several labels and none stands for the item: such a method would learn nonsense.
    """
    if part.truth is None:
        raise ValueError("this part comes without labels")
    if lists_labels(part):
        raise MisuseError(
            "This method learns one label from each item, and here items list several (all species of a place): take "
            "frequent, linear, random-forest, boosting, neighbors or another method for places."
        )
    return part.truth


def lists_labels(part: Part | None) -> bool:
    """Whether the items of a part list labels, and none of these stands for the item."""
    return part is not None and isinstance(part.targets, PairTargets) and part.targets.unranked


def targets_of(part: Part) -> Any:
    """The labels of a part in their own shape."""
    if part.targets is None:
        raise ValueError("this part comes without labels")
    return part.targets


def with_targets(part: Part, **changed: Any) -> Part:
    """The part with other labels."""
    if part.targets is None:
        raise ValueError("this part comes without labels")
    return replace(part, targets=replace(part.targets, **changed))


def with_lengths(features: NDArray[np.float32], lengths: str) -> NDArray[np.float32]:
    """Features of the `LENGTHS` that are set."""
    return unit_rows(features) if lengths == "unit" else features


def media_of(part: Part) -> MediaFiles:
    """The media of a part, for methods that read them."""
    if part.media is None:
        raise ValueError("this part comes without a way to open its media")
    return part.media


__all__ = [
    "ON_BOTH",
    "ON_TRAIN",
    "ON_VAL",
    "USUAL",
    "Arrays",
    "ChosenSetting",
    "Fitted",
    "Form",
    "Method",
    "Need",
    "OnFeatures",
    "choices",
    "features_of",
    "input_of",
    "lists_labels",
    "media_of",
    "targets_of",
    "told_choices",
    "truth_of",
    "unit_rows",
    "with_lengths",
    "with_targets",
]
