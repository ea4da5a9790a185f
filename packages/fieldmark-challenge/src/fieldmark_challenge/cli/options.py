"""What the verbs share: their options, and how they are read."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldmark.errors import MisuseError
from fieldmark_challenge.actions.words import MOMENTS

if TYPE_CHECKING:
    from fieldmark_challenge.site.server import Platform

WHEN = "WHEN"


def moment(text: str) -> dt.datetime:
    """A moment as people type it; without a time zone it is in UTC.

    >>> moment("2026-12-31"), moment("2026-12-31T18:00+02:00").hour
    (datetime.datetime(2026, 12, 31, 0, 0, tzinfo=datetime.timezone.utc), 16)

    Raises:
        MisuseError: When it is none.
    """
    if text.strip().lower() == "now":
        return dt.datetime.now(dt.UTC)
    try:
        time = dt.datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise MisuseError(f"{text!r}: expected {MOMENTS}.") from error
    return time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)


Name = Annotated[str, typer.Argument(help="The short name of the challenge.")]
Number = Annotated[int, typer.Argument(min=1, help="The number of the submission (`fieldmark challenge queue`).")]
Actor = Annotated[str | None, typer.Option("--as", help="The account to act as; the first admin if not given.")]
Sure = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]

Address = Annotated[
    str | None,
    typer.Option(
        envvar="FIELDMARK_PUBLIC_URL",
        help="The address of the server, for the links; that of the one started last if not given.",
    ),
]


def link_base(platform: Platform, given: str | None) -> str:
    """What links begin with: the address that is given, or that of the server that was started last."""
    from fieldmark_challenge.records.server_address import noted_address

    return given.rstrip("/") if given else noted_address(platform.database)


def text_in(path: Path, what: str) -> str:
    """The text of a file.

    Raises:
        InputError: When there is none.
    """
    from fieldmark.errors import InputError

    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        found = "bytes that are not UTF-8" if isinstance(error, UnicodeDecodeError) else "no file that can be read"
        raise InputError(path, found=found, expected=f"{what} as text") from error
