"""Archives with a program: what is in them is looked at before anything is unpacked, and counted while it is.

A zip or tar archive (plain, gzip, bzip2 or xz) with `run.sh` at its root, or in the one folder that it holds. Members
are files and folders with plain names; links, devices and paths that lead elsewhere are refused.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from fieldmark.storage.archives import (
    MIB,
    ArchiveFaultError,
    ArchiveRules,
    DamagedArchiveError,
    Member,
    kind_of,
    members,
)
from fieldmark.web.refusals import RefusalError

ENTRY = "run.sh"
MOST_FILES, MOST_MB = 20_000, 4096
PASSED_OVER = ("__MACOSX", ".DS_Store")
# Endings of files that networks are kept in.
WEIGHTS = (".pth", ".pt", ".ckpt", ".safetensors", ".onnx", ".tflite", ".h5", ".keras", ".pb")
NO_ENTRY = "The archive holds no run.sh at its root."


class ArchiveRefusedError(RefusalError):
    """An archive that is not taken, and why."""

    status = 422


def unpack(archive: Path, folder: Path, *, most_files: int = MOST_FILES, most_mb: int = MOST_MB) -> Path:
    """Unpacks an archive and returns the folder that holds `run.sh`.

    Args:
        archive: The archive.
        folder: Where to; it must be empty.
        most_files: How many files and folders it may hold.
        most_mb: What they may take together.

    Raises:
        ArchiveRefusedError: When it is none, holds something strange, or no `run.sh`.
    """
    with _checked(archive, most_files, most_mb) as inside:
        for member in inside:
            target = folder / member.name
            if member.open is None:
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as sink:
                member.copy(sink)
            target.chmod(0o755 if member.executable else 0o644)
    return _home(folder)


def inspect(archive: Path, *, most_files: int = MOST_FILES, most_mb: int = MOST_MB) -> list[str]:
    """Looks through an archive as `unpack` does, and writes nothing.

    Returns:
        The files in it that hold weights of networks, by their endings.

    Raises:
        ArchiveRefusedError: When `unpack` would refuse it.
    """
    names = set[PurePosixPath]()
    with _checked(archive, most_files, most_mb) as inside:
        for member in inside:
            if member.open is not None:
                member.copy(None)
                names.add(member.name)
    tops = {name.parts[0] for name in names} - set(PASSED_OVER)
    if PurePosixPath(ENTRY) in names or (len(tops) == 1 and PurePosixPath(tops.pop(), ENTRY) in names):
        return sorted(str(name) for name in names if name.suffix.lower() in WEIGHTS)
    raise ArchiveRefusedError(NO_ENTRY)


@contextmanager
def _checked(archive: Path, most_files: int, most_mb: int) -> Iterator[Iterator[Member]]:
    """The members of an archive; what is wrong with it becomes one sentence."""
    rules = ArchiveRules(most_mb * MIB, most_files, backslash_separates=True)
    try:
        kind = kind_of(archive)
        if kind is None:
            raise ArchiveRefusedError("Submit a zip or tar archive with run.sh in it.")
        with members(archive, kind, rules) as inside:
            yield inside
    except DamagedArchiveError as fault:
        raise ArchiveRefusedError("The archive breaks off or is damaged.") from fault
    except ArchiveFaultError as fault:
        raise ArchiveRefusedError(f"The archive holds {fault}.") from fault
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise ArchiveRefusedError("The archive holds a path that is too long.") from error


def _home(folder: Path) -> Path:
    """The folder with `run.sh`: the root, or the one folder in it."""
    if (folder / ENTRY).is_file():
        return folder
    inside = [path for path in folder.iterdir() if path.name not in PASSED_OVER]
    if len(inside) == 1 and (inside[0] / ENTRY).is_file():
        return inside[0]
    shutil.rmtree(folder, ignore_errors=True)
    raise ArchiveRefusedError(NO_ENTRY)
