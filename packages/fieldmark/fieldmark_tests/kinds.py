"""The kinds of tests that `make quick` leaves out, and which test is of which kind.

A kind is decided here, by folder, by fixture and by what a module imports, and not by marks in hundreds of files. What
a folder or a file says is known before it is imported, so that a run that leaves a kind out need not import it either.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from functools import cache
from itertools import compress, product
from pathlib import Path

import pytest

from fieldmark_tests.places import ROOT

KINDS = ("postgres", "browser", "sandbox", "servers", "platform", "training", "slow")
QUICK = f"not ({' or '.join(KINDS)})"

# Folders and files below the tests and below the sources of the core, whose doctests go with them.
PATHS = {
    "cli/test_naming_many.py": "training",
    "cli/test_startup.py": "servers",
    "steps/priors/test_places.py": "training",
    "object_storage": "servers",
    "releases/download": "servers",
    "work/test_ray_blocks.py": "servers",
    "work/test_ray_cluster.py": "servers",
    "features": "training",
    "fitting": "training",
    "identification": "training",
    "methods": "training",
    "models": "training",
    "releases/test_later_releases.py": "training",
    "test_golden_version_1_models.py": "training",
    "training": "training",
    "audio/test_spectrograms.py": "slow",
    "exporting": "slow",
    "oracles/test_masks.py": "slow",
    "oracles/test_names_and_order.py": "slow",
    "oracles/test_spelling.py": "slow",
    "oracles/test_stored_predictions.py": "slow",
    "real": "slow",
    "reports/pages": "slow",
    "suites": "slow",
    "worlds": "slow",
}
# All tests and sources of these are of one kind.
WHOLE = {
    "packages/fieldmark-challenge": "platform",
    "packages/fieldmark/src/fieldmark_worlds": "slow",
    "workspace_tests": "slow",
}
FIXTURES = {
    "postgresql": "postgres",
    "empty_postgresql": "postgres",
    "browser": "browser",
    "_walls": "sandbox",
    "bucket": "servers",
    "ray_cluster": "servers",
    "two_nodes": "servers",
    "color_model": "training",
    "fitted": "training",
    "region_run": "training",
    "bird_world": "slow",
    "land_world": "slow",
    "made_fungi": "slow",
    "made_unlabeled_fungi": "slow",
    "plant_world": "slow",
    "snake_world": "slow",
    "world": "slow",
}
# Single tests of files that are quick otherwise.
TESTS = {
    "cli/test_list_names.py": {"test_every_setting_has_a_type_a_default_and_a_sentence": "slow"},
    "cli/test_main.py": {
        "test_compare_truth_and_check_from_the_shell": "slow",
        "test_fit_score_and_predict_from_the_shell": "training",
        "test_progress_goes_to_standard_error_as_plain_lines_without_a_terminal": "training",
    },
    "releases/test_animalclef.py": {"test_photos_of_one_animal_are_put_together": "training"},
    "releases/test_copies.py": {"test_fit_says_that_photos_of_test_are_copies_and_how_to_list_them": "training"},
    "storage/test_picture_files.py": {"test_a_photo_of_one_pixel_is_a_plain_square_and_unknown": "training"},
    "releases/test_folder.py": {"test_recordings_are_fitted_and_scored_like_photos_and_have_a_page": "training"},
    "questions/test_new_kinds.py": {
        "test_a_new_kind_is_fitted_scored_and_reported": "training",
        "test_a_new_kind_is_hosted": "platform",
    },
    "steps/test_unknown_score.py": {"test_any_method_answers_an_open_set_by_its_logits": "training"},
}
# What a module says where it does such things.
WORDS = {
    "sandbox": re.compile(r"\b(bwrap|bubblewrap|Bubblewrap\w*|fieldmark_challenge_tests\.unprivileged)\b"),
    "training": re.compile(r"^\s*(import|from) (torch|timm|lightning_fabric|open_clip|transformers)\b", re.MULTILINE),
}
PLACES = ("packages/fieldmark/fieldmark_tests", "packages/fieldmark/src/fieldmark")


def below(path: Path) -> str:
    """A path as this module writes it: below the tests or the sources of the core."""
    places = [ROOT / place for place in PLACES if path.is_relative_to(ROOT / place)]
    return path.relative_to(places[0]).as_posix() if places else ""


@cache
def kinds_of_path(path: Path) -> frozenset[str]:
    """What is known of all tests of a file or folder before it is imported."""
    parts = below(path).split("/")
    starts = ("/".join(parts[: number + 1]) for number in range(len(parts)))
    found = {PATHS[start] for start in starts if start in PATHS}
    found.update(kind for place, kind in WHOLE.items() if path.is_relative_to(ROOT / place))
    if path.name.startswith("test_") and path.suffix == ".py":
        text = path.read_text(encoding="utf-8")
        found.update(kind for kind, words in WORDS.items() if words.search(text))
    return frozenset(found)


def kinds_of(item: pytest.Item) -> frozenset[str]:
    """All kinds of a test."""
    found = set(kinds_of_path(item.path))
    found.update(FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in FIXTURES)
    name = getattr(item, "originalname", None) or item.name
    found.update(kind for test, kind in TESTS.get(below(item.path), {}).items() if test == name)
    params = getattr(getattr(item, "callspec", None), "params", {})
    if "postgresql" in (value for value in params.values() if isinstance(value, str)):
        found.add("postgres")
    if params.get("block", 0) != 0 and below(item.path) == "oracles/test_values.py":  # one block of cases is enough
        found.add("slow")
    return frozenset(found)


def leaves_out(expression: str, kinds: Collection[str]) -> bool:
    """Whether `pytest -m expression` leaves out all tests of these kinds, whatever else they are marked with.

    Expressions that name other marks than the kinds leave out nothing here; pytest decides test by test.
    """
    names = set(re.findall(r"\w+", expression)) - {"not", "and", "or"}
    if not kinds or not expression or not names <= set(KINDS):
        return False
    try:
        parsed = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError:
        return False  # pytest says what is wrong with it
    others = sorted(names - set(kinds))
    choices = product((False, True), repeat=len(others))
    return not any(holds(parsed, {*kinds, *compress(others, choice)}) for choice in choices)


def holds(node: ast.expr, marks: Collection[str]) -> bool:
    """Whether a parsed expression of marks selects a test with these marks."""
    match node:
        case ast.Name(id=name):
            return name in marks
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not holds(operand, marks)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(holds(value, marks) for value in values)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(holds(value, marks) for value in values)
    return True  # nothing else is an expression of marks


class Kinds:
    """The plugin that marks tests by kind, those of the package included."""

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        return leaves_out(config.option.markexpr, kinds_of_path(collection_path)) or None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for kind in sorted(kinds_of(item)):
                item.add_marker(kind)
