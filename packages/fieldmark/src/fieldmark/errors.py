"""The ways in which Fieldmark refuses to go on, each with a sentence that helps.

`InputError` is for what a person handed over (a file, a table, a release) and ends a command with exit code 1;
`MisuseError` is for what was asked (an unknown name, a setting that does not exist) and ends it with exit code 2.
What the system refuses (a full disk, a folder that may not be written) becomes such a sentence as well, by `of_system`.
Anything else that escapes is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# A sentence shows what was found; a file of one long line would fill the screen.
LONGEST_WORD, LONGEST = 80, 700


def shortened(text: str) -> str:
    """Text that fits into a sentence: long words, and more of them than anybody reads, lose their middle.

    >>> shortened("a" * 1000)[38:45], len(shortened("a" * 1000))
    ('aa…aaaa', 81)
    """
    words = [word if len(word) <= LONGEST_WORD else _middle_out(word, LONGEST_WORD) for word in text.split(" ")]
    return _middle_out(" ".join(words), LONGEST)


def _middle_out(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most // 2) :]}"


# Local copies of what lies at an address, and the address that a person knows it by.
_SHOWN_AS: dict[str, str] = {}


def show_as(copy: object, address: str) -> None:
    """Lets errors about a local copy, or about what lies in it, speak of the address that it came from."""
    _SHOWN_AS[str(copy)] = address


def _as_known(where: str) -> str:
    for copy, address in _SHOWN_AS.items():
        if where == copy or where.startswith(f"{copy}/"):
            return f"{address}{where[len(copy) :]}"
    return where


class FieldmarkError(Exception):
    """Base of all errors that carry a sentence for the person at the keyboard."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """For errors of other processes: the sentence and its parts, whatever it was made from."""
        return _again, (type(self), self.args, dict(self.__dict__))


def _again(kind: type[FieldmarkError], args: tuple[Any, ...], parts: dict[str, Any]) -> FieldmarkError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(parts)
    return error


# How `found` begins where a file or folder is missing; nothing was found then, and the sentence does not say so.
MISSING = "no such "


class InputError(FieldmarkError):
    """The input is at fault.

    The sentence is put together from the parts a reader needs: where it is, what was found, what was expected and
    what to do about it.

    >>> print(InputError("run.csv", line=3, found="2 columns", expected="3 columns", hint="Was a comma lost?"))
    run.csv, line 3: found 2 columns, expected 3 columns. Was a comma lost?
    """

    def __init__(
        self,
        where: object,
        *,
        line: int | None = None,
        found: str,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        found, expected = shortened(found), None if expected is None else shortened(expected)
        self.where, self.line, self.found, self.expected, self.hint = _as_known(str(where)), line, found, expected, hint
        place = self.where if line is None else f"{self.where}, line {line}"
        wanted = f", expected {expected}" if expected else ""
        advice = f" {hint}" if hint else ""
        said = found if found.startswith(MISSING) else f"found {found}"
        super().__init__(f"{place}: {said}{wanted}.{advice}")


class MisuseError(FieldmarkError):
    """What was asked for does not exist or does not go together."""

    exit_code = 2


class PeekingError(MisuseError):
    """A method or a step has looked at more than the task shows it."""


class MissingExtraError(MisuseError):
    """An optional dependency is not installed; the sentence says which extra brings it."""

    def __init__(self, extra: str, module: str, purpose: str) -> None:
        self.extra = extra
        super().__init__(f"{purpose} needs {module}, which is not installed: pip install 'fieldmark[{extra}]'.")


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Returns the sentence that points from a misspelt name to the nearest known ones.

    >>> did_you_mean("linaer", ["linear", "knn"])
    'Did you mean linear? Known: knn, linear.'
    """
    names = sorted(choices)
    return f"{nearest_names(name, names)} Known: {', '.join(names)}.".lstrip()


def nearest_names(name: str, choices: Iterable[str]) -> str:
    """Returns the question whether the nearest known names were meant; empty where none is near.

    >>> nearest_names("linaer", ["linear", "knn"])
    'Did you mean linear?'
    """
    near = get_close_matches(name, sorted(choices), n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(near)}?" if near else ""


# What was found, what was expected and what to do, by what the system says.
_SYSTEM = {
    errno.ENOSPC: ("no space left on the disk", "space for the output", "Free some space, or write to another disk."),
    errno.EDQUOT: ("no space left in the quota", "space for the output", "Free some space, or write to another disk."),
    errno.EACCES: (
        "no permission",
        "a place that may be read or written",
        "Change its permissions, or choose another.",
    ),
    errno.EPERM: ("no permission", "a place that may be read or written", "Change its permissions, or choose another."),
    errno.EROFS: ("a disk that cannot be written", "a place that can", "Write to another folder."),
    errno.EISDIR: ("a folder", "a file", "Name a file in it."),
    errno.ENOTDIR: ("a file", "a folder", "Check the path: one of its folders is a file."),
    errno.EEXIST: ("a file", "a folder", "Check the path: one of its folders is a file."),
    errno.ELOOP: ("a link that leads to itself", "a file", "Remove the link, or name the file itself."),
    errno.ENAMETOOLONG: ("a name that is too long", "one that the disk can hold", "Choose a shorter one."),
}


def of_system(error: OSError) -> InputError | None:
    """The sentence for what the system refused, or None where that can only be a bug of ours.

    >>> print(of_system(OSError(errno.ENOSPC, "No space left on device", "runs/linear")).found)
    no space left on the disk
    """
    if error.errno not in _SYSTEM:
        return None
    found, expected, hint = _SYSTEM[error.errno]
    # With two paths it is a rename, and the second is the one that a person asked for.
    where = error.filename2 or error.filename or "a file"
    return InputError(where, found=found, expected=expected, hint=hint)
