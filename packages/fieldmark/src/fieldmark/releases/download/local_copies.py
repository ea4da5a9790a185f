"""Recognizing files that are already on disk, wherever they came from."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fieldmark.errors import MisuseError
from fieldmark.releases.download.manifest import Checksum, ReleaseFile
from fieldmark.releases.download.receipts import Receipt, read_receipt
from fieldmark.releases.download.unpack import staging_of
from fieldmark.work.progress import progress

Basis = Literal["md5", "sha256", "size", "nothing published"]

BLOCK = 1 << 20
# Downloads are looked for this many folders deep, so that a disk full of photos is not walked through.
DEPTH = 4


@dataclass(frozen=True)
class Verdict:
    """Whether a file is the one that was published.

    Attributes:
        basis: What the judgment rests on.
        digest: What was computed, as `md5:...`.
        fault: What is wrong, as the end of a sentence that starts with "found"; nothing if the file is right.
        expected: What was expected instead.
    """

    basis: Basis
    digest: str | None = None
    fault: str | None = None
    expected: str | None = None


def new_hash(checksum: Checksum | None) -> hashlib._Hash:
    """Returns the hash that a published checksum asks for; SHA-256 where none is published."""
    return hashlib.new(checksum.algorithm if checksum else "sha256", usedforsecurity=False)


def verify(path: Path, file: ReleaseFile, digest: str | None = None) -> Verdict:
    """Compares a file on disk with what was published about it.

    Args:
        path: The file on disk.
        file: What it should be.
        digest: Its digest as `md5:...`, if it was computed while the file came in.

    Returns:
        The verdict. Where neither checksum nor size is published, an archive must at least begin and end like one.
    """
    size = path.stat().st_size
    if size == 0:
        return Verdict("size", fault="an empty file")
    if file.size is not None and size != file.size:
        return Verdict("size", fault=f"{size:,} bytes", expected=f"{file.size:,} bytes")
    if file.checksum is not None:
        wanted = f"{file.checksum.algorithm}:{file.checksum.digest}"
        have = digest if digest and digest.startswith(f"{file.checksum.algorithm}:") else _digest(path, file.checksum)
        if have != wanted:
            return Verdict(file.checksum.algorithm, have, f"the checksum {have}", wanted)
        return Verdict(file.checksum.algorithm, have)
    if not _looks_whole(path, file):
        return Verdict("size", digest, "something that is not a whole archive", f"a {file.unpack} file")
    return Verdict("nothing published" if file.size is None else "size", digest)


def _digest(path: Path, checksum: Checksum) -> str:
    running = new_hash(checksum)
    with path.open("rb") as content, progress(f"checking {path.name} (MiB)", path.stat().st_size >> 20) as tick:
        while block := content.read(BLOCK):
            running.update(block)
            if len(block) == BLOCK:
                tick(1)
    return f"{checksum.algorithm}:{running.hexdigest()}"


def _looks_whole(path: Path, file: ReleaseFile) -> bool:
    if file.unpack == "zip":
        return zipfile.is_zipfile(path)
    if file.unpack == "tar.gz":
        with path.open("rb") as content:
            return content.read(2) == b"\x1f\x8b"
    return True


def place_of(file: ReleaseFile, root: Path) -> Path:
    """Where a file lies in a root: an archive at the top, any other file in its folder."""
    return root / file.name if file.unpack else root / file.into / file.name


def is_unpacked(file: ReleaseFile, root: Path) -> bool:
    """Whether the contents of an archive are in place: by our own note, or because what it creates exists."""
    if staging_of(file.name, root / file.into).exists():
        return False
    receipt = read_receipt(root, file.name)
    if receipt is not None and receipt.made and all((root / path).exists() for path in receipt.made):
        return True
    return any(_is_filled(root / path) for path in file.creates)


def _is_filled(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def trusted(receipt: Receipt | None, path: Path, file: ReleaseFile) -> bool:
    """Whether a file in the root was verified before and has not changed since."""
    if receipt is None or not receipt.fits(path):
        return False
    checksum = file.checksum
    return checksum is None or receipt.digest == f"{checksum.algorithm}:{checksum.digest}"


def search(files: Iterable[ReleaseFile], root: Path, folders: Sequence[Path]) -> dict[str, tuple[Path, ...]]:
    """Looks for the files of a release by name.

    Args:
        files: What to look for.
        root: The root of the release; only the places where files belong are looked at.
        folders: Further folders, looked through with the folders inside them.

    Returns:
        For each file, where something of its name lies, the root first.
    """
    files = tuple(files)
    for folder in folders:
        if not folder.is_dir():
            raise MisuseError(f"--found {folder}: there is no such folder.")
    owners: dict[str, list[str]] = {}
    for file in files:
        for name in (file.name, *file.aliases):
            owners.setdefault(name, []).append(file.name)
    hits: dict[str, list[Path]] = {file.name: [] for file in files}
    for file in files:
        own = [place_of(file, root), *(root / name for name in (file.name, *file.aliases))]
        hits[file.name] += [path for path in dict.fromkeys(own) if path.is_file()]
    for folder in folders:
        _walk(folder, owners, hits)
    return {name: tuple(dict.fromkeys(paths)) for name, paths in hits.items()}


def _walk(folder: Path, owners: Mapping[str, list[str]], hits: Mapping[str, list[Path]]) -> None:
    top = len(folder.parts)
    for where, inside, names in os.walk(folder):
        here = Path(where)
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        if len(here.parts) - top >= DEPTH:
            inside.clear()
        for name in names:
            for owner in owners.get(name, ()):
                hits[owner].append(here / name)
