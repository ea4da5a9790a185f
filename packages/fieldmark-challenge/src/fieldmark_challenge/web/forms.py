"""The fields and files of a form that somebody sent, as text, numbers, moments and files."""

from __future__ import annotations

import datetime as dt
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.datastructures import FormData, UploadFile

from fieldmark.errors import FieldmarkError
from fieldmark.tables.numbers import parse_int
from fieldmark.web.refusals import RefusalError
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import CHUNK
from fieldmark_challenge.web.dependencies import LARGEST


def text_of(form: FormData, name: str) -> str:
    """A text field, empty where it is missing."""
    value = form.get(name, "")
    if isinstance(value, str) and "\0" in value:  # no text has it, and not every database takes it
        raise RefusalError(f"The field {name!r} holds a NUL character.")
    return value if isinstance(value, str) else ""


def texts_of(form: FormData, *names: str) -> dict[str, str]:
    """Text fields by name, to show a form again as it was filled in."""
    return {name: text_of(form, name) for name in names}


def number_of(form: FormData, name: str, what: str, *, most: int = LARGEST) -> int:
    """A whole number from 0 on."""
    text = text_of(form, name).strip()
    try:
        number = parse_int(text)
    except ValueError as error:
        raise RefusalError(f"{what}: found {text[:40]!r}, expected a whole number.") from error
    if not 0 <= number <= most:
        raise RefusalError(f"{what}: found {text[:40]!r}, expected a whole number from 0 to {most}.")
    return number


def moment_of(form: FormData, name: str, what: str) -> dt.datetime:
    """A moment in UTC, as browsers write it (2026-11-15T12:00)."""
    text = text_of(form, name).strip()
    try:
        moment = dt.datetime.fromisoformat(text)
        return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    except (ValueError, OverflowError) as error:
        raise RefusalError(
            f"{what}: found {text[:40]!r}, expected a date and time such as 2026-11-15T12:00."
        ) from error


def file_of(form: FormData, name: str) -> UploadFile | None:
    """An uploaded file, None where none was chosen."""
    value = form.get(name)
    return value if isinstance(value, UploadFile) and value.filename else None


@contextmanager
def kept_files(form: FormData, *names: str) -> Iterator[dict[str, Path]]:
    """The uploaded files of a form by the names of their fields, in a folder for as long as they are needed."""
    with scratch("form") as folder:
        kept = {}
        for name in names:
            if (file := file_of(form, name)) is not None:
                kept[name] = folder / f"{name}.csv"
                with kept[name].open("wb") as sink:
                    shutil.copyfileobj(file.file, sink, CHUNK)
        yield kept


def plain_sentence(error: FieldmarkError) -> str:
    """The sentence without the folder in which the server keeps uploads for a moment."""
    return re.sub(r"\S*fieldmark-\w+-[^/\s]*/(truth/)?", "", str(error))
