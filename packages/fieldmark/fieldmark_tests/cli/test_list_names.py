"""`fieldmark list`, help texts and the tab key: what a newcomer asks first."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
import typer
from typer.testing import CliRunner

from fieldmark.cli import completion
from fieldmark.cli.main import app
from fieldmark.features.settings import FeatureSettings
from fieldmark.fitting.setting_lists import describe
from fieldmark.methods import METHODS, methods_by_question
from fieldmark.steps import STEPS

GROUP = typer.main.get_command(app)


def shown(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(("kind", "names"), [("methods", METHODS), ("steps", STEPS)])
def test_every_setting_has_a_type_a_default_and_a_sentence(kind, names):
    for name in names:
        for notes in describe(kind, name).settings.values():
            for note in notes:
                assert note.about and note.type and note.default, f"{name}: {note.name}"


def test_what_is_shown_of_a_method_are_the_fields_of_its_class():
    settings = json.loads(shown("list", "methods", "knn", "--json"))["settings"]
    assert [one["name"] for one in settings["of the method"]] == [one.name for one in fields(METHODS["knn"])]
    assert [one["name"] for one in settings["of its features"]] == [one.name for one in fields(FeatureSettings)]
    assert next(one for one in settings["of the method"] if one["name"] == "k")["default"] == "10"


def test_settings_are_shown_for_methods_steps_backbones_and_recipes():
    assert "How many neighbors vote." in shown("list", "methods", "knn")
    assert "What logits are divided by" in shown("list", "steps", "temperature")
    assert "The side of the photo in pixels" in shown("list", "backbones", "efficientnet_lite0")
    scratch = shown("list", "recipes", "scratch")
    assert "resnet10t" in scratch and "example: fieldmark fit" in scratch
    assert "better" in shown("list", "recipes")


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("methods", "knnn"), "Did you mean knn"),
        (("backbones", "efficientnet_lite9"), "Did you mean efficientnet_lite"),
        (("metrics", "top_1"), "settings are shown for methods"),
    ],
)
def test_a_name_that_there_is_not_gets_advice(words, advice):
    assert advice in str(CliRunner().invoke(app, ["list", *words]).exception)


def test_methods_are_listed_by_question_each_once_and_chains_apart():
    grouped = methods_by_question()
    names = [name for own in grouped.values() for name in own]
    assert sorted(names) == sorted(METHODS)
    text = shown("list", "methods")
    places = [text.index(one) for one in ("two domains", "fsada", "chains: ", "min-cost")]
    assert places == sorted(places)


@pytest.mark.parametrize("command", [("--help",), ("fit", "--help"), ("challenge", "reveal", "--help")])
def test_flags_stand_without_a_type(command):
    text = shown(*command)
    assert "--help" in text and "bool" not in text


def complete(words: str, shell: str = "bash") -> str:
    variables = {"_FIELDMARK_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    return CliRunner().invoke(app, [], env=variables, prog_name="fieldmark").stdout


def test_the_tab_key_offers_commands_and_names():
    assert complete("fieldmark comp").split() == ["compare"]
    assert "birdclef-2020" in complete("fieldmark score bird").split()
    assert complete("fieldmark fit folder --method line").split() == ["linear"]
    assert complete("fieldmark list methods fine").split() == ["finetune", "finetune-oracle"]
    assert "--show-completion" in shown("--help")


def test_each_name_is_offered_with_its_line():
    assert completion.methods("knn") == [("knn", METHODS.about("knn"))]
    assert completion.steps("temperature") and completion.datasets("fold") and completion.worlds("bird")
    assert completion.benchmarks("folder") and completion.kinds("rec") == ["recipes"]
