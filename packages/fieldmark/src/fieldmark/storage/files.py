"""Outputs that appear complete or not at all, and inputs that can be opened or are refused in a sentence."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from fieldmark.errors import FieldmarkError, InputError, MisuseError, of_system
from fieldmark.storage.addresses import file_system, is_address, place_text, reaching, refuse_address

FULL = (errno.ENOSPC, errno.EDQUOT)
# Below this a disk counts as full: what failed to be written did so for lack of space.
FULL_BYTES = 2**16


@contextmanager
def appearing_file(path: Path, *, mode: int | None = None) -> Iterator[Path]:
    """Yields a temporary path beside `path`; renames it to `path` when the block ends without an error.

    Args:
        path: The file.
        mode: Who may read and write it, as for `chmod`; as for any new file if not given.

    At an address the file is made on this machine and sent at the end, which makes it appear there all at once.

    Raises:
        MisuseError: When there is a folder of that name.
    """
    if is_address(path):
        with _sent(path) as partial:
            yield partial
        return
    if path.is_dir():
        raise MisuseError(f"{path} is a folder. Name a file in it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _refused_by(path.parent):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        with _told_when_full(path, partial):
            yield partial
        partial.chmod(0o666 & ~_umask() if mode is None else mode)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def appearing_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yields a temporary folder beside `path`; renames it to `path` when the block ends without an error.

    An existing folder is replaced only with `overwrite`, and only after the new one is complete. An empty folder
    counts as none.

    Raises:
        MisuseError: When there is a folder already, or for an address: folders cannot appear there all at once.
    """
    refuse_address(path, "A folder")
    occupied = path.exists() and (not path.is_dir() or any(path.iterdir()))
    if occupied and not overwrite:
        raise MisuseError(f"{path} already exists. Choose another folder, or pass --overwrite to replace it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _refused_by(path.parent):
        partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    try:
        with _told_when_full(path, partial):
            yield partial
        partial.chmod(0o777 & ~_umask())
        if path.exists():
            retired = partial.with_suffix(".replaced")
            path.rename(retired)
            partial.rename(path)
            shutil.rmtree(retired) if retired.is_dir() else retired.unlink()
        else:
            partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Keeps other commands from working on `path` at the same time.

    The system forgets the lock of a process that ends, however it ends. Disks that know no locks are trusted.

    Raises:
        MisuseError: When another process is at it, or for an address.
    """
    refuse_address(path, "A folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.parent / f".{path.name}.lock"
    with _refused_by(path.parent):
        handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
    # A lock without a name was given back between opening and locking; the next command makes one again.
    held = _lock(handle) and os.fstat(handle).st_nlink > 0
    try:
        if not held:
            raise MisuseError(f"Another command is writing {path} right now. Wait for it, or choose another folder.")
        yield
    finally:
        if held:
            lock.unlink(missing_ok=True)
        os.close(handle)


@contextmanager
def _sent(path: Path) -> Iterator[Path]:
    address = place_text(path)
    system, target = file_system(address)
    with tempfile.TemporaryDirectory(prefix="fieldmark-") as folder:
        partial = Path(folder) / path.name
        partial.touch()
        yield partial
        with reaching(address):
            system.makedirs(target.rpartition("/")[0], exist_ok=True)
            system.put_file(str(partial), target)


def _lock(handle: int) -> bool:
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        pass
    return True


def check_name(path: str | Path) -> None:
    """Refuses the name of a file that is not UTF-8, which no table can hold."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        found, expected = "a name that is not UTF-8", "one that tables can hold"
        raise InputError(shown, found=found, expected=expected, hint="Rename the file.") from error


def write_text(path: Path, text: str) -> None:
    """Writes text in UTF-8."""
    with appearing_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path, data: object) -> None:
    """Writes JSON for people and programs: indented, in the order given, with a final newline."""
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextmanager
def _told_when_full(path: Path, partial: Path) -> Iterator[None]:
    """Turns whatever is raised for lack of space into the error of a full disk, about `path`.

    Libraries that write arrays, tables and sound hide what the system said in errors of their own, or name the
    temporary file; so the disk itself is asked.
    """
    try:
        yield
    except FieldmarkError:
        raise
    except Exception as error:
        named = error.filename if isinstance(error, OSError) and error.errno in FULL else None
        if named and not Path(named).is_relative_to(partial):
            raise  # another disk is full, such as the one of the cache
        if named or _is_full(error, path.parent):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise


def _is_full(error: Exception, folder: Path) -> bool:
    said = isinstance(error, OSError) and error.errno in FULL
    return said or shutil.disk_usage(folder).free < FULL_BYTES


@contextmanager
def _refused_by(folder: Path) -> Iterator[None]:
    """Lets the system's refusal to write into a folder name the folder, not the temporary name in it."""
    try:
        yield
    except OSError as error:
        error.filename = str(folder)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def open_input(path: Path, expected: str) -> BufferedReader:
    """Opens a file that a person named.

    Args:
        path: The file.
        expected: What it should be, for the sentence that is said where it cannot be opened.

    Raises:
        InputError: When there is none, it is a folder, a link that leads nowhere, or may not be read.
    """
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise InputError(path, found="no such file", expected=expected) from error
    except OSError as error:
        raise of_system(error) or error from error


def with_digest(name: str, path: Path) -> str:
    """What a file is called in a declaration of external data: its name, and its digest while the file is there.

    >>> with_digest("countries.csv", Path("no such file"))
    'countries.csv'
    """
    return f"{name} (SHA-256 {sha256_of(path)[:16]})" if path.is_file() else name


def sha256_of(path: Path, expected: str = "a file") -> str:
    """The SHA-256 of a file, in hexadecimal.

    Args:
        path: The file.
        expected: What it should be, for the sentence that is said where it cannot be opened.

    Raises:
        InputError: When it cannot be opened.
    """
    with open_input(path, expected) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
