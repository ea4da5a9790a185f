"""Archives with a program: what is in them is looked at before anything is unpacked, and counted while it is.

A zip or tar archive (plain, gzip, bzip2 or xz) with `run.sh` at its root, or in the one folder that it holds. Members
are files and folders with plain names; links, devices and paths that lead elsewhere are refused.
"""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from fieldmark.challenge.refusals import RefusalError

CHUNK = MIB = 1 << 20
ENTRY = "run.sh"
MOST_FILES, MOST_MB = 20_000, 4096
# What the libraries say about an archive that breaks off, is locked or was made by something else.
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError)


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
    taken, room = 0, most_mb * MIB
    try:
        for member in _members(archive):
            taken += 1
            if taken > most_files:
                raise ArchiveRefusedError(f"The archive holds more than {most_files} files.")
            target = folder / _safe(member.name)
            if member.file is None:
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            room -= _copy(member.file, target, room, most_mb)
            target.chmod(0o755 if member.executable else 0o644)
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        EOFError,
        OSError,
        ValueError,
        RuntimeError,
        NotImplementedError,
    ) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ArchiveRefusedError("The archive breaks off or is damaged.") from error
    return _home(folder)


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
    return path


def _copy(source: IO[bytes], target: Path, room: int, most_mb: int) -> int:
    if target.exists():
        raise ArchiveRefusedError(f"The archive holds {target.name!r} twice.")
    size = 0
    with target.open("xb") as sink:
        while piece := source.read(CHUNK):
            size += len(piece)
            if size > room:
                raise ArchiveRefusedError(f"The archive holds more than {most_mb} MiB.")
            sink.write(piece)
    return size


def _home(folder: Path) -> Path:
    """The folder with `run.sh`: the root, or the one folder in it."""
    if (folder / ENTRY).is_file():
        return folder
    inside = [path for path in folder.iterdir() if path.name not in ("__MACOSX", ".DS_Store")]
    if len(inside) == 1 and (inside[0] / ENTRY).is_file():
        return inside[0]
    shutil.rmtree(folder, ignore_errors=True)
    raise ArchiveRefusedError("The archive holds no run.sh at its root.")
