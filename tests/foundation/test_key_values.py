from __future__ import annotations

from dataclasses import dataclass

import pytest

from fieldmark.errors import MisuseError
from fieldmark.foundation.key_values import configure, parse_pairs


@dataclass(frozen=True)
class Method:
    k: int = 5
    fast: bool = False


@dataclass(frozen=True)
class Features:
    size: int = 0


@dataclass(frozen=True)
class Downloaded:
    checkpoint: str
    scale: float = 1.0


def test_values_take_the_type_of_the_field_they_set():
    method, features = configure({"k": "7", "fast": "yes", "size": "160"}, Method, Features)
    assert (method, features) == (Method(7, True), Features(160))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kk": "7"}, "Did you mean k"),
        ({"k": "seven"}, "found 'seven', expected a whole number"),
        ({"fast": "7"}, "expected true or false"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_would_be_right(settings, message):
    with pytest.raises(MisuseError, match=message):
        configure(settings, Method)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_number_that_is_none_cannot_be_set(value):
    with pytest.raises(MisuseError, match=f"--set scale={value}: found '{value}', expected a finite number"):
        configure({"checkpoint": "x", "scale": value}, Downloaded)


def test_a_setting_that_must_be_given_is_named():
    with pytest.raises(MisuseError, match="is missing: --set checkpoint=VALUE"):
        configure({"scale": "2"}, Downloaded)


def test_a_pair_without_an_equals_sign_is_refused():
    with pytest.raises(MisuseError, match="key=value"):
        parse_pairs(["size"])
