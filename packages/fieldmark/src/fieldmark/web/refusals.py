"""How the platform says no: with a sentence for the person who asked, and never with more than they may know."""

from __future__ import annotations

from fieldmark.errors import FieldmarkError


class RefusalError(FieldmarkError):
    """What was asked cannot be done, and the sentence says why."""

    status = 400


class NotThereError(RefusalError):
    """Nothing is there, or nothing that this person may know of: both sound the same."""

    status = 404

    def __init__(self) -> None:
        super().__init__("Not found, or you do not have access.")


class ConflictError(RefusalError):
    """What was asked does not go together with how things stand."""

    status = 409


class TooOftenError(RefusalError):
    """A limit was reached; the sentence says when to try again."""

    status = 429

    def __init__(self, sentence: str, *, retry_after_s: int = 60) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


class TooLargeError(RefusalError):
    """An upload is over its limit."""

    status = 413


class BusyError(RefusalError):
    """The server has its hands full, through no fault of the person who asked; the sentence says to come again."""

    status = 503

    def __init__(self, sentence: str, *, retry_after_s: int = 30) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


def retry_headers(error: RefusalError) -> dict[str, str]:
    """The header that tells programs when to come again, where a refusal says so."""
    return {"retry-after": str(error.retry_after_s)} if isinstance(error, TooOftenError | BusyError) else {}
