"""Whether the disk has room, asked before the work and not after it."""

from __future__ import annotations

import shutil
from pathlib import Path

from fieldmark.errors import InputError

# A disk filled to the last byte breaks other programs.
RESERVE = 64 << 20


def check_room(folder: Path, needed: int, purpose: str) -> None:
    """Raises an `InputError` if the disk that holds a folder lacks the room for something.

    Args:
        folder: The folder to write into; it need not exist yet.
        needed: The bytes needed.
        purpose: What they are for.
    """
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if free < needed + RESERVE:
        raise InputError(
            folder,
            found=f"{show_size(free)} free",
            expected=f"about {show_size(needed)} for {purpose}",
            hint="Free some space or choose another folder; finished downloads are kept.",
        )


def show_size(size: int | None) -> str:
    """A size for people, in decimal units as download pages use them.

    >>> show_size(5_200_000_000), show_size(812), show_size(None)
    ('5.2 GB', '812 B', '?')
    """
    if size is None:
        return "?"
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
