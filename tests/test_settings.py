from __future__ import annotations

from dataclasses import dataclass

import pytest

from fieldmark.errors import MisuseError
from fieldmark.settings import configure, parse_pairs


@dataclass(frozen=True)
class Method:
    k: int = 5
    fast: bool = False


@dataclass(frozen=True)
class Features:
    size: int = 0


def test_values_take_the_type_of_the_field_they_set():
    method, features = configure({"k": "7", "fast": "yes", "size": "160"}, Method, Features)
    assert (method, features) == (Method(7, True), Features(160))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kk": "7"}, "Did you mean k"),
        ({"k": "seven"}, "found 'seven', expected int"),
        ({"fast": "7"}, "expected bool"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_would_be_right(settings, message):
    with pytest.raises(MisuseError, match=message):
        configure(settings, Method)


def test_a_pair_without_an_equals_sign_is_refused():
    with pytest.raises(MisuseError, match="key=value"):
        parse_pairs(["size"])
