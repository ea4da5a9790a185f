"""Run files, tables and models at an address, fetched to this machine before they are read."""

from __future__ import annotations

import tempfile
from functools import cache, partial
from pathlib import Path

from fieldmark.errors import InputError, show_as
from fieldmark.storage.addresses import file_system, is_address, missing, patiently, place_text


def local_input(place: str | Path, expected: str = "a file or folder") -> Path:
    """A file or folder on this machine: itself, or a copy of what lies at an address.

    A copy is fetched once by each process and removed when it ends; errors speak of the address.

    Args:
        place: A path, or an address.
        expected: What it should be, for the sentence that is said where there is nothing.

    Raises:
        InputError: When there is nothing at the address, or when it may not be read.
    """
    return _fetched(place_text(place), expected) if is_address(place) else Path(place)


def local_companion(place: str | Path) -> Path:
    """The same for a file that may be missing; then the path of one that is not there."""
    try:
        return local_input(place)
    except InputError:
        return Path(_folder().name) / "missing"


@cache
def _fetched(address: str, expected: str) -> Path:
    system, path = file_system(address)
    if not patiently(system, address, lambda: system.exists(path)):
        raise missing(address, expected)
    # The last part of an address keeps its name: endings say what a file is.
    target = Path(_folder().name) / str(_fetched.cache_info().misses) / path.rpartition("/")[2]
    target.parent.mkdir(parents=True)
    show_as(target, address)
    if patiently(system, address, lambda: system.isfile(path)):
        patiently(system, address, lambda: system.get_file(path, str(target)))
        return target
    for name in patiently(system, address, lambda: system.find(path)):
        inside = target / name.strip("/").removeprefix(path.strip("/")).lstrip("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        patiently(system, address, partial(system.get_file, name, str(inside)))
    return target


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fieldmark-")
