"""Settings given as `key=value`, turned into the typed fields of whatever they configure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_origin, get_type_hints

from fieldmark.errors import MisuseError, did_you_mean

_EXPECTED = {int: "a whole number", float: "a finite number", bool: "true or false"}
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


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
    fields: list[dict[str, Any]] = [
        {field.name: get_type_hints(cls)[field.name] for field in dataclasses.fields(cls)} for cls in classes
    ]
    keys = sorted({name for owner in fields for name in owner})
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
        cls(**{key: _convert(key, value, owner[key]) for key, value in values.items() if key in owner})
        for cls, owner in zip(classes, fields, strict=True)
    ]


def _convert(key: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, str):
        return value
    if get_origin(kind) is Literal:
        return value  # the class itself knows which ones it takes
    try:
        converted = _TRUTH[value.lower()] if kind is bool else kind(value)
        if isinstance(converted, float) and not math.isfinite(converted):
            raise ValueError("neither nan nor infinity can be set")
        return converted
    except (KeyError, ValueError) as error:
        expected = _EXPECTED.get(kind, kind.__name__)
        raise MisuseError(f"--set {key}={value}: found {value!r}, expected {expected}.") from error
