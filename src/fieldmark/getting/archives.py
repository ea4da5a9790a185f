"""The archives of releases: how much may come out of them, and what is said when they are refused."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fieldmark.errors import InputError
from fieldmark.foundation import untrusted_archives
from fieldmark.foundation.untrusted_archives import (
    ArchiveFaultError,
    ArchiveRules,
    DamagedArchiveError,
    Member,
    TooMuchInsideError,
    damage_named,
)
from fieldmark.getting.manifest import Archive


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
        untrusted_archives.members(archive, "zip" if kind == "zip" else "tar", rules) as inside,
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
