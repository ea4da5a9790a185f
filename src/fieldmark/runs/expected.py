"""What is expected in place of an id or a label that a benchmark does not have, and why it is not guessed."""

from __future__ import annotations

from collections.abc import Container


def expected_id(found: str, ids: Container[str]) -> str:
    """What to say of an id that is none of the benchmark's.

    >>> expected_id("5.0", {"5"})
    "'5': ids are compared as text, so write it without a decimal point"
    """
    whole = _whole(found)
    if whole in ids:
        return f"{whole!r}: ids are compared as text, so write it without a decimal point"
    return "an id of the benchmark"


def expected_label(found: str, names: Container[str]) -> str:
    """What to say of a label that is none of the benchmark's.

    Programs of organizers count such an answer as wrong, so that a misspelt class costs points without a word.

    >>> expected_label("Amanita muscara", {"Amanita muscaria"})
    'a label of the benchmark (any other could only be wrong, and is refused in case it is misspelt)'
    """
    whole = _whole(found)
    if whole in names:
        return f"{whole!r}: labels are compared as text, so write it without a decimal point"
    return "a label of the benchmark (any other could only be wrong, and is refused in case it is misspelt)"


def _whole(text: str) -> str:
    """The text without a fraction of zeros, as tables write whole numbers where a cell was empty; else empty."""
    number, point, fraction = text.partition(".")
    return number if point and fraction and not fraction.strip("0") else ""
