"""A method with its settings, and the settings of the features that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.features.given_backbones import GivenBackbone
from fieldmark.features.settings import EncoderSettings, FeatureSettings, encoder_of
from fieldmark.methods import METHODS
from fieldmark.methods.base import Method, input_of
from fieldmark.methods.estimators import Estimator, estimator_name, is_estimator
from fieldmark.models import feature_source
from fieldmark.models.supply import InputEncoder, Supply, feature_inputs, table_inputs
from fieldmark.settings import configure
from fieldmark.tables.inputs import PHOTO_INPUT, Input


@dataclass(frozen=True)
class Configured:
    """A method as it was asked for.

    Args:
        name: The name of the method.
        method: The method with its settings.
        features: For each input that it needs features of (empty for the media of the release), the settings given.
        of_inputs: The settings that were given for one input by its name (`caption.words`), by that name.
        given: All settings as they were asked for.
        own: Whether the method was given as an object that no registry names.
        own_backbone: What makes the features, where it was given as an object.
    """

    name: str
    method: Method
    features: Mapping[str, Mapping[str, Any]]
    of_inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False
    own_backbone: GivenBackbone | None = None

    def on_release(self, inputs: Mapping[str, Input]) -> Configured:
        """The same with the settings that follow from what a release has and its task allows.

        Args:
            inputs: Those inputs by name.
        """
        settled = self.method.for_release(inputs)
        if settled == self.method:
            return self
        options = {name: value for name, value in settled.options.items() if self.method.options.get(name) != value}
        if self.own:
            made = configured_method(settled, self.given)
        else:
            made = configured_method(self.name, {**self.given, **options})
        return replace(made, own_backbone=self.own_backbone)

    def feature_settings(self, declared: Mapping[str, Input], main: str) -> dict[str, FeatureSettings]:
        """The settings of features, completed by what the inputs of a release come with.

        Args:
            declared: The inputs of the release.
            main: The backbone for its media where no other is asked for.
        """
        made = {}
        for key, given in self.features.items():
            name = input_of(key)
            if name and encoder_of(self._declared(declared, name).extractor):
                continue
            backbone = given.get("backbone", declared[name].extractor if name else main)
            looked_at = self.method.usual_features(backbone if name in ("", PHOTO_INPUT.name) else "")
            made[key] = configure({"backbone": backbone, **looked_at, **given}, FeatureSettings)[0]
        return made

    def encoders(self, declared: Mapping[str, Input], store: Path | None = None) -> dict[str, InputEncoder]:
        """What makes numbers of the inputs that no backbone looks at, by their names.

        Raises:
            MisuseError: For settings that encoders do not have, and for a table of an input that is none.
        """
        made = {}
        for name in dict.fromkeys((*map(input_of, self.features), *table_inputs(self.method))):
            if not name or not encoder_of(self._declared(declared, name).extractor):
                if name in table_inputs(self.method):
                    raise MisuseError(f"The method {self.name!r} needs the input {name!r} as a table, and it is none.")
                continue
            if encoder_of(declared[name].extractor) == "columns" and not declared[name].columns:
                raise MisuseError(
                    f"The input {name!r} is neither a picture nor a table, and no features can be made of it."
                )
            settings = configure(self.of_inputs.get(name, {}), EncoderSettings)[0]
            made[name] = InputEncoder(declared[name], settings, store)
        return made

    def supply(self, declared: Mapping[str, Input], main: str, store: Path | None = None) -> Supply:
        """Where the features come from."""
        settings = self.feature_settings(declared, main)
        sources = {name: feature_source(one, store, self.own_backbone) for name, one in settings.items()}
        return Supply(sources, self.encoders(declared, store))

    def _declared(self, declared: Mapping[str, Input], name: str) -> Input:
        if name not in declared:
            raise MisuseError(f"The method {self.name!r} needs the input {name!r}. {did_you_mean(name, declared)}")
        return declared[name]


def configured_method(asked: str | Method | Any, settings: Mapping[str, Any], seed: int = 0) -> Configured:
    """A method with settings of its own and of its features; `input.setting` means those of one input.

    Args:
        asked: The name of a method, a method, or anything with scikit-learn's `fit` and `predict_proba`.
        settings: Those settings.
        seed: For a method that draws, unless its own seed was given.

    Raises:
        MisuseError: For names and values that nothing has, and for what is no method.
    """
    named = asked if isinstance(asked, str) else METHODS.name_of(type(asked)) if isinstance(asked, Method) else None
    own: set[str] = set()
    if named is None:
        cls, name, method = type(asked), *_own_method(asked)
    else:
        name, cls = named, METHODS[named]
        own = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        settings = settings if isinstance(asked, str) else {**asked.options, **settings}
        if "seed" in own:
            settings = {"seed": seed, **settings}
        settings = cls.expand(settings)
        method = configure({key: value for key, value in settings.items() if key in own}, cls)[0]
    dotted = {key: value for key, value in settings.items() if "." in key}
    plain = {key: value for key, value in settings.items() if "." not in key}
    inputs = feature_inputs(method)
    further = {key: value for key, value in plain.items() if key not in own}
    if further:  # says which setting there is not
        configure(plain, *([cls] if own else []), *([FeatureSettings] if inputs or method.open_inputs else []))
    apart = {need.key: dict(need.settings) for need in method.needs}
    features: dict[str, dict[str, Any]] = {one: {**further, **apart[one]} for one in inputs}
    of_inputs: dict[str, dict[str, Any]] = {}
    for key, value in dotted.items():
        of, _, setting = key.partition(".")
        if of not in features and method.open_inputs:
            of_inputs.setdefault(of, {})[setting] = value  # held against the inputs when they are settled
            continue
        if of not in features:
            names = ", ".join(one for one in inputs if one) or "none"
            raise MisuseError(f"There is no input called {of!r} to set {setting} of; this method names: {names}.")
        features[of][setting] = value
        of_inputs.setdefault(of, {})[setting] = value
    for one, given in features.items():
        # Whether an input is a picture is known when the release is open.
        either = (FeatureSettings, EncoderSettings) if input_of(one) else (FeatureSettings,)
        configure({**method.feature_defaults, **given}, *either)
    return Configured(name, method, features, of_inputs, settings, own=named is None)


def _own_method(asked: Any) -> tuple[str, Method]:
    """The name and the method of an object that no registry names."""
    if isinstance(asked, Method):
        return type(asked).__name__, asked
    if is_estimator(asked) and not isinstance(asked, type):
        return estimator_name(asked), Estimator(asked)
    lacks = "has no predict_proba (CalibratedClassifierCV gives it one)" if hasattr(asked, "fit") else "is neither"
    raise MisuseError(
        "A method is a name (`fieldmark list methods`), a Method, or an object with fit and predict_proba; "
        f"{type(asked).__name__} {lacks}."
    )
