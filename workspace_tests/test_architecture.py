"""Rules for names: what tests may use, what classes may be called.

Rules for imports between packages are contracts of import-linter in `pyproject.toml`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import pytest

from fieldmark_tests.places import ROOT

TESTS = [
    ROOT / "packages" / "fieldmark" / "fieldmark_tests",
    ROOT / "packages" / "fieldmark-challenge" / "fieldmark_challenge_tests",
    ROOT / "workspace_tests",
]
SOURCES = [
    ROOT / "packages" / "fieldmark" / "src" / "fieldmark",
    ROOT / "packages" / "fieldmark" / "src" / "fieldmark_worlds",
    ROOT / "packages" / "fieldmark-challenge" / "src" / "fieldmark_challenge",
]
# Private names of other libraries that a test compares with or counts by, and methods of named tuples and notebooks.
OF_OTHERS = {
    "_AUGMENTATION_SPACE",
    "_MODEL_CONFIGS",
    "_apply_image_or_video_transform",
    "_get_form",
    "_get_ops_details",
    "_python_dispatch",
    "_replace",
    "_repr_html_",
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OF_OTHERS


def private_names(source: str) -> Iterator[str]:
    """The private names that a file imports, reads from another object, or patches, each with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            words = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            words = [word for alias in node.names for word in alias.name.split(".")]
        elif isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            words = [] if own else [node.attr]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".setattr", ".delattr")):
            texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            words = [word for text in texts for word in text.split(".")]
        else:
            continue
        yield from (f"line {node.lineno}: {word}" for word in words if is_private(word))


@pytest.mark.parametrize(
    "line",
    [
        "from fieldmark.fitting.harness import _fit",
        "harness._fit(method)",
        'monkeypatch.setattr(harness, "_fit", other)',
        'monkeypatch.setattr("fieldmark.fitting.harness._fit", other)',
    ],
)
def test_private_names_are_found_however_they_are_reached(line):
    assert list(private_names(line)) == ["line 1: _fit"]


def test_tests_use_public_names_only():
    files = [path for tests in TESTS for path in tests.rglob("*.py") if "site-packages" not in path.parts]
    assert len(files) > 500  # an empty folder would prove nothing
    uses = {str(path.relative_to(ROOT)): list(private_names(path.read_text(encoding="utf-8"))) for path in files}
    assert {name: lines for name, lines in uses.items() if lines} == {}


def names_of_two_classes(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """The names that more than one class bears, with the files of those classes; nested classes count as well."""
    files: dict[str, list[str]] = {}
    for file, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name, []).append(file)
    return {name: sorted(files[name]) for name in sorted(files) if len(files[name]) > 1}


def test_names_of_two_classes_are_found():
    sources = {"a.py": "class Box: ...", "b.py": "class Tree:\n    class Box: ...", "c.py": "class Boxes(Box): ..."}
    assert names_of_two_classes(sources) == {"Box": ["a.py", "b.py"]}


def test_every_class_has_a_name_of_its_own():
    """Whoever meets a class name in a message, a signature or a search must know which class is meant."""
    folders = [sorted(source.rglob("*.py")) for source in SOURCES]
    assert all(len(files) > 50 for files in folders)  # an empty folder would prove nothing
    files = [path for folder in folders for path in folder]
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    assert names_of_two_classes(sources) == {}
