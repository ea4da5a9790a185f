"""What the verbs share: their options, and how they answer."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldmark.errors import MisuseError

if TYPE_CHECKING:
    from fieldmark.challenge.records.schema import Challenge, User
    from fieldmark.challenge.running.serving import Platform

WHEN = "WHEN"
MOMENTS = "a moment in UTC such as 2026-12-31, 2026-12-31T18:00 or 'now' (a date alone is its first moment)"


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
Actor = Annotated[str | None, typer.Option("--as", help="The account that acts; the first admin if not given.")]
Sure = Annotated[bool, typer.Option("--yes", help="Do not ask; for scripts.")]
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
    from fieldmark.challenge.records.server_address import noted_address

    return given.rstrip("/") if given else noted_address(platform.database)


def answer(as_json: bool, data: Any, sentence: str) -> None:
    """Says what was done, to a program or to a person."""
    from fieldmark.cli.printing import print_json

    if as_json:
        print_json(data)
    else:
        print(sentence)


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


@contextmanager
def running(
    name: str, actor: str | None, folder: Path, database: str | None, files: str | None
) -> Iterator[tuple[Platform, Challenge, User]]:
    """The platform, one of its challenges, and the account that acts, which must run it."""
    from fieldmark.challenge.running import serving

    with serving.open_platform(folder, database, files) as platform:
        challenge = platform.challenge(name)
        yield platform, challenge, platform.organizer(actor, challenge)


def many(count: int, noun: str) -> str:
    """A count with its noun.

    >>> many(1, "run"), many(0, "run")
    ('1 run', '0 runs')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def as_shown(moment_: dt.datetime) -> str:
    """A moment as tables show it.

    >>> as_shown(dt.datetime(2026, 12, 31, 18, tzinfo=dt.UTC))
    '2026-12-31 18:00'
    """
    return f"{moment_.astimezone(dt.UTC):%Y-%m-%d %H:%M}"
