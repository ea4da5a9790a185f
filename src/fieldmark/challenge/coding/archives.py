"""Archives with a program: what is in them is looked at before anything is unpacked, and counted while it is.

A zip or tar archive (plain, gzip, bzip2 or xz) with `run.sh` at its root, or in the one folder that it holds. Members
are files and folders with plain names; links, devices and paths that lead elsewhere are refused.
"""

from __future__ import annotations

import errno
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from fieldmark.challenge.refusals import RefusalError

CHUNK = MIB = 1 << 20
ENTRY = "run.sh"
MOST_FILES, MOST_MB = 20_000, 4096
# What the libraries say about an archive that breaks off, is locked or was made by something else.
DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
)
# What the system says about names that cannot all be there: a file in the place of a folder, or one too long.
AT_ODDS = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
LONGEST_NAME = 255
PASSED_OVER = ("__MACOSX", ".DS_Store")
NO_ENTRY = "The archive holds no run.sh at its root."


class ArchiveRefusedError(RefusalError):
    """An archive that is not taken, and why."""

    status = 422


@dataclass(frozen=True)
class _Packed:
    name: str
    size: int
    executable: bool
    file: IO[bytes] | None


def unpack(archive: Path, folder: Path, *, most_files: int = MOST_FILES, most_mb: int = MOST_MB) -> Path:
    """Unpacks an archive and returns the folder that holds `run.sh`.

    Args:
        archive: The archive.
        folder: Where to; it must be empty.
        most_files: How many files it may hold.
        most_mb: What they may take together, counted in the bytes that come out and not in those announced.

    Raises:
        ArchiveRefusedError: When it is none, holds something strange, or no `run.sh`.
    """
    room = most_mb * MIB
    with _damage_said():
        for path, member in _checked(archive, most_files):
            target = folder / path
            if member.file is None:
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                raise ArchiveRefusedError(f"The archive holds {target.name!r} twice.")
            with target.open("xb") as sink:
                room -= _copied(member.file, room, most_mb, sink)
            target.chmod(0o755 if member.executable else 0o644)
    return _home(folder)


def inspect(archive: Path, *, most_files: int = MOST_FILES, most_mb: int = MOST_MB) -> None:
    """Looks through an archive as `unpack` does, and writes nothing.

    Raises:
        ArchiveRefusedError: When `unpack` would refuse it.
    """
    room, names = most_mb * MIB, set[PurePosixPath]()
    with _damage_said():
        for path, member in _checked(archive, most_files):
            if member.file is None:
                continue
            if path in names:
                raise ArchiveRefusedError(f"The archive holds {path.name!r} twice.")
            names.add(path)
            room -= _copied(member.file, room, most_mb, None)
    if any(parent in names for name in names for parent in name.parents):
        raise ArchiveRefusedError("The archive breaks off or is damaged.")
    tops = {name.parts[0] for name in names} - set(PASSED_OVER)
    if PurePosixPath(ENTRY) in names or (len(tops) == 1 and PurePosixPath(tops.pop(), ENTRY) in names):
        return
    raise ArchiveRefusedError(NO_ENTRY)


@contextmanager
def _damage_said() -> Iterator[None]:
    """Says that an archive is damaged where the libraries stumble over it."""
    try:
        yield
    except DAMAGED as error:
        if isinstance(error, OSError) and error.errno not in (None, *AT_ODDS):
            raise
        raise ArchiveRefusedError("The archive breaks off or is damaged.") from error


def _checked(archive: Path, most_files: int) -> Iterator[tuple[PurePosixPath, _Packed]]:
    """The members with paths that stay inside, so many of them."""
    for taken, member in enumerate(_members(archive), 1):
        if taken > most_files:
            raise ArchiveRefusedError(f"The archive holds more than {most_files} files.")
        yield _safe(member.name), member


def _members(archive: Path) -> Iterator[_Packed]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for one in packed.infolist():
                kind = one.external_attr >> 16
                if kind & 0o170000 not in (0, 0o100000, 0o040000):
                    raise ArchiveRefusedError(f"The archive holds {one.filename[:80]!r}, which is no plain file.")
                if one.is_dir():
                    yield _Packed(one.filename, 0, False, None)
                else:
                    with packed.open(one) as file:
                        yield _Packed(one.filename, one.file_size, bool(kind & 0o111), file)
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive, "r|*") as stream:
            for entry in stream:
                if entry.isdir():
                    yield _Packed(entry.name, 0, False, None)
                    continue
                content = stream.extractfile(entry) if entry.isreg() else None
                if content is None:
                    raise ArchiveRefusedError(f"The archive holds {entry.name[:80]!r}, which is no plain file.")
                yield _Packed(entry.name, entry.size, bool(entry.mode & 0o111), content)
    else:
        raise ArchiveRefusedError("Hand in a zip or tar archive with run.sh in it.")


def _safe(name: str) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\0" in name or not name.strip("./"):
        if name.rstrip("/") in (".", ""):
            return PurePosixPath()
        raise ArchiveRefusedError(f"The archive holds {name[:80]!r}, which leads out of it.")
    if any(len(part.encode(errors="replace")) > LONGEST_NAME for part in path.parts):
        raise ArchiveRefusedError(f"The archive holds a name of more than {LONGEST_NAME} bytes.")
    return path


def _copied(source: IO[bytes], room: int, most_mb: int, sink: IO[bytes] | None) -> int:
    """Copies a member, or only counts it; its size."""
    size = 0
    while piece := source.read(CHUNK):
        size += len(piece)
        if size > room:
            raise ArchiveRefusedError(f"The archive holds more than {most_mb} MiB.")
        if sink is not None:
            sink.write(piece)
    return size


def _home(folder: Path) -> Path:
    """The folder with `run.sh`: the root, or the one folder in it."""
    if (folder / ENTRY).is_file():
        return folder
    inside = [path for path in folder.iterdir() if path.name not in PASSED_OVER]
    if len(inside) == 1 and (inside[0] / ENTRY).is_file():
        return inside[0]
    shutil.rmtree(folder, ignore_errors=True)
    raise ArchiveRefusedError(NO_ENTRY)
