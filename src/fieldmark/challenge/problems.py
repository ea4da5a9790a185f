"""What is wrong with a run, as plain data: for pages, for the API, and between processes.

Apart from everything else, so that the process that scores a run starts quickly.
"""

from __future__ import annotations

from typing import Any

from fieldmark.errors import InputError
from fieldmark.runs.problems import RunError


def problems_of(error: InputError) -> tuple[list[dict[str, Any]], int]:
    """The problems that an error lists as plain data, and how many there are in all."""
    if isinstance(error, RunError):
        return [{"line": line, "text": text[:400]} for line, text in error.problems], error.total
    expected = f", expected {error.expected}" if error.expected else ""
    return [{"line": error.line, "text": f"found {error.found}{expected}"[:400]}], 1
