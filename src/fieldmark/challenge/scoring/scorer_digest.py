"""Which scorer made a number, and from which bytes."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path

from fieldmark.foundation.files import sha256_of

ENTRANCE = "fieldmark.challenge.scoring.score_parts"
REGISTERED = re.compile(r"^(fieldmark[\w.]*):\w+$")


@cache
def scorer_digest() -> str:
    """One digest over everything that decides a number: all modules that scoring a run may import."""
    root = Path(str(resources.files("fieldmark")))
    total = hashlib.sha256()
    for file in sorted(scorer_sources()):
        total.update(f"{file.relative_to(root).as_posix()} {sha256_of(file)}\n".encode())
    return total.hexdigest()


@cache
def scorer_sources() -> frozenset[Path]:
    """The files of the scorer: what `score_parts` imports, directly or not, at once or later, by name or registry."""
    root = Path(str(resources.files("fieldmark"))).parent
    seen: set[str] = set()
    waiting = [ENTRANCE]
    while waiting:
        module = waiting.pop()
        file = _file_of(root, module)
        if module in seen or file is None:
            continue
        seen.add(module)
        waiting += _imported(ast.parse(file.read_text(encoding="utf-8")))
        waiting += [module.rpartition(".")[0]] if "." in module else []
    return frozenset(file for module in seen if (file := _file_of(root, module)) is not None)


def _file_of(root: Path, module: str) -> Path | None:
    """The file of a module of ours, None for anything else."""
    place = root / module.replace(".", "/")
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if module.startswith("fieldmark") and file.is_file()), None)


def _imported(tree: ast.Module) -> Iterator[str]:
    """The modules that a module names: imported, or registered as "module:attribute"."""
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (named := REGISTERED.match(node.value)):
            yield named.group(1)
