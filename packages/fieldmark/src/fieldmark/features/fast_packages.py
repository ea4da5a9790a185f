"""The packages of the extra `fast`, and why one of them cannot be used: reading by Pillow works without them."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import numpy as np


class SlowReadingError(Exception):
    """Why photos are read by Pillow alone, and what changes that.

    Args:
        why: The reason, as the second half of a sentence.
        remedy: The command that helps.
    """

    def __init__(self, why: str, remedy: str) -> None:
        self.remedy = remedy
        super().__init__(why)


def need_fast_package(name: str) -> None:
    """Imports one of the packages.

    Raises:
        SlowReadingError: When it is not installed or does not import.
    """
    fails = f"does not import with NumPy {np.__version__}"
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise broken_package(name, fails, error) from error
        raise SlowReadingError(f"{name} is not installed", "pip install 'fieldmark[fast]'") from error
    except Exception as error:  # made for another NumPy, another processor, another system: all mean the same here
        raise broken_package(name, fails, error) from error


def broken_package(name: str, fails: str, error: Exception) -> SlowReadingError:
    """Says that an installed package does not work, with the first line of what it says itself."""
    try:
        installed = f"{name} {version(name)}"
    except PackageNotFoundError:
        installed = name
    said = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    return SlowReadingError(f"{installed} {fails} ({said})", f"pip install --upgrade {name}")
