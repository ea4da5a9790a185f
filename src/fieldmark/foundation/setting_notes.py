"""What can be set, read from the dataclasses that hold it: names, types, defaults, a sentence from the docstring."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

ENTRY = re.compile(r"^([a-z_][\w, ]*?)(?: \([^)]*\))?:\s(.*)$")
SECTIONS = ("Args:", "Attributes:")
REQUIRED, EMPTY = "required", "empty"


@dataclass(frozen=True)
class SettingNote:
    """One setting.

    Args:
        name: As `--set NAME=VALUE` takes it.
        type: What may be given: a type, or the values to choose from.
        default: What holds where nothing is given; "required" where something must be.
        about: What it does, in one sentence.
        wants: All that the docstring says of it.
    """

    name: str
    type: str
    default: str
    about: str
    wants: str

    @property
    def writable(self) -> bool:
        """Whether the default can be written after an equals sign."""
        return self.default not in (REQUIRED, EMPTY)


def setting_notes(cls: type) -> list[SettingNote]:
    """The settings of a dataclass, in the order of its fields.

    >>> @dataclass
    ... class Vote:
    ...     '''A vote.
    ...
    ...     Args:
    ...         k: How many neighbors vote. An odd number never ties.
    ...     '''
    ...     k: int = 5
    >>> [(note.name, note.type, note.default, note.about) for note in setting_notes(Vote)]
    [('k', 'int', '5', 'How many neighbors vote.')]
    """
    told = dict(entry for base in reversed(cls.__mro__) for entry in _documented(base))
    kinds = get_type_hints(cls)
    return [
        SettingNote(
            field.name,
            type_in_words(kinds[field.name]),
            _default(field),
            first_sentence(told.get(field.name, "")),
            told.get(field.name, ""),
        )
        for field in dataclasses.fields(cls)
        if field.init
    ]


def type_in_words(kind: Any) -> str:
    """A type as a reader would write it.

    >>> type_in_words(Literal["raw", "none"]), type_in_words(int | None), type_in_words(tuple[str, ...])
    ('raw | none', 'int or nothing', 'str, ...')
    """
    origin = get_origin(kind)
    if origin is Literal:
        return " | ".join(str(value) or "''" for value in get_args(kind))
    if origin in (Union, UnionType):
        return " or ".join("nothing" if one is NoneType else type_in_words(one) for one in get_args(kind))
    if origin in (tuple, list):
        return ", ".join("..." if one is Ellipsis else type_in_words(one) for one in get_args(kind))
    return str(getattr(kind, "__name__", kind))


def first_sentence(text: str) -> str:
    """The first sentence of a text, or all of it up to a semicolon where that is long.

    >>> first_sentence("How many vote, e.g. 5. More is slower.")
    'How many vote, e.g. 5.'
    """
    ends = re.search(r"(?<!e\.g)(?<!i\.e)(?<!etc)[.!?](?=\s+[A-Z\"'`]|$)", text)
    return text[: ends.end()] if ends else text


def _documented(cls: type) -> Iterator[tuple[str, str]]:
    """What the docstring of one class says of each setting; several may share an entry."""
    section = ""
    entry: tuple[list[str], list[str]] | None = None
    for line in inspect.cleandoc(cls.__dict__.get("__doc__") or "").splitlines():
        if line and not line.startswith(" "):
            section, started = line, None
        else:
            started = ENTRY.match(line.strip()) if section in SECTIONS and len(line) - len(line.lstrip()) == 4 else None
        if started or not line.startswith(" "):
            yield from _entries(entry)
            entry = ([name.strip() for name in started[1].split(",")], [started[2]]) if started else None
        elif entry and line.strip():
            entry[1].append(line.strip())
    yield from _entries(entry)


def _entries(entry: tuple[list[str], list[str]] | None) -> Iterator[tuple[str, str]]:
    for name in entry[0] if entry else ():
        yield name, " ".join(entry[1]) if entry else ""


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return REQUIRED
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value in ("", (), [], {}):
        return EMPTY
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
