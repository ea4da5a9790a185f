"""One member of an ensemble: a method with what it reads, by itself and fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.features.settings import FeatureSettings, names_folder
from fieldmark.methods import METHODS
from fieldmark.methods.base import Arrays, ChosenSetting, Method, Need, input_of
from fieldmark.questions.targets import Shape
from fieldmark.runs.label_scores import LabelScores
from fieldmark.settings import configure, parse_pairs
from fieldmark.tables.inputs import MEDIA_INPUTS, PHOTO_INPUT, Input
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part, View

# Labels as they must be for the scores of several methods to have a mean.
SHAPES: tuple[Shape, ...] = ("codes", "pairs")


@dataclass(frozen=True)
class EnsembleMember:
    """One method of an ensemble.

    Args:
        name: Of the method.
        method: The method; with its choices made, once it is fitted.
        given: Its settings and those of its features, as they were asked for.
        features: Settings of its features alone.
        arrays: What it learned; nothing before.
        number: Which of the members it is.
        remarks, chosen: What is to be said of it, and what it chose.
    """

    name: str
    method: Method
    given: Mapping[str, Any]
    features: Mapping[str, Any]
    arrays: Arrays = field(default_factory=dict)
    number: int = 0
    remarks: tuple[str, ...] = ()
    chosen: tuple[ChosenSetting, ...] = ()

    @classmethod
    def of(cls, name: str, given: Mapping[str, Any], seed: int) -> EnsembleMember:
        """A member by its name and settings.

        Raises:
            MisuseError: For one that cannot be a member, and for settings that it does not have.
        """
        if name not in METHODS:
            raise MisuseError(f"ensemble has no member called {name!r}. {did_you_mean(name, METHODS)}")
        made = METHODS[name]
        if name == "ensemble" or not set(SHAPES) & set(_shapes(made)):
            raise MisuseError(f"ensemble takes methods that score labels, each by itself; {name} is none.")
        own = {one.name for one in fields(made)}  # type: ignore[arg-type]
        settings = {**({"seed": seed} if "seed" in own else {}), **given}
        further = {key: value for key, value in given.items() if key not in own}
        expanded = {key: value for key, value in made.expand(settings).items() if key in own}
        try:
            method: Method = configure(expanded, made)[0]
            reads = any(need.form == "features" for need in method.needs) or method.open_inputs
            configure({**expanded, **further}, made, *([FeatureSettings] if reads else []))
        except MisuseError as error:
            raise MisuseError(f"ensemble, member {name}: {error}") from error
        if "hidden labels" in method.learns_from:
            raise MisuseError(f"{name} reads hidden labels: it is a bound, and no member of an ensemble.")
        if names_folder(str(further.get("backbone", ""))):
            raise MisuseError(
                f"ensemble, member {name}: backbone={further['backbone']} is a folder; train the network as a member "
                "(finetune), or average the runs (`fieldmark ensemble RUN RUN`)."
            )
        return cls(name, method, given, {**(made.feature_defaults if reads else {}), **further})

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it reads, features with its own settings."""
        apart = tuple(sorted(self.features.items()))
        return tuple(replace(need, settings=apart) if need.form == "features" else need for need in self.method.needs)

    @property
    def text(self) -> str:
        """As it would be asked for."""
        return ":".join([self.name, *(f"{key}={value}" for key, value in self.given.items())])

    def for_release(self, inputs: Mapping[str, Input]) -> EnsembleMember:
        """The same with the settings that follow from what a release has."""
        settled = self.method.for_release(inputs)
        before, after = self.method.options, settled.options
        changed = {key: value for key, value in after.items() if before.get(key) != value}
        usual: dict[str, Any] = {}
        if PHOTO_INPUT.name in inputs and "output" not in self.features:
            usual = settled.usual_features(str(self.features.get("backbone", PHOTO_INPUT.extractor)))
        given, features = {**self.given, **changed, **usual}, {**usual, **self.features}
        return replace(self, method=settled, given=given, features=features)

    def shown(self, part: Part) -> Part:
        """A part with the features that it needs, under the names it knows, and no others."""
        features: dict[str, Any] = {}
        missing: dict[str, Any] = {}
        for need in self.needs:
            if need.form not in ("features", "table"):
                continue
            key = need.key if need.key in part.features else _plain_key(need.input, part)
            if key not in part.features:
                continue
            name = need.input or next(iter(MEDIA_INPUTS))
            features[name] = part.features[key]
            missing |= {name: part.missing[key]} if key in part.missing else {}
        return replace(part, features=features, missing=missing)

    def fit(self, view: View, *, again: bool = False) -> EnsembleMember:
        """The same with what it learned of a view, of which it is shown what it may see."""
        learns, method = set(self.method.learns_from), self.method
        val = view.val if method.wants_unknown or view.val is None else view.val.of_known_labels()
        unlabeled = view.unlabeled if learns & {"unlabeled", "coarse"} else None
        if unlabeled is not None and "coarse" not in learns:
            unlabeled = unlabeled.unlabeled()
        test = view.test if method.sees == "test set" else None
        parts = {"train": view.train, "val": val, "unlabeled": unlabeled, "test": test}
        shown: dict[str, Any] = {name: None if part is None else self.shown(part) for name, part in parts.items()}
        scratch = None if view.scratch is None else view.scratch / f"member-{self.number}"
        own = replace(view, **shown, scratch=scratch)
        fitted = method.fit_again(self.arrays, own) if again else method.fit(own)
        chosen = tuple(choice._replace(name=f"{self.name}: {choice.name}") for choice in fitted.chosen)
        return replace(self, method=fitted.method, arrays=fitted.arrays, remarks=fitted.remarks, chosen=chosen)

    def answer(self, part: Part, labels: Labels) -> LabelScores:
        """What it says of a part.

        Raises:
            MisuseError: When it gives no scores of labels.
        """
        answers = self.method.answer(self.arrays, self.shown(part.unlabeled()), labels)
        if not isinstance(answers, LabelScores):
            raise MisuseError(f"ensemble takes methods that score labels; {self.name} does not.")
        return answers


class AskedMember(NamedTuple):
    """A member as it is asked for: the name of its method, and settings."""

    name: str
    settings: dict[str, str]


def parse_members(text: str) -> list[AskedMember]:
    """The members in a setting. What follows a comma or a colon and is no method, or no setting, goes on with a value.

    >>> [tuple(one) for one in parse_members("cnn:epochs=2,random-forest:inputs=environment,place:trees=10")]
    [('cnn', {'epochs': '2'}), ('random-forest', {'inputs': 'environment,place', 'trees': '10'})]
    """
    pieces: list[str] = []
    for piece in text.split(",") if text.strip() else ():
        if pieces and piece.partition(":")[0].strip() not in METHODS and "=" in pieces[-1]:
            pieces[-1] += f",{piece}"
        else:
            pieces.append(piece.strip())
    asked = []
    for piece in pieces:
        name, *settings = piece.split(":")
        pairs: list[str] = []
        for one in settings:
            if "=" in one or not pairs:
                pairs.append(one)
            else:
                pairs[-1] += f":{one}"
        asked.append(AskedMember(name.strip(), parse_pairs(pairs)))
    return asked


def _shapes(method: type[Method]) -> tuple[Shape, ...]:
    shapes: Any = method.targets
    return SHAPES if isinstance(shapes, property) else shapes


def _plain_key(name: str, part: Part) -> str:
    """What the features of an input are called that have no settings of their own."""
    if name:
        return name
    if part.media is not None and part.media.medium.name in part.features:
        return part.media.medium.name
    return next((key for key in part.features if input_of(key) == key), "")
