"""What all parts of the API may answer with."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Done(BaseModel):
    """That something was done."""

    done: str
    count: int | None = None


class Refused(BaseModel):
    """Why something was not done."""

    error: str
    problems: list[dict[str, Any]] | None = None
