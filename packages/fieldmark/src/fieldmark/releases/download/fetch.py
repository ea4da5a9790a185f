"""Fetching a release: what is missing is found on disk or downloaded, verified, and unpacked."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.download.download import USUAL_PATIENCE, Patience, download
from fieldmark.releases.download.local_copies import Basis, is_unpacked, place_of, search, trusted, verify
from fieldmark.releases.download.manifest import Manifest, ReleaseFile
from fieldmark.releases.download.manifests import MANIFESTS
from fieldmark.releases.download.receipts import Receipt, read_receipt, sole_use, write_receipt
from fieldmark.releases.download.room import check_room
from fieldmark.releases.download.unpack import unpack
from fieldmark.storage.files import appearing_file

Outcome = Literal["in place", "found", "downloaded", "failed"]
Standing = Literal["in place", "on disk", "to download", "by hand"]


@dataclass(frozen=True)
class FileReport:
    """What became of one file.

    Attributes:
        name: The name of the file.
        outcome: Whether it was in place already, found on disk, downloaded, or none of these.
        origin: The path or the address that it came from.
        checked: What its verification rests on; nothing if its contents were in place already.
        received: Bytes that came over the wire.
        resumed_from: Bytes that were there from an interrupted download.
        unpacked: How many files came out of it.
        replaced: How many files of another content those replaced.
        remarks: What a reader should know, one sentence each.
    """

    name: str
    outcome: Outcome
    origin: str | None = None
    checked: Basis | None = None
    received: int = 0
    resumed_from: int = 0
    unpacked: int = 0
    replaced: int = 0
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """What became of the files of a release."""

    name: str
    root: Path
    license: str
    homepage: str
    files: tuple[FileReport, ...]

    @property
    def complete(self) -> bool:
        """Whether everything that was chosen is in place."""
        return all(file.outcome != "failed" for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {**asdict(self), "root": str(self.root), "complete": self.complete}


@dataclass(frozen=True)
class Listed:
    """A file of a release, and where it stands; nothing was read or verified to say so."""

    name: str
    size: int | None
    size_is_exact: bool
    tags: tuple[str, ...]
    checksum: str | None
    standing: Standing
    where: str | None


def manifest_of(release: str | Manifest) -> Manifest:
    """Returns the manifest of a release by name."""
    return MANIFESTS[release] if isinstance(release, str) else release


def list_files(
    release: str | Manifest, root: Path, *, choose: Sequence[str] = ("all",), found: Sequence[Path] = ()
) -> tuple[Listed, ...]:
    """Says what a release consists of and what of it is on disk, without fetching anything."""
    files = manifest_of(release).choose(choose)
    hits = search(files, root, found)
    return tuple(_listed(file, root, hits[file.name]) for file in files)


def _listed(file: ReleaseFile, root: Path, hits: Sequence[Path]) -> Listed:
    standing: Standing = "to download" if file.mirrors else "by hand"
    where = file.mirrors[0] if file.mirrors else None
    if is_unpacked(file, root) if file.unpack or file.creates else place_of(file, root).is_file():
        standing, where = "in place", str(root / file.into)
    elif hits:
        standing, where = "on disk", str(hits[0])
    algorithm = file.checksum.algorithm if file.checksum else None
    return Listed(file.name, file.expected_size, file.size is not None, file.tags, algorithm, standing, where)


def get(
    release: str | Manifest,
    root: Path,
    *,
    choose: Sequence[str] = (),
    mirrors: Sequence[str] = (),
    found: Sequence[Path] = (),
    keep_archives: bool = False,
    patience: Patience = USUAL_PATIENCE,
) -> Report:
    """Brings a release onto the disk.

    A file that is already there counts, wherever it came from: unpacked in the root, or by name in the root or in one
    of the folders `found`, if its checksum is right, or its size where no checksum is published. What is missing is
    downloaded. A file that cannot be downloaded does not stop the others.

    Args:
        release: The name of a release, or a manifest.
        root: The folder of the release; it is made if it does not exist.
        choose: Tags, tags joined by commas, or names of files; the usual ones if empty.
        mirrors: Addresses of folders that hold copies of the files, tried before the published ones.
        found: Folders with files that were downloaded before; nothing in them is changed.
        keep_archives: Whether downloaded archives stay after unpacking.
        patience: How long to wait, and how often to try again.

    Returns:
        What became of each file.

    Raises:
        MisuseError: If there is no such release or part.
        InputError: If the disk has no room, or the root is in use.
    """
    manifest = manifest_of(release)
    files = manifest.choose(choose)
    if root.exists() and not root.is_dir():
        raise MisuseError(f"{root} is a file. Give the folder that the release is to lie in.")
    root.mkdir(parents=True, exist_ok=True)
    with sole_use(root):
        hits = search(files, root, found)
        _check_room(files, root, hits, keep_archives=keep_archives)
        errand = _Errand(manifest, root, tuple(mirrors), keep_archives, patience)
        reports = tuple(errand.run(file, hits[file.name]) for file in files)
    return Report(manifest.name, root, manifest.license, manifest.homepage, reports)


def _check_room(
    files: Sequence[ReleaseFile], root: Path, hits: dict[str, tuple[Path, ...]], *, keep_archives: bool
) -> None:
    """Photos hardly shrink in an archive: what comes out is taken to be as large as what comes in."""
    missing = [file for file in files if not is_unpacked(file, root) and not hits[file.name]]
    sizes = [file.expected_size or 0 for file in missing]
    archives = [file.expected_size or 0 for file in missing if file.unpack]
    beside = sum(archives) if keep_archives else max(archives, default=0)
    check_room(root, sum(sizes) + beside, f"{len(missing)} files")


@dataclass(frozen=True)
class _Errand:
    """What is the same for all files of one call."""

    manifest: Manifest
    root: Path
    mirrors: tuple[str, ...]
    keep_archives: bool
    patience: Patience

    def run(self, file: ReleaseFile, hits: Sequence[Path]) -> FileReport:
        """Brings one file into place."""
        if (file.unpack or file.creates) and is_unpacked(file, self.root):
            return FileReport(file.name, "in place", str(self.root / file.into))
        remarks: list[str] = []
        try:
            path, report = self._obtain(file, hits, remarks)
            return self._put(file, path, report) if path is not None else report
        except InputError as error:
            return FileReport(file.name, "failed", remarks=(*remarks, str(error)))

    def _obtain(self, file: ReleaseFile, hits: Sequence[Path], remarks: list[str]) -> tuple[Path | None, FileReport]:
        """Returns where a verified copy lies (nothing if it is in place for good), and the report so far."""
        for path in hits:
            receipt = read_receipt(self.root, file.name)
            trusted_receipt = receipt if trusted(receipt, path, file) else None
            verdict = verify(path, file, trusted_receipt.digest if trusted_receipt else None)
            if verdict.fault is not None:
                remarks.append(self._reject(path, place_of(file, self.root), verdict.fault, verdict.expected))
                continue
            if trusted_receipt is None:
                write_receipt(self.root, Receipt.of(file.name, path, str(path), verdict.digest))
            if path == place_of(file, self.root) and not file.unpack:
                return None, FileReport(file.name, "in place", str(path), verdict.basis, remarks=tuple(remarks))
            return path, FileReport(file.name, "found", str(path), verdict.basis, remarks=tuple(remarks))
        return self._download(file, remarks)

    def _reject(self, path: Path, place: Path, fault: str, expected: str | None) -> str:
        sentence = f"{path}: found {fault}" + (f", expected {expected}" if expected else "")
        if path.parent != self.root and path.parent != place.parent:
            return f"{sentence}. It is not used."
        path.replace(path.with_name(f"{path.name}.bad"))
        return f"{sentence}. It is set aside as {path.name}.bad."

    def _download(self, file: ReleaseFile, remarks: list[str]) -> tuple[Path | None, FileReport]:
        urls = [*(f"{base.rstrip('/')}/{file.name}" for base in self.mirrors), *file.mirrors]
        by_hand = f"{file.by_hand or self.manifest.by_hand} "
        if file.is_unpacked_by_hand:
            by_hand += f"Then unpack it so that {self.root} holds {' or '.join(file.creates)}."
        else:
            by_hand += f"Then pass the folder that holds {file.name} with --found, or put it into {self.root}."
        target = place_of(file, self.root)
        got = download(file, target, urls, patience=self.patience, by_hand=by_hand)
        write_receipt(self.root, Receipt.of(file.name, target, got.url, got.digest, downloaded=True))
        report = FileReport(
            file.name,
            "downloaded",
            got.url,
            got.basis,
            received=got.received,
            resumed_from=got.resumed_from,
            remarks=(*remarks, *got.remarks),
        )
        return (target if file.unpack else None), report

    def _put(self, file: ReleaseFile, path: Path, report: FileReport) -> FileReport:
        """Unpacks an archive, or copies a plain file that was found elsewhere."""
        if file.unpack is None:
            with appearing_file(place_of(file, self.root)) as copy:
                shutil.copyfile(path, copy)
            return report
        receipt = read_receipt(self.root, file.name)
        ours = receipt is not None and receipt.downloaded and path == place_of(file, self.root)
        try:
            unpacked = unpack(path, self.root / file.into, file.unpack)
        except InputError:
            if ours and file.checksum is None:  # its content was never verified: fetch it again the next time
                path.replace(path.with_name(f"{path.name}.bad"))
            raise
        made = tuple(str(PurePosixPath(file.into, name)) for name in unpacked.made)
        if receipt is not None:
            write_receipt(self.root, receipt.unpacked(made))
        if ours and not self.keep_archives:
            path.unlink()
        return replace(report, unpacked=unpacked.files, replaced=unpacked.replaced)
