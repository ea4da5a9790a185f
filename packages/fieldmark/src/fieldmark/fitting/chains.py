"""A chain: features, a method, the steps after it and all their settings, as one value with a name.

As text it is what `--method` and members of ensembles look like, with the steps behind arrows:

    linear:backbone=efficientnet_lite2:size=260 > temperature

A file holds the same as TOML or JSON:

    name = "night frogs"
    method = "linear"
    steps = ["temperature"]
    [settings]
    backbone = "efficientnet_lite2"
    size = 260
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fieldmark.errors import InputError, MisuseError
from fieldmark.methods import METHODS
from fieldmark.methods.ensemble_members import parse_members
from fieldmark.storage.files import write_json

SUFFIXES = (".toml", ".json")
ARROW = " > "
KEYS = ("name", "method", "settings", "steps")


@dataclass(frozen=True)
class Chain:
    """What `fit` takes, `auto` searches and a model records.

    Args:
        method: The name of the method.
        settings: Its settings and those of its features.
        steps: The steps after it, each with its settings after a colon; None for the default steps.
        name: What people call it; its text where none is given.
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[str, ...] | None = None
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.text

    @property
    def text(self) -> str:
        """The chain in one line.

        >>> Chain("linear", {"size": 160}, ("temperature",)).text
        'linear:size=160 > temperature'
        """
        head = ":".join([self.method, *(f"{key}={value}" for key, value in self.settings.items())])
        return ARROW.join([head, *(self.steps or ())])

    def to_data(self) -> dict[str, Any]:
        """The chain as plain data."""
        steps = {} if self.steps is None else {"steps": list(self.steps)}
        return {"name": str(self), "method": self.method, "settings": dict(self.settings), **steps}

    def write(self, path: Path) -> None:
        """Writes the chain as JSON."""
        write_json(path, self.to_data())


def parse_chain(text: str) -> Chain:
    """A chain from its text.

    >>> parse_chain("linear:size=160 > temperature")
    Chain(method='linear', settings={'size': '160'}, steps=('temperature',), name='')
    """
    head, *steps = (piece.strip() for piece in text.split(ARROW.strip()))
    members = parse_members(head)
    if len(members) != 1:
        raise MisuseError(f"{text!r} is no chain: expected METHOD:KEY=VALUE > STEP, with one method.")
    method, settings = members[0]
    METHODS.about(method)  # says which name there is not
    return Chain(method, settings, tuple(steps) or None)


def read_chain(path: Path) -> Chain:
    """Reads a chain from TOML or JSON.

    Raises:
        InputError: When the file is no chain.
    """
    expected = f"a chain: {', '.join(KEYS)}"
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError as error:
        raise InputError(path, found="no such file", expected=expected) from error
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(path, found=str(error), expected=expected) from error
    unknown = sorted(set(data) - set(KEYS)) if isinstance(data, dict) else ["no table"]
    if unknown or not isinstance(data.get("method"), str):
        raise InputError(path, found=unknown[0] if unknown else "no method", expected=expected)
    settings, steps = data.get("settings", {}), data.get("steps")
    if not isinstance(settings, dict) or not (steps is None or isinstance(steps, list)):
        raise InputError(path, found="settings or steps of another kind", expected="a table and a list of names")
    return Chain(data["method"], settings, None if steps is None else tuple(map(str, steps)), str(data.get("name", "")))


def chain_of(method: Any, settings: Mapping[str, Any], steps: Sequence[str] | None) -> Chain | None:
    """The chain that is meant where `fit` is given one: an object, a file, or text with settings or steps.

    Settings and steps that were given beside it count before its own. None for the name of a method and for objects.
    """
    chain = method if isinstance(method, Chain) else None
    if isinstance(method, str) and method.endswith(SUFFIXES):
        chain = read_chain(Path(method))
    elif isinstance(method, str) and method not in METHODS and (":" in method or ARROW.strip() in method):
        chain = parse_chain(method)
    if chain is None:
        return None
    own = chain.steps if steps is None else tuple(steps)
    return Chain(chain.method, {**chain.settings, **settings}, own, chain.name)
