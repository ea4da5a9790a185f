"""Unpacking: first into a folder beside, then into place, so that half an archive never looks like a whole one.

What was unpacked before an interruption is not unpacked again. A file that is already in place with the same content
stays as it is; one that differs is replaced, and counted.
"""

from __future__ import annotations

import errno
import filecmp
import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fieldmark.errors import InputError
from fieldmark.releases.download.manifest import Archive
from fieldmark.releases.download.room import check_room
from fieldmark.storage import archives
from fieldmark.storage.archives import (
    ArchiveFaultError,
    ArchiveRules,
    DamagedArchiveError,
    Member,
    TooMuchInsideError,
    damage_named,
)
from fieldmark.storage.files import write_json
from fieldmark.work.progress import Tick, progress


@dataclass(frozen=True)
class ArchiveLimits:
    """How much may come out of an archive.

    Text shrinks to about a twentieth and photos hardly at all; a hundredfold is a bomb. The allowance lets small
    archives of tables pass.
    """

    ratio: int = 100
    allowance: int = 64 << 20
    members: int = 10_000_000

    def total(self, archive_bytes: int) -> int:
        """The most bytes that may come out of an archive of this size."""
        return self.ratio * archive_bytes + self.allowance


USUAL_LIMITS = ArchiveLimits()


@dataclass(frozen=True)
class Unpacked:
    """What came out of an archive.

    Attributes:
        files: How many files it held.
        replaced: How many files of another content they replaced.
        made: The files and folders at the top of the archive, relative to the folder it was unpacked into.
    """

    files: int
    replaced: int
    made: tuple[str, ...]


def staging_of(name: str, into: Path) -> Path:
    """The folder that exists while an archive of this name is being unpacked."""
    return into / f".{name}.unpacking"


def unpack(archive: Path, into: Path, kind: Archive, *, limits: ArchiveLimits = USUAL_LIMITS) -> Unpacked:
    """Unpacks an archive without trusting it.

    Args:
        archive: The file.
        into: The folder that its contents are put into; other contents of it stay.
        kind: What kind of archive it is.
        limits: How much may come out of it.

    Returns:
        What came out.

    Raises:
        InputError: If the archive is damaged, too large, or holds anything but plain files under harmless names.
            Nothing is in place then.
    """
    into.mkdir(parents=True, exist_ok=True)
    staging = staging_of(archive.name, into)
    needed = unpacked_size(archive, kind)
    _claim(staging, archive)
    check_room(into, needed - _size_of(staging), f"unpacking {archive.name}")
    try:
        count = _unpack_aside(archive, staging / "files", kind, limits)
        made = tuple(sorted(path.name for path in (staging / "files").iterdir()))
        replaced = _move(staging / "files", into, archive)
    except InputError:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    except OSError as error:
        raise _cannot_write(archive, into, error) from error
    # The rename says in one step that nothing is left to do; removing takes many.
    finished = staging.with_name(f"{staging.name}.finished")
    staging.rename(finished)
    shutil.rmtree(finished)
    return Unpacked(count, replaced, made)


def _claim(staging: Path, archive: Path) -> None:
    # What lies in the folder is taken up only if it came from this very file.
    status = archive.stat()
    identity = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
    note = staging / "archive.json"
    try:
        same = json.loads(note.read_text(encoding="utf-8")) == identity
    except (OSError, ValueError):
        same = False
    if not same:
        shutil.rmtree(staging, ignore_errors=True)
        (staging / "files").mkdir(parents=True)
        write_json(note, identity)


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _unpack_aside(archive: Path, folder: Path, kind: Archive, limits: ArchiveLimits) -> int:
    folder.mkdir(exist_ok=True)
    total = max(1, archive.stat().st_size >> 20)
    shown = count = 0
    with (
        members(archive, kind, limits=limits, folds_case=_folds_case(folder.parent)) as inside,
        progress(f"unpacking {archive.name} (MiB)", total) as tick,
    ):
        for member in inside:
            _write(member, folder)
            count += 1
            shown = _show(tick, shown, min(total, member.archive_bytes_done >> 20))
        _show(tick, shown, total)
    return count


def _show(tick: Tick, shown: int, done: int) -> int:
    if done > shown:
        tick(done - shown)
    return max(shown, done)


def _write(member: Member, folder: Path) -> None:
    target = folder / member.name
    if target.is_file() and target.stat().st_size == member.size:
        return  # unpacked before an interruption: a name appears only when its file is complete
    unfinished = folder.parent / "unfinished"
    with unfinished.open("wb") as sink:
        member.copy(sink)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished.replace(target)


def _folds_case(folder: Path) -> bool:
    probe = folder / "case-probe"
    probe.touch()
    try:
        return (folder / "CASE-PROBE").exists()
    finally:
        probe.unlink()


def _move(source: Path, target: Path, archive: Path) -> int:
    """Moves the contents of a folder into another one; returns how many files of another content were replaced."""
    replaced = 0
    for path in sorted(source.iterdir()):
        place = target / path.name
        if path.is_dir() and place.is_dir():
            replaced += _move(path, place, archive)
        elif not (place.exists() or place.is_symlink()):
            _rename(path, place)
        elif path.is_file() and place.is_file():
            if not filecmp.cmp(path, place, shallow=False):
                _rename(path, place)
                replaced += 1
        else:
            raise InputError(
                place,
                found="a folder" if place.is_dir() else "a file or a broken link",
                expected=f"a {'folder' if path.is_dir() else 'file'}, as in {archive.name}",
                hint="Move it away and run the same command again.",
            )
    return replaced


def _rename(path: Path, place: Path) -> None:
    try:
        path.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.move(path, place)  # a folder of the release that lies on another disk


def _cannot_write(archive: Path, into: Path, error: OSError) -> InputError:
    return InputError(
        into,
        found=f"{error.strerror or error} while unpacking {archive.name}",
        expected="a folder that can be written",
        hint="Run the same command again to continue.",
    )


@contextmanager
def members(
    archive: Path, kind: Archive, *, limits: ArchiveLimits, folds_case: bool = False
) -> Iterator[Iterator[Member]]:
    """Opens the archive of a release and yields its plain files, each checked before it is handed out.

    Args:
        archive: The file.
        kind: What kind of archive it is.
        limits: How much may come out.
        folds_case: Whether the disk takes `A` and `a` for the same name.

    Yields:
        The files, to be read in order and each at most once.

    Raises:
        InputError: When it is damaged, or holds anything that may not come out.
    """
    rules = ArchiveRules(limits.total(archive.stat().st_size), limits.members, folds_case=folds_case)
    with (
        _said_of(archive),
        archives.members(archive, "zip" if kind == "zip" else "tar", rules) as inside,
    ):
        yield (member for member in inside if member.open is not None)


def unpacked_size(archive: Path, kind: Archive) -> int:
    """The bytes that the contents take: as declared in a zip, at least the size of the archive otherwise."""
    if kind != "zip":
        return archive.stat().st_size
    with _said_of(archive), damage_named(), zipfile.ZipFile(archive) as opened:
        return sum(info.file_size for info in opened.infolist())


@contextmanager
def _said_of(archive: Path) -> Iterator[None]:
    """Turns what is wrong with an archive into one sentence."""
    try:
        yield
    except DamagedArchiveError as fault:
        hint = "It was probably cut off on its way: remove it and fetch it again."
        raise InputError(archive, found=str(fault), expected="a whole one", hint=hint) from fault
    except ArchiveFaultError as fault:
        raise InputError(
            archive,
            found=f"{fault}, as if it were a bomb" if isinstance(fault, TooMuchInsideError) else str(fault),
            expected="an archive of plain files and folders",
            hint="Nothing was unpacked. Get the file from the makers of the release.",
        ) from fault
