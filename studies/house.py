"""`python -m studies.house [SOURCES ...]`: counts modules, lines and imports of each package, as a Markdown table.

Code lines are those that are neither blank nor comments nor within docstrings; import lines are code lines of import
statements. A module is small with fewer than 70 code lines. Imports for type checkers alone do not count in chains.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "packages/fieldmark/src", ROOT / "packages/fieldmark-challenge/src")
SMALL = 70


@dataclass(frozen=True)
class Module:
    """One module of a package."""

    name: str
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @cached_property
    def code_lines(self) -> int:
        lines = self.path.read_text(encoding="utf-8").split("\n")
        prose = {number for node in ast.walk(self.tree) for number in _docstring_lines(node)}
        return sum(
            bool(line.strip()) and not line.lstrip().startswith("#") and number not in prose
            for number, line in enumerate(lines, 1)
        )

    @cached_property
    def import_lines(self) -> int:
        kinds = (ast.Import, ast.ImportFrom)
        return sum((node.end_lineno or 0) - node.lineno + 1 for node in ast.walk(self.tree) if isinstance(node, kinds))


def _docstring_lines(node: ast.AST) -> Iterator[int]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
        first = node.body[0]
        yield from range(first.lineno, (first.end_lineno or first.lineno) + 1)


def modules_below(source: Path) -> dict[str, Module]:
    """The modules of all packages in a folder, by name."""
    found = {}
    for path in sorted(source.glob("*/**/*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        found[name] = Module(name, path)
    return found


def imported_by(module: Module, known: dict[str, Module]) -> set[str]:
    """The modules of ours that one imports, at its top or later."""
    typed = {
        id(inner)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in ast.walk(module.tree):
        if id(node) in typed:
            continue
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names.update(name if name in known else node.module for name in full)
    return {name for name in names if name in known and name != module.name}


def longest_chain(imports: dict[str, set[str]]) -> int:
    """How many modules the longest chain of imports passes, each once."""
    lengths: dict[str, int] = {}

    def length(name: str, above: frozenset[str]) -> int:
        if name not in lengths:
            lengths[name] = 1 + max((length(n, above | {name}) for n in imports[name] - above - {name}), default=0)
        return lengths[name]

    return max(length(name, frozenset()) for name in imports)


def rows_of(sources: list[Path]) -> list[list[str]]:
    """A row of counts for each package, and one for all."""
    known = {name: module for source in sources for name, module in modules_below(source).items()}
    imports = {name: imported_by(module, known) for name, module in known.items()}
    importers = Counter(name for names in imports.values() for name in names)
    rows = []
    for package in [*dict.fromkeys(name.partition(".")[0] for name in known), "all"]:
        own = [module for name, module in known.items() if package in (name.partition(".")[0], "all")]
        code, imported = sum(one.code_lines for one in own), sum(one.import_lines for one in own)
        single = [one for one in own if importers[one.name] == 1 and one.path.name != "__init__.py"]
        small = sum(one.code_lines < SMALL for one in single)
        lines = sum(one.path.read_text(encoding="utf-8").count("\n") for one in own)
        chain = longest_chain({one.name: {n for n in imports[one.name] if n in {m.name for m in own}} for one in own})
        numbers = (len(own), lines, code)
        shares = (f"{imported / code:.1%}", f"{len(single)}", f"{small}", f"{chain}")
        rows.append([f"`{package}`", *(f"{number:,}" for number in numbers), *shares])
    return rows


def main() -> None:
    """Prints the table."""
    sources = [Path(argument) for argument in sys.argv[1:]] or list(SOURCES)
    heads = ["package", "modules", "lines", "code lines", "imports", "one importer", "of these small", "longest chain"]
    print("|", " | ".join(heads), "|")
    print("|" + "---|" * len(heads))
    for row in rows_of(sources):
        print("|", " | ".join(row), "|")


if __name__ == "__main__":
    main()
