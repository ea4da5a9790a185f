"""What can be set on a method, a step, a backbone or a recipe: generated from the dataclasses that hold it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.features.settings import EMBEDDERS, PACKAGED, EncoderSettings, FeatureSettings
from fieldmark.methods import METHODS
from fieldmark.settings import REQUIRED, SettingNote, setting_notes
from fieldmark.steps import STEPS


@dataclass(frozen=True)
class Description:
    """One entry of a list, in full.

    Args:
        name: Its name.
        about: One line about it.
        text: What its docstring says besides.
        example: A command that uses it.
        settings: What can be set, by the group it belongs to.
    """

    name: str
    about: str
    text: str = ""
    example: str = ""
    settings: Mapping[str, list[SettingNote]] = field(default_factory=dict)


def describe(kind: str, name: str) -> Description:
    """A method, step, backbone or recipe with all that can be set.

    Raises:
        MisuseError: For a kind without settings, or a name that there is not.
    """
    if kind not in DESCRIBED:
        raise MisuseError(f"Nothing can be set on {kind}; settings are shown for {', '.join(DESCRIBED)}.")
    return DESCRIBED[kind](name)


def recipe_lines() -> dict[str, str]:
    """The built-in recipes, each with what its first line says."""
    from fieldmark.training.recipe import recipe_text, shipped_recipes

    return {name: recipe_text(name).partition("\n")[0].removeprefix("# ") for name in shipped_recipes()}


def _method(name: str) -> Description:
    from fieldmark.models.supply import feature_inputs  # late: a list of names needs none of it

    about, cls = METHODS.about(name), METHODS[name]
    notes = setting_notes(cls)
    must = [note.name for note in notes if note.default == REQUIRED]
    method: Any = cls(**dict.fromkeys(must, ""))  # what it reads may depend on how it is set
    settings = {"of the method": notes}
    if feature_inputs(method) or method.open_inputs:
        settings["of its features"] = setting_notes(FeatureSettings)
    if method.open_inputs or any(feature_inputs(method)):
        settings["of inputs that are no pictures, as INPUT.NAME=VALUE"] = setting_notes(EncoderSettings)
    given = [f"{one}=..." for one in must] or [f"{note.name}={note.default}" for note in notes if note.writable][:1]
    example = " --set ".join([f"fieldmark fit folder --data my-photos --method {name}", *given])
    return Description(name, about, _prose(cls), example, settings)


def _step(name: str) -> Description:
    about, cls = STEPS.about(name), STEPS[name]
    notes = setting_notes(cls)
    must = ",".join(f"{note.name}=..." for note in notes if note.default == REQUIRED)
    example = f"fieldmark fit folder --data my-photos --method linear --step {name}{':' if must else ''}{must}"
    return Description(name, about, _prose(cls), example, {"of the step": notes})


def _backbone(name: str) -> Description:
    packaged = {one: f"ImageNet weights in the package {package}" for one, (package, _) in PACKAGED.items()}
    known = {**packaged, **{one: f"for recordings: {about}" for one, about in EMBEDDERS.items()}}
    from fieldmark.features.available import KNOWN

    known |= {one.name: f"{one.about}, weights from {one.repository} on the hub" for one in KNOWN}
    if name not in known:
        advice = "Any other name of timm works as well, with these settings: `fieldmark list backbones NAME` for one of"
        raise MisuseError(f"{name!r} is not listed. {advice} {', '.join(packaged)}. {did_you_mean(name, known)}")
    example = f"fieldmark fit folder --data my-photos --method linear --set backbone={name}"
    return Description(name, known[name], "", example, {"of features": setting_notes(FeatureSettings)})


def _recipe(name: str) -> Description:
    from fieldmark.training.recipe import Recipe, read_recipe, recipe_text

    given = read_recipe(name)
    notes = [replace(note, default=_as_set(given[note.name])) for note in setting_notes(Recipe) if note.name in given]
    others = [note for note in setting_notes(Recipe) if note.name not in given]
    first = recipe_text(name).partition("\n")[0].removeprefix("# ")
    example = f"fieldmark fit folder --data my-photos --method finetune --set recipe={name}"
    return Description(name, first, "", example, {"of the recipe": notes, "as they are by default": others})


DESCRIBED: dict[str, Callable[[str], Description]] = {
    "methods": _method,
    "steps": _step,
    "backbones": _backbone,
    "recipes": _recipe,
}


def _prose(cls: type) -> str:
    """What a docstring says before its arguments."""
    return inspect.cleandoc(cls.__doc__ or "").partition("\nArgs:")[0].partition("\nAttributes:")[0].strip()


def _as_set(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
