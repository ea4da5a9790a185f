"""A client of the platform's API: submits runs and waits for their scores."""

from __future__ import annotations

import gzip
import secrets
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from fieldmark.errors import FieldmarkError, InputError, MisuseError
from fieldmark.registry import require
from fieldmark.web.part_sizes import IN_PARTS_FROM
from fieldmark.web.run_problems import in_lines
from fieldmark.work.progress import progress

POLL_S = 1.0
LEFT_OUT = (".git", "__pycache__", ".venv")  # of a folder with a program
TRIES = 4


class PlatformRefusalError(FieldmarkError):
    """What the platform said no to, in its own words."""


@dataclass(frozen=True)
class Client:
    """Speaks to one challenge.

    Args:
        api: The address of the challenge in the API.
        token: The token.
    """

    api: str
    token: str

    @classmethod
    def of(cls, address: str, token: str) -> Client:
        """A client for the address of a challenge's page.

        Raises:
            MisuseError: When the address is none, or there is no token.
        """
        parts = urlsplit(address)
        slug = parts.path.strip("/").removeprefix("c/").partition("/")[0]
        if parts.scheme not in ("http", "https") or not parts.netloc or not slug:
            raise MisuseError(f"{address}: expected the address of a challenge, such as http://127.0.0.1:8000/c/demo.")
        if not token:
            raise MisuseError("A token is needed: make one on your account page and set FIELDMARK_TOKEN to it.")
        return cls(f"{parts.scheme}://{parts.netloc}/api/v1/challenges/{slug}", token)

    def hand_in(
        self, run: Path, *, title: str = "", method: str = "", external: str = "", found: str = ""
    ) -> dict[str, Any]:
        """Submits a run file; tries again where the connection fails, without ever submitting twice.

        Args:
            run: The run file, or the archive of a program.
            title: What it is called.
            method: How it was made.
            external: Which external data are declared; empty for none.
            found: Which ones its provenance records.

        Raises:
            PlatformRefusalError: When it is refused: why, and what is wrong with the run, line by line.
        """
        if not run.is_file():
            raise InputError(run, found="no such file", expected="a run file")
        fields = {
            "title": title,
            "method": method,
            "external": "yes" if external else "no",
            "external_note": external,
            "external_found": found,
            "once": secrets.token_hex(16),
        }
        if run.stat().st_size >= IN_PARTS_FROM:
            from fieldmark.web.upload_client import send_in_parts

            sent = send_in_parts(self, run, fields)
            if sent is not None:
                return sent
        return self._sent("/submissions", run, fields)

    def try_out(self, archive: Path) -> dict[str, Any]:
        """Submits a program for a debug run.

        Raises:
            PlatformRefusalError: When it is refused.
        """
        if not archive.is_file():
            raise InputError(archive, found="no such file", expected="an archive with run.sh")
        if archive.stat().st_size >= IN_PARTS_FROM:
            from fieldmark.web.upload_client import send_in_parts

            sent = send_in_parts(self, archive, {}, finish="debug")
            if sent is not None:
                return sent
        return self._sent("/debug-runs", archive, {})

    def _sent(self, path: str, run: Path, fields: dict[str, str]) -> dict[str, Any]:
        """Sends a file, again where the connection fails."""
        for attempt in range(TRIES):
            with run.open("rb") as file:
                answer = self._call("POST", path, last=attempt == TRIES - 1, data=fields, run=(run.name, file))
            if answer is not None:
                return answer
            time.sleep(2**attempt)
        raise AssertionError("the last attempt either answers or raises")

    def submission(self, submission_id: int) -> dict[str, Any]:
        """Where a submission stands."""
        return cast(dict[str, Any], self._call("GET", f"/submissions/{submission_id}", last=True))

    def wait(self, submission_id: int) -> dict[str, Any]:
        """Waits until a submission is no longer on its way."""
        with progress("scoring", 1) as tick:
            while (submission := self.submission(submission_id))["state"] in ("queued", "running"):
                time.sleep(POLL_S)
            tick(1)
        return submission

    def wait_for_debug(self, number: int) -> dict[str, Any]:
        """Waits until a debug run has ended."""
        with progress("running", 1) as tick:
            while True:
                program = cast(dict[str, Any], self._call("GET", f"/debug-runs/{number}", last=True))
                if program["state"] not in ("queued", "running"):
                    break
                time.sleep(POLL_S)
            tick(1)
        return program

    def _call(
        self, verb: str, path: str, *, last: bool, data: dict[str, str] | None = None, run: Any = None
    ) -> dict[str, Any] | None:
        """One call; None where the connection failed and it may be tried again."""
        httpx: Any = require("httpx", "Submitting a run")
        headers = {"authorization": f"Bearer {self.token}"}
        files = {"run": run} if run is not None else None
        try:
            answer = httpx.request(verb, self.api + path, headers=headers, data=data, files=files, timeout=600)
        except httpx.TransportError as error:
            if last:
                raise InputError(self.api, found=f"no answer ({error})", expected="a platform") from error
            return None
        if answer.status_code >= 500 and not last:
            return None
        try:
            said = answer.json()
        except ValueError:
            said = {}
        if answer.status_code >= 400:
            refuse(answer.status_code, said, run[0] if run else self.api)
        return cast(dict[str, Any], said)


def refuse(status: int, said: dict[str, Any], where: str) -> None:
    """Raises what the platform said, with the lines of a run that are wrong as `fieldmark score` would list them."""
    sentence = str(said.get("error") or f"The platform answered {status}.")
    raise PlatformRefusalError(in_lines(sentence, said.get("problems") or [], where))


@contextmanager
def packed(folder: Path) -> Iterator[Path]:
    """The program of a folder as an archive, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="fieldmark-") as place:
        target = Path(place) / f"{folder.resolve().name}.tar.gz"
        # The same folder makes the same bytes, by which an upload that was cut off is recognized: gzip notes no time.
        with (
            target.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packing,
            tarfile.open(fileobj=packing, mode="w") as archive,
        ):
            for path in sorted(folder.rglob("*")):
                inside = path.relative_to(folder)
                if path.is_file() and not any(part in LEFT_OUT for part in inside.parts):
                    archive.add(path.resolve(), str(inside), recursive=False)
        yield target
