"""Lines of the log: plain ones for people, JSON for programs, and no secrets in either."""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
from contextvars import ContextVar
from typing import Any, Literal

LogFormat = Literal["text", "json"]
FIELDS = "fieldmark_fields"
# The number of the request that is being answered, for every line that is written meanwhile.
REQUEST_ID: ContextVar[str] = ContextVar("fieldmark_request_id", default="")
_SECRETS = (
    (re.compile(r"\bfm_[\w-]{8,}"), "fm_..."),
    (re.compile(r"(/(?:reset|join|verify|confirm|invite)/)[\w.~%-]{8,}"), r"\1..."),
    (re.compile(r"([?&](?:token|code|state|key|secret|password|sig|signature|X-Amz-\w+)=)[^&\s\"']+", re.I), r"\1..."),
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]+:)[^\s@/]+@", re.I), r"\1...@"),
    (re.compile(r"(\bBearer )[\w.~+/=-]+", re.I), r"\1..."),
)


def without_secrets(text: str) -> str:
    """A text with tokens, passwords in addresses, and links that work once taken out.

    >>> without_secrets("GET /reset/Ab3dEf6hIj and postgresql://me:pass@db/x")
    'GET /reset/... and postgresql://me:...@db/x'
    """
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return text


def fields(**values: Any) -> dict[str, Any]:
    """What a line says besides its sentence, as `log.info(sentence, extra=fields(submission=3))`."""
    return {FIELDS: values}


class PlainLines(logging.Formatter):
    """Time, level and sentence, and the number of the request where there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """The line, with what an error says below it."""
        number = REQUEST_ID.get()
        line = without_secrets(super().format(record))
        first, newline, rest = line.partition("\n")
        return f"{first} [{number}]{newline}{rest}" if number else line


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, message, request, and the fields of the line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        moment = dt.datetime.fromtimestamp(record.created, dt.UTC)
        told: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if number := REQUEST_ID.get():
            told["request"] = number
        told |= getattr(record, FIELDS, {})
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        safe = {name: without_secrets(value) if isinstance(value, str) else value for name, value in told.items()}
        return json.dumps(safe, ensure_ascii=False, default=str)


def log_to_terminal(style: LogFormat = "text") -> None:
    """Shows what the platform has to say, on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if style == "json" else PlainLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in ("alembic", "uvicorn", "httpx", "botocore", "aiobotocore", "s3fs"):
        logging.getLogger(name).setLevel(logging.WARNING)
