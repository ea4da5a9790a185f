"""Names of a package that are imported when they are first asked for, so that its registry costs nothing to read."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def late_imports(package: str, *places: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names live in other modules.

    Args:
        package: The name of the package.
        places: Where each of its names lives, as "package.module:name".

    >>> late_imports("mine", "collections:OrderedDict")("OrderedDict").__name__
    'OrderedDict'
    >>> late_imports("mine", "collections:OrderedDict")("Counter")
    Traceback (most recent call last):
    AttributeError: module 'mine' has no attribute 'Counter'
    """
    module_of = {name: module for module, _, name in (place.partition(":") for place in places)}

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name]), name)

    return find
