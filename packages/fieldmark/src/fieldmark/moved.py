"""Modules that other packages import by the names they had before: found where they are now, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGES = {"fieldmark.datasets": "fieldmark.releases", "fieldmark.foundation": "fieldmark.storage"}
MODULES = {
    "fieldmark.datasets.base": "fieldmark.tables.dataset",
    "fieldmark.datasets.inputs": "fieldmark.tables.inputs",
    "fieldmark.foundation.engines": "fieldmark.work.engines",
    "fieldmark.foundation.files": "fieldmark.storage.files",
    "fieldmark.foundation.map_blocks": "fieldmark.work.blocks",
    "fieldmark.foundation.progress": "fieldmark.work.progress",
    "fieldmark.foundation.registry": "fieldmark.registry",
    "fieldmark.labels": "fieldmark.tables.labels",
    "fieldmark.release": "fieldmark.storage.release",
    "fieldmark.scoring.comparing": "fieldmark.scoring.comparison",
    "fieldmark.scoring.measuring": "fieldmark.scoring.measurement",
    "fieldmark.taxonomy": "fieldmark.tables.taxonomy",
}


class MovedModules(MetaPathFinder, Loader):
    """Finds a module by the name it had before."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in MODULES and fullname not in PACKAGES:
            return None
        return ModuleSpec(fullname, self, is_package=fullname in PACKAGES)

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        new = MODULES.get(name) or PACKAGES[name]
        warnings.warn(f"{name} is {new} now; import it from there.", DeprecationWarning, stacklevel=2)
        found = vars(import_module(new))
        vars(module).update({key: value for key, value in found.items() if not key.startswith("__")})


def find_moved_modules() -> None:
    """Has imports of such names find what they mean; asked last, so that it costs nothing else anything."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())


def moved_name(package: str, module: str, name: str) -> object:
    """A name that a package itself had before, and one of its modules has now."""
    if name.startswith("__"):
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    found = import_module(f"{package}.{module}")
    if not hasattr(found, name):
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    warnings.warn(f"{package}.{name} is {package}.{module}.{name} now.", DeprecationWarning, stacklevel=3)
    return getattr(found, name)
