"""Settings: declared with their limits, given as `key=value`, checked, and described from the same declarations.

A class whose fields people set is a frozen dataclass on `Settings`. What a field may hold stands in its declaration: a
`Literal` lists its choices, and `setting` states a range, choices that are computed, or values beside a range. The
check, its messages, the tables of `fieldmark list` and the reference all read it there.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fieldmark.errors import MisuseError, did_you_mean, nearest_names

T = TypeVar("T")
_LIMITS = "limits"
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class SettingLimits:
    """What a setting may hold.

    Args:
        least, above: Its lower end, which belongs to it or does not.
        most, below: Its upper end, which belongs to it or does not.
        choices: The values to choose from, for a setting without a range.
        also: Values that may be given besides.
        file: What the names of files end with that may be given besides; empty for none.
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    choices: tuple[Any, ...] = ()
    also: tuple[Any, ...] = ()
    file: str = ""

    def allow(self, value: Any) -> bool:
        """Whether a value lies within them; where words may be given besides, numbers may be text and are finite."""
        if self.file and isinstance(value, str) and value.endswith(self.file):
            return True
        if value in self.also or self.choices:
            return value in self.also or value in self.choices
        worded = any(isinstance(one, str) for one in self.also)
        if isinstance(value, str) and not worded:
            return False
        try:
            number = float(value)
        except (TypeError, ValueError):
            return False
        return (
            not math.isnan(number)
            and not (worded and math.isinf(number))
            and (self.least is None or number >= self.least)
            and (self.above is None or number > self.above)
            and (self.most is None or number <= self.most)
            and (self.below is None or number < self.below)
        )

    def __str__(self) -> str:
        """The limits in words.

        >>> print(SettingLimits(least=0, most=1), SettingLimits(above=0), SettingLimits(least=1, also=(0,)), sep="; ")
        from 0 to 1; above 0; at least 1, or 0
        """
        if self.least is not None and self.most is not None:
            ends = [f"from {self.least:,} to {self.most:,}"]
        else:
            named = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
            ends = [
                "finite" if end == math.inf else f"{word} {end:,}" for word, end in named.items() if end is not None
            ]
        told = ", or ".join([" and ".join(ends) or _listed(self.choices), *map(_shown, self.also)])
        return f"{told} (or a file ending in {self.file})" if self.file else told


def setting(
    default: T,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    choices: Sequence[Any] = (),
    also: Sequence[Any] = (),
    file: str = "",
) -> T:
    """A field of `Settings` with limits, which subclasses keep that change only its default.

    Args:
        default: What holds where nothing is given; where that is None, None may be given as well.
        least: The lowest value, or
        above: What every value must lie above.
        most: The highest value, or
        below: What every value must lie below.
        choices: The values to choose from.
        also: Values that may be given besides those in the range.
        file: What the names of files end with that may be given besides.
    """
    limits = SettingLimits(least, above, most, below, tuple(choices), tuple(also), file)
    return dataclasses.field(default=default, metadata={_LIMITS: limits})


def setting_of(cls: type, name: str) -> Any:
    """The same setting as another class has, with its default and its limits, for what is handed on to that class."""
    one = dataclasses.fields(cls)[[field.name for field in dataclasses.fields(cls)].index(name)]
    return dataclasses.field(default=one.default, metadata=one.metadata)


class Settings:
    """The base of dataclasses whose fields people set: refuses values beyond the limits of their fields."""

    def __post_init__(self) -> None:
        owner: Any = type(self)
        hints, limits = _declared(owner)
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, list) and isinstance(field.default, tuple):  # a tuple that was read from a file
                object.__setattr__(self, field.name, tuple(value))
            own = limits.get(field.name)
            if own is not None and not (value is None and field.default is None) and not own.allow(value):
                raise MisuseError(_refusal(owner, field.name, value, hints.get(field.name), own))
        self.check_settings()

    def check_settings(self) -> None:
        """Refuses settings that do not go together, each of which is within its limits."""


@lru_cache(maxsize=512)
def _declared(cls: type) -> tuple[dict[str, Any], dict[str, SettingLimits]]:
    """The types and the limits of the fields of a class."""
    try:
        hints = get_type_hints(cls)
    except NameError:  # a type that only a type checker imports
        hints = {}
    limits = {
        name: SettingLimits(choices=get_args(kind)) for name, kind in hints.items() if get_origin(kind) is Literal
    }
    for base in reversed(cls.__mro__):
        for name, field in vars(base).get("__dataclass_fields__", {}).items():
            limits |= {name: field.metadata[_LIMITS]} if _LIMITS in field.metadata else {}
    return hints, limits


def _refusal(cls: type, name: str, value: Any, kind: Any, limits: SettingLimits) -> str:
    """Which setting of what, what was found, what was expected, and what the setting is about."""
    owner = getattr(cls, "name", "")
    where = f"{owner}:{name}={value}" if isinstance(owner, str) and owner else f"{name}={value}"
    about = first_sentence(_documented(cls).get(name, "")).removesuffix(".")
    if re.match(r"[A-Z][a-z]*\b", about):
        about = about[0].lower() + about[1:]
    if not re.sub("|".join([*map(re.escape, map(str, limits.choices)), r"\bor\b", r"\W"]), "", about):
        about = ""  # it only lists the choices
    known = [str(choice) for choice in (*limits.choices, *limits.also) if isinstance(choice, str) and choice]
    hint = nearest_names(str(value), known) if isinstance(value, str) else ""
    return f"{where}: expected {_expected(kind, limits)}{f' ({about})' if about else ''}. {hint}".strip()


def _expected(kind: Any, limits: SettingLimits | None = None, *, number: str = "a number") -> str:
    """What may be given, in words.

    >>> _expected(int, SettingLimits(least=1)), _expected(str, SettingLimits(choices=("one", "two"))), _expected(bool)
    ('a whole number of at least 1', 'one or two', 'true or false')
    """
    if limits is not None and limits.choices:
        return str(limits)
    words = {int: "a whole number", float: number, bool: "true or false"}
    if limits is None:
        return words.get(kind) or type_in_words(kind)
    of = " of" if str(limits).startswith("at ") else ""
    return f"{words[int] if kind is int else number}{of} {limits}"


def _shown(value: Any) -> str:
    return str(value) or "nothing"


def _listed(values: Sequence[Any]) -> str:
    *others, last = map(_shown, values)
    return f"{', '.join(others)} or {last}" if others else last


def parse_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Splits `key=value` texts.

    >>> parse_pairs(["k=5", "weights=random"])
    {'k': '5', 'weights': 'random'}
    """
    parsed = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise MisuseError(f"--set {pair}: found no key=value, expected for example --set size=160.")
        parsed[key.strip()] = value.strip()
    return parsed


def configure(values: Mapping[str, Any], *classes: type) -> list[Any]:
    """Makes an instance of each dataclass from the values that are its fields.

    Raises:
        MisuseError: For a key that no class has, a value of the wrong type, or a setting that must be given and is not.
    """
    fields = [[field.name for field in dataclasses.fields(cls)] for cls in classes]
    keys = sorted({name for names in fields for name in names})
    for key in values:
        if key not in keys:
            hint = did_you_mean(key, keys) if keys else "There is nothing to set."
            raise MisuseError(f"There is no setting called {key!r} here. {hint}")
    for cls in classes:
        for field in dataclasses.fields(cls):
            optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
            if not optional and field.name not in values:
                raise MisuseError(f"A setting that must be given is missing: --set {field.name}=VALUE.")
    return [
        cls(**{key: _convert(key, value, cls) for key, value in values.items() if key in names})
        for cls, names in zip(classes, fields, strict=True)
    ]


def _convert(key: str, value: Any, cls: type) -> Any:
    hints, limits = _declared(cls)
    kind = hints[key]
    if get_origin(kind) in (Union, UnionType):  # nothing is what holds where nothing is given
        kind = next(one for one in get_args(kind) if one is not NoneType)
    if not isinstance(value, str) or get_origin(kind) is Literal:
        return value
    try:
        converted = _TRUTH[value.lower()] if kind is bool else kind(value)
        if isinstance(converted, float) and not math.isfinite(converted):
            raise ValueError("neither nan nor infinity can be set")
        return converted
    except (KeyError, TypeError, ValueError) as error:
        expected = _expected(kind, limits.get(key), number="a finite number")
        raise MisuseError(f"--set {key}={value}: found {value!r}, expected {expected}.") from error


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
        limits: The range that it lies in, in words; empty where its type says everything.
    """

    name: str
    type: str
    default: str
    about: str
    wants: str
    limits: str = ""

    @property
    def allowed(self) -> str:
        """What may be given: its type with its range."""
        return f"{self.type}, {self.limits}" if self.limits else self.type

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
    told = _documented(cls)
    kinds, limits = _declared(cls)
    notes = []
    for field in dataclasses.fields(cls):
        if field.init:
            own, wants = limits.get(field.name, SettingLimits()), told.get(field.name, "")
            kind = Literal[own.choices] if own.choices else kinds[field.name]
            ranged = "" if own.choices or own == SettingLimits() else str(own)
            about = first_sentence(wants)
            notes.append(SettingNote(field.name, type_in_words(kind), _default(field), about, wants, ranged))
    return notes


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


def _documented(cls: type) -> dict[str, str]:
    """What the docstrings of a class and its bases say of each setting."""
    return dict(entry for base in reversed(cls.__mro__) for entry in _documented_by(base))


def _documented_by(cls: type) -> Iterator[tuple[str, str]]:
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
