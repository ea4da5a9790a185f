"""What `get` remembers about a root: one small note per file, in the folder `.fieldmark` of the root."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fieldmark.errors import InputError
from fieldmark.storage.files import write_json

FOLDER = ".fieldmark"


@dataclass(frozen=True)
class Receipt:
    """How one file of a release came to be in a root.

    Attributes:
        name: The name of the file.
        origin: The address or the path that it came from.
        size: Its size in bytes.
        mtime_ns: Its time of change, to notice another file under the same name.
        digest: What its content was, as `md5:...` or `sha256:...`.
        downloaded: Whether `get` itself put the file into the root, so that it may take it away again.
        made: What unpacking made, relative to the root; empty as long as it was not unpacked.
    """

    name: str
    origin: str
    size: int
    mtime_ns: int
    digest: str | None = None
    downloaded: bool = False
    made: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, path: Path, origin: str, digest: str | None, *, downloaded: bool = False) -> Receipt:
        """Describes a file on disk."""
        status = path.stat()
        return cls(name, origin, status.st_size, status.st_mtime_ns, digest, downloaded)

    def fits(self, path: Path) -> bool:
        """Whether a file on disk is the one that the receipt is about, by size and time."""
        status = path.stat()
        return (status.st_size, status.st_mtime_ns) == (self.size, self.mtime_ns)

    def unpacked(self, made: tuple[str, ...]) -> Receipt:
        """The same receipt, after unpacking."""
        return replace(self, made=made)


def read_receipt(root: Path, name: str) -> Receipt | None:
    """Returns the note about a file, or nothing where there is none that can be read."""
    try:
        data = json.loads(_path(root, name).read_text(encoding="utf-8"))
        return Receipt(**{**data, "made": tuple(data["made"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_receipt(root: Path, receipt: Receipt) -> None:
    """Writes the note about a file."""
    write_json(_path(root, receipt.name), asdict(receipt))


def _path(root: Path, name: str) -> Path:
    return root / FOLDER / f"{name}.json"


@contextmanager
def sole_use(root: Path) -> Iterator[None]:
    """Keeps two commands from writing the same root at once, where the system can lock files."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    lock = root / FOLDER / "lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(
                root,
                found="another `fieldmark get` at work in this folder",
                hint="Wait for it, or stop it and run the same command again.",
            ) from error
        yield
