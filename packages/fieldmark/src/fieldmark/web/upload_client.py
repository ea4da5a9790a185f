"""Sending a large file in parts: what has arrived stays there, and the same command goes on from it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fieldmark.errors import InputError
from fieldmark.registry import require
from fieldmark.storage.files import sha256_of
from fieldmark.web.client import refuse
from fieldmark.work.progress import progress, say

if TYPE_CHECKING:
    from fieldmark.web.client import Client

# How often in a row a part may fail, and how long to wait in between at most.
FAILURES, WAIT_MOST_S = 8, 60.0
TIMEOUT_S = 600
PART_MOST = 16 << 20  # kept in memory
AGAIN = (408, 429, 500, 502, 503, 504)
MIB = 1 << 20


class InterruptedUploadError(InputError):
    """The connection is lost for longer than we wait; what was sent stays there for a day."""


def send_in_parts(
    client: Client, run: Path, fields: dict[str, str], *, finish: str = "finish"
) -> dict[str, Any] | None:
    """Submits a file in parts, from where an earlier attempt with the same file stopped.

    Args:
        client: Who speaks to the challenge.
        run: The file.
        fields: What is said about it.
        finish: What becomes of it: "finish" submits it, "debug" tries it out.

    Returns:
        The submission or the debug run; None where the platform is too old to take parts.

    Raises:
        PlatformRefusalError: When it is refused.
        InterruptedUploadError: When the connection is lost for good.
    """
    sender = _Sender(client, run)
    upload = sender.begin()
    if upload is None:
        return None
    if upload["received"]:
        say(f"going on after {_so_far(upload['received'], upload['size'])} that are there already")
    sender.send(upload)
    form = {name: value for name, value in fields.items() if name != "once"}  # the upload itself is the key
    return cast(dict[str, Any], sender.call("POST", f"/uploads/{upload['id']}/{finish}", data=form).json())


def _so_far(received: int, size: int) -> str:
    return f"{received / MIB:.0f} of {size / MIB:.0f} MiB"


class _Sender:
    """Sends one file, as often as it takes."""

    def __init__(self, client: Client, run: Path) -> None:
        self.client, self.run, self.httpx = client, run, cast(Any, require("httpx", "Submitting a run"))
        self.size, self.sha256 = run.stat().st_size, sha256_of(run)

    def begin(self) -> dict[str, Any] | None:
        """The upload of this file that is under way, or a new one."""
        listed = self.call("GET", "/uploads", allowed=(404, 405))
        if listed.status_code != 200:
            return None
        for upload in listed.json():
            if (upload["sha256"], upload["size"]) == (self.sha256, self.size):
                return cast(dict[str, Any], upload)
        about = {"size": str(self.size), "sha256": self.sha256, "filename": self.run.name}
        return cast(dict[str, Any], self.call("POST", "/uploads", data=about).json())

    def send(self, upload: dict[str, Any]) -> None:
        """Sends what is missing."""
        path, received, failed = f"/uploads/{upload['id']}", int(upload["received"]), 0
        most = min(int(upload["part"]), PART_MOST)
        with self.run.open("rb") as file, progress("sending, in MiB", -(-self.size // MIB)) as tick:
            shown = 0
            while received < self.size:
                file.seek(received)
                headers = {"upload-offset": str(received), "content-type": "application/offset+octet-stream"}
                try:
                    answer = self._try("PATCH", path, headers=headers, content=file.read(most))
                except KeyboardInterrupt:
                    say(f"stopped after {_so_far(received, self.size)}: run the same command again to continue")
                    raise
                if answer is not None and answer.status_code in (204, 409) and "upload-offset" in answer.headers:
                    before, received = received, int(answer.headers["upload-offset"])
                    failed = 0 if received > before else failed + 1
                    done = -(-received // MIB) if received == self.size else received // MIB
                    if done > shown:
                        tick(done - shown)
                        shown = done
                elif answer is None or answer.status_code in AGAIN:
                    failed += 1
                    self._wait(failed, answer, received)
                    received = int(self.call("GET", path).json()["received"])
                else:
                    _say_no(answer, self.run)
                if failed > FAILURES:
                    raise self._given_up(received)

    def call(self, verb: str, path: str, *, allowed: tuple[int, ...] = (), **given: Any) -> Any:
        """One call, again while the connection fails."""
        for failed in range(1, FAILURES + 2):
            answer = self._try(verb, path, **given)
            if answer is not None and answer.status_code not in AGAIN:
                if answer.status_code >= 400 and answer.status_code not in allowed:
                    _say_no(answer, self.run)
                return answer
            if answer is not None and answer.status_code == 429:
                _say_no(answer, self.run)  # a limit, which does not pass in a minute
            if failed <= FAILURES:
                self._wait(failed, answer, None)
        raise self._given_up(None)

    def _try(self, verb: str, path: str, *, headers: dict[str, str] | None = None, **given: Any) -> Any:
        sent = {"authorization": f"Bearer {self.client.token}", **(headers or {})}
        try:
            return self.httpx.request(verb, self.client.api + path, headers=sent, timeout=TIMEOUT_S, **given)
        except self.httpx.TransportError:
            return None

    def _wait(self, failed: int, answer: Any, received: int | None) -> None:
        asked = answer.headers.get("retry-after", "") if answer is not None else ""
        pause = float(asked) if asked.isdigit() else 2.0 ** (failed - 1)
        time.sleep(min(pause, WAIT_MOST_S))

    def _given_up(self, received: int | None) -> InterruptedUploadError:
        there = "" if received is None else f" after {_so_far(received, self.size)}"
        hint = "The upload is kept for a day: run the same command again to continue."
        return InterruptedUploadError(self.client.api, found=f"no answer{there}", expected="a platform", hint=hint)


def _say_no(answer: Any, run: Path) -> None:
    try:
        said = answer.json()
    except ValueError:
        said = {}
    refuse(answer.status_code, said if isinstance(said, dict) else {}, run.name)
