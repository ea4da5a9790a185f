"""Reading archives whose origin is not trusted.

Only plain files and folders come out, under names that stay inside the folder they are unpacked into. Nobody here needs
links or devices, so that any of those is refused, wherever it points. What is refused is an `ArchiveFaultError`, whose
text completes "the archive holds ..."; those who unpack turn it into their own sentence.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
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
from typing import IO, Any, Literal

ArchiveKind = Literal["zip", "tar"]

BLOCK = MIB = 1 << 20
# What unpacking xz may take: `xz -9` needs 65 MiB, and an archive of a few bytes can ask for 4 GiB.
MOST_XZ_MEMORY = 256 * MIB
LONGEST_NAME_BYTES = 255
# What the libraries say about an archive that breaks off or was made by something else.
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
)
_ENCRYPTED = 0x1
_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", (b"\xfd7zXZ", b"\x5d\x00\x00\x80")


class ArchiveFaultError(Exception):
    """Something in an archive that must not come out of it."""


class TooMuchInsideError(ArchiveFaultError):
    """More bytes than may come out of an archive."""


class DamagedArchiveError(ArchiveFaultError):
    """An archive that breaks off, or is none."""


@dataclass(frozen=True)
class ArchiveRules:
    """What may come out of an archive.

    Attributes:
        most_bytes: How much all its files may take together.
        most_members: How many files and folders it may hold.
        folds_case: Whether the disk takes `A` and `a` for the same name.
        backslash_separates: Whether a backslash stands between folders, as in archives of some programs for Windows;
            otherwise it is refused.
    """

    most_bytes: int
    most_members: int
    folds_case: bool = False
    backslash_separates: bool = False


@dataclass(frozen=True)
class Member:
    """A plain file inside an archive, or a folder, which cannot be opened."""

    name: PurePosixPath
    size: int
    executable: bool
    open: Callable[[], IO[bytes]] | None
    archive_bytes_done: int

    def copy(self, sink: IO[bytes] | None) -> None:
        """Reads a file to its end, and writes it where that is asked.

        Raises:
            ArchiveFaultError: When it is shorter or longer than the archive declares.
        """
        if self.open is None:
            return
        read = 0
        with self.open() as source:
            while block := source.read(BLOCK):
                read += len(block)
                if read > self.size:
                    break
                if sink is not None:
                    sink.write(block)
        if read != self.size:
            raise ArchiveFaultError(f"{_shown(self.name)} with another size than it declares")


def kind_of(archive: Path) -> ArchiveKind | None:
    """What kind of archive a file is; None where it is none.

    Raises:
        DamagedArchiveError: When it breaks off before that can be told.
    """
    with damage_named():
        if zipfile.is_zipfile(archive):
            return "zip"
        return "tar" if _is_tar(archive) else None


@contextmanager
def members(archive: Path, kind: ArchiveKind, rules: ArchiveRules) -> Iterator[Iterator[Member]]:
    """Opens an archive and yields what it holds, each member checked before it is handed out.

    Args:
        archive: The file; a tar archive may be compressed by gzip, bzip2 or xz.
        kind: What kind of archive it is.
        rules: What may come out.

    Yields:
        The files and folders, to be read in order and each at most once.

    Raises:
        ArchiveFaultError: When it holds what may not come out, or is damaged.
    """
    watch = _Watch(rules)
    with damage_named():
        if kind == "zip":
            with zipfile.ZipFile(archive) as opened:
                yield _zip_members(opened, watch)
        else:
            with archive.open("rb") as raw, _expanded(raw) as content:
                yield _tar_members(raw, content, watch)


@contextmanager
def damage_named() -> Iterator[None]:
    """Turns the errors of the archive readers into a `DamagedArchiveError`; what the disk says stays as it is."""
    try:
        yield
    except _BROKEN as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DamagedArchiveError(f"a damaged archive ({error or type(error).__name__})") from error


def safe_name(name: str) -> PurePosixPath:
    """Returns the name of a member as a path that stays inside.

    >>> safe_name("./images/7_Amanita muscaria/1.JPG")
    PurePosixPath('images/7_Amanita muscaria/1.JPG')

    Raises:
        ArchiveFaultError: When it would lead elsewhere, or no disk could hold it.
    """
    if any(ord(character) < 32 for character in name):
        raise ArchiveFaultError(f"a name with control characters, {_shown(name)}")
    if "\\" in name:
        raise ArchiveFaultError(f"a name with a backslash, {_shown(name)}")
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        raise ArchiveFaultError(f"an absolute path, {_shown(name)}")
    path = PurePosixPath(name)
    if ".." in path.parts:
        raise ArchiveFaultError(f"a path that leads out of the folder, {_shown(name)}")
    if any(len(part.encode(errors="replace")) > LONGEST_NAME_BYTES for part in path.parts):
        raise ArchiveFaultError(f"a name of more than {LONGEST_NAME_BYTES} bytes, {_shown(name)}")
    return path


def _both(path: PurePosixPath) -> ArchiveFaultError:
    return ArchiveFaultError(f"{_shown(path)} both as a file and as a folder")


@dataclass
class _Watch:
    """Counts what comes out, and stops when it is too much or comes twice."""

    rules: ArchiveRules
    bytes_out: int = 0
    members: int = 0
    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)

    def admit(self, name: str, size: int | None) -> PurePosixPath:
        """Takes note of one more file, or of a folder, which has no size; returns where it goes."""
        self.members += 1
        if self.members > self.rules.most_members:
            raise ArchiveFaultError(f"more than {self.rules.most_members:,} files")
        self.bytes_out += size or 0
        if self.bytes_out > self.rules.most_bytes:
            raise TooMuchInsideError(f"more than {self.rules.most_bytes // MIB:,} MiB")
        path = safe_name(name.replace("\\", "/") if self.rules.backslash_separates else name)
        if size is None:
            self._note_folders(path, *path.parents)
        else:
            self._note_file(path)
            self._note_folders(*path.parents)
        return path

    def _note_file(self, path: PurePosixPath) -> None:
        key = self._key(path)
        if key in self.files:
            raise ArchiveFaultError(f"two files that would have the same name here, {_shown(path)}")
        if key in self.folders or not path.parts:
            raise _both(path)
        self.files.add(key)

    def _note_folders(self, *paths: PurePosixPath) -> None:
        """Takes note of a folder and of those that it lies in, innermost first."""
        for path in paths:
            key = self._key(path)
            if key in self.folders:
                return
            if key in self.files:
                raise _both(path)
            self.folders.add(key)

    def _key(self, path: PurePosixPath) -> str:
        key = unicodedata.normalize("NFC", str(path))
        return key.casefold() if self.rules.folds_case else key


def _zip_members(opened: zipfile.ZipFile, watch: _Watch) -> Iterator[Member]:
    # The list of contents comes first, so that everything is checked before the first byte is written.
    checked = []
    for info in opened.infolist():
        mode = info.external_attr >> 16
        if info.flag_bits & _ENCRYPTED:
            raise ArchiveFaultError(f"an encrypted file, {_shown(info.filename)}")
        if info.compress_type == zipfile.ZIP_LZMA:  # it may ask for 4 GiB of memory
            raise ArchiveFaultError(f"a file compressed by LZMA, {_shown(info.filename)}")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise ArchiveFaultError(f"a link or a device, {_shown(info.filename)}")
        checked.append((watch.admit(info.filename, None if info.is_dir() else info.file_size), info, mode))
    done = 0
    for name, info, mode in checked:
        done += info.compress_size
        content = None if info.is_dir() else partial(opened.open, info)
        yield Member(name, info.file_size, bool(mode & 0o111), content, done)


def _tar_members(raw: IO[bytes], expanded: IO[bytes], watch: _Watch) -> Iterator[Member]:
    with tarfile.open(fileobj=expanded, mode="r|") as opened:
        for info in opened:
            if info.islnk() or info.issym():
                raise ArchiveFaultError(f"a link, {_shown(info.name)} to {_shown(info.linkname)}")
            if not (info.isdir() or info.isreg()):
                raise ArchiveFaultError(f"a device or a pipe, {_shown(info.name)}")
            name = watch.admit(info.name, None if info.isdir() else info.size)
            content = None if info.isdir() else partial(_tar_file, opened, info)
            yield Member(name, info.size, bool(info.mode & 0o111), content, raw.tell())
    _read_to_the_end(expanded, watch)


def _is_tar(archive: Path) -> bool:
    """Whether a file is a tar archive, in few bytes of memory whatever it asks for."""
    with archive.open("rb") as raw, _expanded(raw) as content:
        try:
            with tarfile.open(fileobj=content, mode="r|"):
                return True
        except (tarfile.TarError, lzma.LZMAError):
            return False
        except OSError as error:
            if error.errno is not None:
                raise
            return False


class _XzFile(io.RawIOBase):
    """xz as `lzma.LZMAFile` reads it, but for what would take too much memory."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self._decoder = raw, lzma.LZMADecompressor(memlimit=MOST_XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._next(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _next(self, most: int) -> bytes:
        data, after_first = b"", False
        while not data:
            given = b""
            if self._decoder.eof:  # another stream may follow, after some zeros
                given, after_first = self._decoder.unused_data.lstrip(b"\0"), True
                while not given:
                    if not (piece := self._raw.read(BLOCK)):
                        return b""
                    given = piece.lstrip(b"\0")
                self._decoder = lzma.LZMADecompressor(memlimit=MOST_XZ_MEMORY)
            elif self._decoder.needs_input and not (given := self._raw.read(BLOCK)):
                raise EOFError("the archive breaks off")
            try:
                data = self._decoder.decompress(given, most)
            except lzma.LZMAError as error:
                if "Memory usage limit" in str(error):
                    most_mb = f"{MOST_XZ_MEMORY // MIB} MiB of memory"
                    raise ArchiveFaultError(f"xz data that take more than {most_mb} to unpack") from error
                if after_first:  # something else follows, which others pass over as well
                    return b""
                raise
        return data


def _expanded(raw: IO[bytes]) -> IO[bytes]:
    start = raw.read(6)
    raw.seek(0)
    if start.startswith(_GZIP):
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if start.startswith(_BZIP2):
        return bz2.BZ2File(raw)
    if start.startswith(_XZ):
        return _XzFile(raw)  # type: ignore[return-value]
    return raw


def _tar_file(opened: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    content = opened.extractfile(info)
    if content is None:
        raise tarfile.ReadError(f"{info.name} has no content")
    return content


def _read_to_the_end(expanded: IO[bytes], watch: _Watch) -> None:
    # The tar reader stops at its own end mark, or silently where the file was cut; only the end of the compressed
    # stream tells that all of it was there.
    left = watch.rules.most_bytes - watch.bytes_out
    while block := expanded.read(BLOCK):
        left -= len(block)
        if left < 0:
            raise TooMuchInsideError("endless padding")


def _shown(name: str | PurePosixPath) -> str:
    text = str(name)
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
