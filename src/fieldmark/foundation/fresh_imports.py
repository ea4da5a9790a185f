"""Classes imported anew, with nothing in their modules of what has happened since the first import."""

from __future__ import annotations

import sys
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import Any


def imported_anew(cls: type[Any]) -> type[Any]:
    """The class as a fresh import of its package has it; modules of other packages are those that are there.

    What the package keeps elsewhere (in files, in other packages) is not undone by it.
    """
    root = cls.__module__.partition(".")[0]
    before = _modules_of(root)
    for name in before:
        del sys.modules[name]
    try:
        anew: type[Any] = attrgetter(cls.__qualname__)(import_module(cls.__module__))
        return anew
    finally:
        for name in _modules_of(root):
            del sys.modules[name]
        sys.modules.update(before)


def _modules_of(root: str) -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name == root or name.startswith(f"{root}.")}
