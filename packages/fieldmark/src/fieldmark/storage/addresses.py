"""Places that are not on this disk: addresses such as `s3://bucket/folder`, and the sentences for what fails there.

Whoever is handed a place asks `is_address`, opens it by `file_system`, and wraps each call in `reaching`:

    system, path = file_system(place)
    with reaching(place):
        data = system.cat_file(path)

A release does all that by itself (`storage.release.Release`); so does `local_input` for a run file, a table or a model.
"""

from __future__ import annotations

import errno
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from fieldmark.errors import FieldmarkError, InputError, MissingExtraError, MisuseError

R = TypeVar("R")

# Path("s3://bucket") is printed as s3:/bucket; one letter before the colon is a drive.
_ADDRESS = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?!/)")
# What brings the file systems that people name most.
_EXTRAS = {"s3": ("s3", "s3fs"), "s3a": ("s3", "s3fs")}
_BUCKETS = ("s3", "s3a", "gs", "gcs", "abfs", "az")
# How long to wait before each further try, for file systems that do not try again by themselves.
WAITS_S = (0.05, 0.4, 1.6)
_PASSING_NAMES = {"HTTPClientError", "EndpointConnectionError", "ClientConnectionError", "ClientPayloadError"}
_PASSING_NAMES |= {"IncompleteRead", "FSTimeoutError", "ConnectionClosedError", "ServerDisconnectedError"}
_PASSING_CODES = {errno.EIO, errno.EBUSY, errno.EAGAIN, errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT}
_NO_CREDENTIALS = {"NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "TokenRetrievalError"}


def place_text(place: str | Path) -> str:
    """A place as it was written; the two slashes of an address come back where `Path` has made one of them.

    >>> place_text(Path("s3://bucket/fungi")), place_text("photos/train"), place_text("c:/photos")
    ('s3://bucket/fungi', 'photos/train', 'c:/photos')
    """
    text = str(place)
    return _ADDRESS.sub(r"\1://", text, count=1) if isinstance(place, Path) else text


def is_address(place: str | Path) -> bool:
    """Whether a place is an address; `file://` names a local folder, by its address.

    >>> is_address("s3://bucket/fungi"), is_address(Path("memory://fungi")), is_address("photos")
    (True, True, False)
    """
    return "://" in place_text(place)


def recorded_place(place: str | Path) -> str:
    """A place as a run remembers it: an address as it is, a folder by its full path where there is one."""
    if is_address(place):
        return place_text(place)
    return str(Path(place).resolve()) if Path(place).exists() else str(place)


def refuse_address(place: str | Path, what: str) -> None:
    """Refuses an address where only a local path will do.

    Raises:
        MisuseError: Says what to do in its place.
    """
    if is_address(place):
        raise MisuseError(
            f"{what} is written to a local disk, not to {place_text(place)}. Name a local path and copy it afterwards."
        )


def file_system(place: str | Path) -> tuple[Any, str]:
    """The file system that an address belongs to, and the path in it.

    Raises:
        MissingExtraError: When its package is not installed.
        MisuseError: When nobody knows such addresses.
    """
    from fsspec.core import url_to_fs

    text = place_text(place)
    protocol = text.partition("://")[0].rpartition("::")[2].lower()
    try:
        # Listings are kept by whoever asks, in less memory.
        options = {"use_listings_cache": False} if is_address(place) and "::" not in text else {}
        system, path = url_to_fs(text, **options)
    except ImportError as error:
        if protocol in _EXTRAS:
            raise MissingExtraError(*_EXTRAS[protocol], f"Reading {protocol}:// addresses") from error
        raise MisuseError(f"{text} cannot be read: {error}.") from error
    except ValueError as error:
        hint = "Known are s3://, gs://, https:// and what else fsspec reads, and local paths."
        raise MisuseError(f"{text} is no address that can be read ({error}). {hint}") from error
    return system, path.rstrip("/")


@contextmanager
def reaching(place: str | Path) -> Iterator[None]:
    """Turns what a file system says while it is asked about a place into one sentence about that place.

    Raises:
        InputError: For no permission, no credentials, a lost connection. What is not there stays a FileNotFoundError.
    """
    try:
        yield
    except (FieldmarkError, FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise
    except Exception as error:
        told = _told(place_text(place), error)
        if told is None:
            raise
        raise told from error


def _told(where: str, error: Exception) -> InputError | None:
    names = {kind.__name__ for kind in type(error).__mro__}
    own = where.startswith("s3")
    if names & _NO_CREDENTIALS:
        hint = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; FSSPEC_S3_ANON=true for a public one."
        return InputError(where, found="no credentials", expected="those of an account that may read it", hint=hint)
    if isinstance(error, PermissionError):
        keys = "Are the keys of the right account set (AWS_ACCESS_KEY_ID, AWS_PROFILE)?" if own else None
        return InputError(where, found="no permission", expected="an account that may read it", hint=keys)
    if is_passing(error):
        setting = " and AWS_ENDPOINT_URL" if own else ""
        hint = f"Check the network{setting}, then run the same command again."
        found = f"no connection, in several tries ({_first_line(error)})"
        return InputError(where, found=found, expected="a server that answers", hint=hint)
    return None


def _first_line(error: Exception) -> str:
    said = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
    return re.sub(r"\?[^\s\"]*", "", said)  # what was asked for stands in the sentence already


def is_passing(error: Exception) -> bool:
    """Whether an error is one of the network, which may be gone the next time."""
    if isinstance(error, (FileNotFoundError, PermissionError)):
        return False
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & _PASSING_NAMES) or (isinstance(error, OSError) and error.errno in _PASSING_CODES)


def patiently(system: Any, place: str | Path, call: Callable[[], R]) -> R:
    """What a call to a file system returns; where the connection is lost, it is tried again a few times.

    Those that try again by themselves (`s3fs` does, five times) are left to do so.
    """
    with reaching(place):
        for wait_s in () if hasattr(system, "retries") else WAITS_S:
            try:
                return call()
            except Exception as error:
                if not is_passing(error):
                    raise
                time.sleep(wait_s * random.uniform(0.5, 1.5))
        return call()


def missing(place: str | Path, expected: str) -> InputError:
    """The sentence for an address at which there is nothing: no bucket of that name, or nothing in it."""
    text = place_text(place)
    protocol, _, rest = text.partition("://")
    bucket = rest.partition("/")[0]
    if protocol in _BUCKETS and not _has_bucket(text, f"{protocol}://{bucket}"):
        hint = "Check its name, the account and the endpoint."
        return InputError(text, found=f"no bucket called {bucket}", expected="a bucket that exists", hint=hint)
    return InputError(text, found="no such file or directory", expected=expected)


def _has_bucket(place: str, bucket: str) -> bool:
    system, path = file_system(bucket)
    try:
        return bool(patiently(system, place, lambda: system.exists(path)))
    except InputError:
        return True  # it cannot be asked for, which is another matter
