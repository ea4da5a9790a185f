"""Collects what is wrong with a run file, so that a person sees all of it at once."""

from __future__ import annotations

from collections.abc import Container

from fieldmark.errors import InputError, shortened

SHOWN = 20


class RunError(InputError):
    """A run file that is refused; the message lists the first problems and counts the rest."""

    def __init__(self, path: object, problems: list[tuple[int | None, str]], total: int) -> None:
        self.problems, self.total = problems, total
        super().__init__(path, found=f"{total} problem{'s' if total != 1 else ''}")
        lines = [f"{path}, line {line}: {text}." if line else f"{path}: {text}." for line, text in problems]
        if total > len(problems):
            lines.append(f"{path}: and {total - len(problems)} more problems.")
        self.args = ("\n".join(lines),)


class RunProblems:
    """The problems of one run file, in the order in which they were met."""

    def __init__(self, path: object) -> None:
        self.path, self.total = path, 0
        self._first: list[tuple[int | None, str]] = []

    def add(self, line: int | None, found: str, expected: str) -> None:
        """Notes one problem: what was found at a line, and what was expected there."""
        self.total += 1
        if len(self._first) < SHOWN:
            self._first.append((line, f"found {shortened(found)}, expected {shortened(expected)}"))

    def explain(self, found: str, expected: str) -> None:
        """Notes the problem that explains the others; it is shown after them, however many there are."""
        self.total += 1
        self._first = [*self._first[: SHOWN - 1], (None, f"found {shortened(found)}, expected {shortened(expected)}")]

    def raise_any(self) -> None:
        """Raises one error for all problems, if there are any."""
        if self.total:
            raise RunError(self.path, self._first, self.total)


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
