"""The pages about settings of methods, steps, features and recipes, from the dataclasses that hold them."""

from __future__ import annotations

from fieldmark.features.settings import EncoderSettings, FeatureSettings
from fieldmark.fitting.setting_lists import Description, describe, recipe_lines
from fieldmark.methods import METHODS
from fieldmark.settings import SettingNote, setting_notes
from fieldmark.steps import STEPS
from fieldmark.training.recipe import Recipe
from handbook.markdown import anchor, code, table


def methods_page() -> str:
    """Every method with its settings."""
    lines = [
        "# Methods and their settings",
        "",
        "`fieldmark fit BENCHMARK --data ROOT --method NAME --set KEY=VALUE`. In a shell the same tables: "
        "`fieldmark list methods NAME`. Methods on features take the [settings of features](features.md) as well.",
        "",
    ]
    return "\n".join([*lines, *_listed("methods", list(METHODS))])


def steps_page() -> str:
    """Every step with its settings."""
    lines = [
        "# Steps and their settings",
        "",
        "`fieldmark fit ... --step NAME:KEY=VALUE,KEY=VALUE`, in order. In a shell the same tables: "
        "`fieldmark list steps NAME`.",
        "",
    ]
    return "\n".join([*lines, *_listed("steps", list(STEPS))])


def features_page() -> str:
    """The settings of features and of inputs."""
    return "\n".join(
        [
            "# Settings of features and inputs",
            "",
            "For methods that read features: `--set backbone=NAME --set size=160`. Which backbones are ready on a "
            "machine says `fieldmark backbones`.",
            "",
            _notes(setting_notes(FeatureSettings), whole=True),
            "",
            "## Inputs that are no pictures",
            "",
            "Written with the name of the input: `--set habitat.categories=20`.",
            "",
            _notes(setting_notes(EncoderSettings), whole=True),
            "",
        ]
    )


def recipes_page() -> str:
    """The settings of a training, and the built-in recipes."""
    shipped = recipe_lines()
    return "\n".join(
        [
            "# Recipes of training",
            "",
            "`--method finetune --set recipe=NAME`, a file in TOML, or single settings on top. See "
            "[training](../training.md).",
            "",
            table(["recipe", ""], ([code(name), about] for name, about in shipped.items())),
            "",
            "## What a recipe may say",
            "",
            _notes(setting_notes(Recipe), whole=True),
            "",
        ]
    )


def _listed(kind: str, names: list[str]) -> list[str]:
    described = [describe(kind, name) for name in names]
    lines = [table(["name", ""], ([f"[`{one.name}`](#{anchor(one.name)})", one.about] for one in described)), ""]
    for one in described:
        lines += _one(one)
    return lines


def _one(one: Description) -> list[str]:
    lines = [f"## {one.name}", "", one.text or one.about, ""]
    own = next(iter(one.settings.values()))
    lines += [_notes(own, whole=True) if own else "Nothing can be set.", ""]
    return [*lines, "```", one.example, "```", ""]


def _notes(notes: list[SettingNote], *, whole: bool) -> str:
    rows = ([code(note.name), note.allowed, note.default, note.wants if whole else note.about] for note in notes)
    return table(["setting", "type", "default", ""], rows)
