from __future__ import annotations

import sys

import pytest

from fieldmark.errors import MissingExtraError, MisuseError
from fieldmark.registry import Registry, require

THINGS = Registry("thing", {"decimal": ("fractions:Fraction", "a number")})


def test_a_misspelt_name_is_answered_with_the_nearest_one():
    with pytest.raises(MisuseError, match=r"no thing called 'decmal'. Did you mean decimal\?"):
        THINGS["decmal"]


def test_listing_imports_nothing(monkeypatch):
    monkeypatch.delitem(sys.modules, "fractions", raising=False)
    assert [THINGS.about(name) for name in THINGS] == ["a number"]
    assert "fractions" not in sys.modules
    assert THINGS["decimal"].__name__ == "Fraction"


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.delitem(sys.modules, "fieldmark.features.backbones", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'fieldmark\[vision\]'"):
        require("fieldmark.features.backbones", "Reading photos")
