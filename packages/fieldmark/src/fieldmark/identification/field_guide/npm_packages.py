"""Packages of npm by name, version and checksum, kept in a cache: what runs networks in a browser.

Nothing of ours is imported here: the build of the wheel reads this file by its path.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).parent
APP: Final = HERE / "app"
# Where the build of the wheel puts the files of the runtime; a checkout has no such folder.
PACKED: Final = HERE / "runtime"
RUNTIME: Final = "onnxruntime-web"
RUNTIME_FILES: Final = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")


class NpmError(Exception):
    """A package that cannot be fetched, or is not the one that was meant; the message says what to do."""


class NpmPackage(NamedTuple):
    """A package as `package.json` of the app pins it."""

    name: str
    version: str
    integrity: str

    @property
    def archive(self) -> str:
        """The file that `npm pack` writes."""
        return f"{self.name}-{self.version}.tgz"


def pinned(name: str, declared: Path = APP / "package.json") -> NpmPackage:
    """A package with the version and the checksum that the app declares."""
    data: dict[str, Any] = json.loads(declared.read_text(encoding="utf-8"))
    version = {**data.get("devDependencies", {}), **data.get("dependencies", {})}[name]
    return NpmPackage(name, version, data["integrity"][name])


def runtime_files(cache: Path) -> dict[str, bytes]:
    """The files of the runtime: those inside the wheel, or those of the package, fetched once into a cache.

    Raises:
        NpmError: When there are none and the package cannot be fetched.
    """
    if all((PACKED / name).is_file() for name in RUNTIME_FILES):
        return {name: (PACKED / name).read_bytes() for name in RUNTIME_FILES}
    return package_files(pinned(RUNTIME), [f"dist/{name}" for name in RUNTIME_FILES], cache)


def package_files(package: NpmPackage, paths: Iterable[str], cache: Path) -> dict[str, bytes]:
    """Some files of a package by their names; the archive is fetched where the cache does not have it.

    Raises:
        NpmError: When it cannot be fetched, or has another checksum than the one declared.
    """
    archive = cache / package.archive
    if not archive.is_file():
        _fetch(package, archive)
    _check(package, archive)
    wanted, found = {f"package/{path}" for path in paths}, dict[str, bytes]()
    with tarfile.open(archive) as opened:
        for member in opened:  # in the order of the archive, so that it is decompressed once
            content = opened.extractfile(member) if member.name in wanted else None
            if content is not None:
                found[Path(member.name).name] = content.read()
    return found


def _fetch(package: NpmPackage, archive: Path) -> None:
    named = f"{package.name}@{package.version}"
    by_hand = f"where there is a network run `npm pack {named}`, and put the file at {archive}"
    npm = shutil.which("npm")
    if npm is None:
        raise NpmError(f"{named} runs networks in browsers and is not here, and neither is npm to fetch it: {by_hand}.")
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        command = [npm, "pack", named, "--pack-destination", folder]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        written = Path(folder, package.archive)
        if ended.returncode or not written.is_file():
            said = (ended.stderr.strip().splitlines() or ["npm says nothing"])[-1]
            raise NpmError(f"{named} could not be fetched ({said}): {by_hand}.")
        _check(package, written)
        written.replace(archive)


def _check(package: NpmPackage, archive: Path) -> None:
    kind, _, expected = package.integrity.partition("-")
    found = base64.b64encode(hashlib.new(kind, archive.read_bytes()).digest()).decode()
    if found != expected:
        raise NpmError(
            f"{archive}: found the checksum {kind}-{found}, expected {package.integrity}. Delete the file, so that it "
            "is fetched again."
        )
