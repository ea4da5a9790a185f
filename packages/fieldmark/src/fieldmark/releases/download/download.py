"""One file over HTTP: goes on where it broke off, tries one mirror after another, and never joins two versions.

While a file comes in it lies beside its place as `NAME.partial`, with a note `NAME.partial.json` on where it comes from
and which version of it that is. Bytes are added only if the server confirms, by the answer 206 with the right
`Content-Range` and an unchanged version mark, that they continue the same file; else it is fetched from its start.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.download.local_copies import Basis, verify
from fieldmark.releases.download.manifest import ReleaseFile
from fieldmark.releases.download.partial import Partial
from fieldmark.releases.download.transfer import BrokenOffError, RefusedError, UnreachableError, transfer

# An attempt that got at least this much further earns the full number of tries again.
PROGRESS_BYTES = 1 << 20
TRIES_UNREACHABLE = 2


@dataclass(frozen=True)
class Patience:
    """How long to wait, and how often to try again.

    Args:
        timeout_s: Seconds without any byte before a connection counts as broken.
        tries: Attempts per mirror without getting any further.
        first_pause_s: The pause after the first failure; it doubles with each further one.
        longest_pause_s: The longest pause, also where a server asks for more.
    """

    timeout_s: float = 60.0
    tries: int = 5
    first_pause_s: float = 1.0
    longest_pause_s: float = 60.0


USUAL_PATIENCE = Patience()


@dataclass(frozen=True)
class Download:
    """A file that came in and was verified.

    Attributes:
        url: The mirror that gave the last of it.
        received: Bytes that came over the wire this time.
        resumed_from: Bytes that were there from an earlier time.
        basis: What the verification rests on.
        digest: The digest of its content, as `md5:...`.
        remarks: What went wrong on the way.
    """

    url: str
    received: int
    resumed_from: int
    basis: Basis
    digest: str
    remarks: tuple[str, ...]


def download(
    file: ReleaseFile, target: Path, urls: Sequence[str], *, patience: Patience = USUAL_PATIENCE, by_hand: str = ""
) -> Download:
    """Brings a file to its place, from the first mirror that gives it whole and right.

    Args:
        file: What is wanted.
        target: Where it is to appear, when it is complete and verified.
        urls: The mirrors, in order.
        patience: How long to wait, and how often to try again.
        by_hand: What a person can do if no mirror gives it.

    Raises:
        InputError: If no mirror gave the file; the sentence has a reason for each.
    """
    for url in urls:
        if urlsplit(url).scheme not in ("http", "https"):
            raise MisuseError(f"{url}: a mirror begins with http:// or https://. For a folder there is --found.")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Partial(target, file.checksum)
    received, remarks = 0, list[str]()
    waiting = list(urls)
    while waiting:
        url = waiting.pop(0)
        began_at = partial.size
        came, reason = _from_mirror(url, partial, file, patience)
        received += came
        if reason is None:
            digest = partial.digest()
            verdict = verify(partial.path, file, digest)
            if verdict.fault is None:
                partial.complete()
                before = max(0, target.stat().st_size - received)
                return Download(url, received, before, verdict.basis, digest, tuple(remarks))
            aside = partial.set_aside()
            wanted = f", expected {verdict.expected}" if verdict.expected else ""
            reason = f"gave {verdict.fault}{wanted}; it is set aside as {aside.name}"
            if began_at:  # perhaps the part that was there before is to blame: once more from the start
                waiting.insert(0, url)
        remarks.append(f"{url} {reason}")
    raise InputError(
        file.name,
        found="no mirror that gives it" + (f" ({'; '.join(remarks)})" if remarks else ""),
        hint=by_hand or None,
    )


def _from_mirror(url: str, partial: Partial, file: ReleaseFile, patience: Patience) -> tuple[int, str | None]:
    """Fetches what is missing from one mirror; returns the bytes received and the reason if it did not succeed."""
    received, failures, furthest = 0, 0, partial.size
    while True:
        pause = 0.0
        try:
            received += transfer(url, partial, file, patience.timeout_s)
            return received, None
        except RefusedError as error:
            return received + error.received, str(error)
        except BrokenOffError as error:
            received += error.received
            failures = 0 if partial.size >= furthest + PROGRESS_BYTES else failures
            furthest = max(furthest, partial.size)
            failures += 1
            tries = min(TRIES_UNREACHABLE, patience.tries) if isinstance(error, UnreachableError) else patience.tries
            if failures >= tries:
                return received, f"{error} (tried {failures} times)"
            pause = max(patience.first_pause_s * 2 ** (failures - 1), error.wait_s)
        time.sleep(min(pause, patience.longest_pause_s))
