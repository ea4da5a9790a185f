"""Which scorer made a number, and from which bytes."""

from __future__ import annotations

import ast
import hashlib
import re
import threading
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from pathlib import Path

from fieldmark.registry import declared
from fieldmark.storage.files import sha256_of

ENTRANCE = "fieldmark.scoring.score_parts"
BENCHMARKS = "fieldmark.benchmarks"  # the package whose modules are found by what they declare
# Names in registries, of the rooms that scoring may import from; those of other rooms have no part in a number.
ROOMS = "benchmarks|masks|metrics|questions|runs|scoring|splits|stats|tables"
REGISTERED = re.compile(rf"^(fieldmark\.(?:{ROOMS})\.[\w.]+):\w+$")


@cache
def scorer_digest() -> str:
    """One digest over everything that decides a number: all modules that scoring a run may import."""
    return digest_of(_find_sources())


def digest_of(sources: Iterable[str]) -> str:
    """The digest of source files by name, as they are now."""
    root, total = _root(), hashlib.sha256()
    for name in sorted(sources):
        total.update(f"{name} {sha256_of(root / name)}\n".encode())
    return total.hexdigest()


class ScorerSources:
    """The files of the scorer, for a process that has runs scored by many others.

    To find them takes as long as to score a small run. So it is done once, and again when one of them has changed.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._seen: list[tuple[int, int]] | None = None
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Their names below the package, in order."""
        with self._lock:
            if self._seen is None or self._stamps() != self._seen:
                self._names = _find_sources()
                self._seen = self._stamps()
            return self._names

    def _stamps(self) -> list[tuple[int, int]] | None:
        try:
            found = [(_root() / name).stat() for name in self._names]
        except FileNotFoundError:
            return None
        return [(one.st_mtime_ns, one.st_size) for one in found]


def _root() -> Path:
    return Path(str(resources.files("fieldmark")))


def _find_sources() -> list[str]:
    """What `score_parts` imports, directly or not, at once or later, by name or registry."""
    root = _root().parent
    seen: set[str] = set()
    waiting = [ENTRANCE]
    while waiting:
        module = waiting.pop()
        file = _file_of(root, module)
        if module in seen or file is None:
            continue
        seen.add(module)
        waiting += _imported(ast.parse(file.read_text(encoding="utf-8")))
        if module == BENCHMARKS:
            waiting += [name for name, _ in declared(module, file.parent, "ENTRIES")]
        waiting += [module.rpartition(".")[0]] if "." in module else []
    files = {file for module in seen if (file := _file_of(root, module)) is not None}
    if not files:
        raise RuntimeError(f"{ENTRANCE} is not at {root}: a digest of nothing would say nothing")
    return sorted(file.relative_to(_root()).as_posix() for file in files)


def _file_of(root: Path, module: str) -> Path | None:
    """The file of a module of ours, None for anything else."""
    place = root / module.replace(".", "/")
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if module.partition(".")[0] == "fieldmark" and file.is_file()), None)


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
