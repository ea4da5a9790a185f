"""Reading archives whose origin is not trusted.

Only plain files and folders come out, under names that stay inside the folder they are unpacked into. A release needs
no links and no devices, so that any of those is refused, wherever it points.
"""

from __future__ import annotations

import gzip
import re
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from fieldmark.errors import InputError
from fieldmark.getting.manifest import Archive

BLOCK = 1 << 20
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile, NotImplementedError)
_ENCRYPTED = 0x1


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
class Member:
    """A plain file inside an archive."""

    name: PurePosixPath
    size: int
    open: Callable[[], IO[bytes]]
    archive_bytes_done: int


def refuse(archive: Path, found: str) -> InputError:
    """Returns the sentence about an archive that must not be unpacked."""
    return InputError(
        archive,
        found=found,
        expected="an archive of plain files and folders",
        hint="Nothing was unpacked. Get the file from the makers of the release.",
    )


def safe_name(archive: Path, name: str) -> PurePosixPath:
    """Returns the name of a member as a path that stays inside; raises an `InputError` where it would not.

    >>> safe_name(Path("photos.zip"), "./images/7_Amanita muscaria/1.JPG")
    PurePosixPath('images/7_Amanita muscaria/1.JPG')
    """
    shown = repr(name if len(name) <= 80 else f"{name[:77]}...")
    if any(ord(character) < 32 for character in name):
        raise refuse(archive, f"a name with control characters, {shown}")
    if "\\" in name:
        raise refuse(archive, f"a name with a backslash, {shown}")
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        raise refuse(archive, f"an absolute path, {shown}")
    path = PurePosixPath(name)
    if ".." in path.parts:
        raise refuse(archive, f"a path that leads out of the folder, {shown}")
    return path


@contextmanager
def sentences_about(archive: Path) -> Iterator[None]:
    """Turns the errors of the archive readers into one sentence."""
    try:
        yield
    except _BROKEN as error:
        raise InputError(
            archive,
            found=f"a damaged archive ({error or type(error).__name__})",
            expected="a whole one",
            hint="It was probably cut off on its way: remove it and fetch it again.",
        ) from error


@dataclass
class _Watch:
    """Counts what comes out, and stops when it is too much or comes twice."""

    archive: Path
    limits: ArchiveLimits
    folds_case: bool
    bytes_out: int = 0
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.most = self.limits.total(self.archive.stat().st_size)

    def admit(self, name: PurePosixPath, size: int) -> None:
        """Takes note of one more file.

        Raises:
            InputError: If the file makes the archive too large, or its name is taken.
        """
        self.bytes_out += size
        if self.bytes_out > self.most:
            raise refuse(self.archive, f"contents of more than {self.most:,} bytes, as if it were a bomb")
        key = unicodedata.normalize("NFC", str(name))
        key = key.casefold() if self.folds_case else key
        if key in self.seen:
            raise refuse(self.archive, f"two files that would have the same name here, {str(name)!r}")
        self.seen.add(key)
        if len(self.seen) > self.limits.members:
            raise refuse(self.archive, f"more than {self.limits.members:,} files")


@contextmanager
def members(
    archive: Path, kind: Archive, *, limits: ArchiveLimits, folds_case: bool = False
) -> Iterator[Iterator[Member]]:
    """Opens an archive and yields its plain files, each checked before it is handed out.

    Args:
        archive: The file.
        kind: What kind of archive it is.
        limits: How much may come out.
        folds_case: Whether the disk takes `A` and `a` for the same name.

    Yields:
        The files, to be read in order and each at most once.
    """
    watch = _Watch(archive, limits, folds_case)
    with sentences_about(archive):
        if kind == "zip":
            with zipfile.ZipFile(archive) as opened:
                yield _zip_members(opened, watch)
        else:
            with archive.open("rb") as raw, gzip.GzipFile(fileobj=raw) as unzipped:
                yield _tar_members(raw, unzipped, watch)


def unpacked_size(archive: Path, kind: Archive) -> int:
    """The bytes that the contents take: as declared in a zip, at least the size of the archive otherwise."""
    if kind != "zip":
        return archive.stat().st_size
    with sentences_about(archive), zipfile.ZipFile(archive) as opened:
        return sum(info.file_size for info in opened.infolist())


def _zip_members(opened: zipfile.ZipFile, watch: _Watch) -> Iterator[Member]:
    # The list of contents comes first, so that everything is checked before the first byte is written.
    names = {}
    for info in opened.infolist():
        name = safe_name(watch.archive, info.filename)
        mode = info.external_attr >> 16
        if info.flag_bits & _ENCRYPTED:
            raise refuse(watch.archive, f"an encrypted file, {info.filename!r}")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise refuse(watch.archive, f"a link or a device, {info.filename!r}")
        if not info.is_dir():
            watch.admit(name, info.file_size)
            names[name] = info
    done = 0
    for name, info in names.items():
        done += info.compress_size
        yield Member(name, info.file_size, partial(opened.open, info), done)


def _tar_members(raw: IO[bytes], unzipped: gzip.GzipFile, watch: _Watch) -> Iterator[Member]:
    with tarfile.open(fileobj=unzipped, mode="r|") as opened:
        for info in opened:
            name = safe_name(watch.archive, info.name)
            if info.isdir():
                continue
            if info.islnk() or info.issym():
                raise refuse(watch.archive, f"a link, {info.name!r} to {info.linkname!r}")
            if not info.isreg():
                raise refuse(watch.archive, f"a device or a pipe, {info.name!r}")
            watch.admit(name, info.size)
            yield Member(name, info.size, partial(_tar_file, opened, info), raw.tell())
    _read_to_the_end(unzipped, watch)


def _tar_file(opened: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    content = opened.extractfile(info)
    if content is None:
        raise tarfile.ReadError(f"{info.name} has no content")
    return content


def _read_to_the_end(unzipped: gzip.GzipFile, watch: _Watch) -> None:
    # The tar reader stops at its own end mark, or silently where the file was cut; only the end of the compressed
    # stream tells that all of it was there.
    left = watch.most - watch.bytes_out
    while block := unzipped.read(BLOCK):
        left -= len(block)
        if left < 0:
            raise refuse(watch.archive, "endless padding, as if it were a bomb")
