from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from fieldmark.errors import MisuseError
from fieldmark.settings import Settings, configure, parse_pairs, setting, setting_notes, setting_of


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


@dataclass(frozen=True)
class Vote(Settings):
    """A vote.

    Args:
        k: How many neighbors vote. An odd number never ties.
        share: The share that is spread.
        strength: How strongly; or val.
        by: Who votes.
        degrees: Where.
    """

    k: int = setting(5, least=1, also=(0,))
    share: float = setting(0.5, above=0, most=1)
    strength: str = setting("val", least=0, also=("val",))
    by: Literal["weight", "head"] = "weight"
    degrees: float | None = setting(None, least=-90, most=90)
    places: tuple[int, ...] = ()

    def check_settings(self):
        if self.by == "head" and self.k == 0:
            raise MisuseError("by=head needs neighbors: set k.")


@dataclass(frozen=True)
class OtherDefaults(Vote):
    k: int = 7
    of: float = setting_of(Vote, "share")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"k": -1}, "k=-1: expected a whole number of at least 1, or 0 (how many neighbors vote)."),
        ({"share": 0.0}, "share=0.0: expected a number above 0 and at most 1 (the share that is spread)."),
        ({"share": float("nan")}, "share=nan: expected a number above 0 and at most 1 (the share that is spread)."),
        ({"strength": "-1"}, "strength=-1: expected a number of at least 0, or val (how strongly; or val)."),
        ({"strength": "inf"}, "strength=inf: expected a number of at least 0, or val (how strongly; or val)."),
        ({"by": "haed"}, "by=haed: expected weight or head (who votes). Did you mean head?"),
        ({"degrees": 91}, "degrees=91: expected a number from -90 to 90 (where)."),
        ({"k": "3"}, "k=3: expected a whole number of at least 1, or 0 (how many neighbors vote)."),
        ({"by": "head", "k": 0}, "by=head needs neighbors: set k."),
    ],
)
@pytest.mark.parametrize("cls", [Vote, OtherDefaults])
def test_what_lies_beyond_the_limits_of_a_setting_is_refused(cls, wrong, sentence):
    with pytest.raises(MisuseError) as caught:
        cls(**wrong)
    assert str(caught.value) == sentence


def test_what_lies_within_the_limits_is_taken():
    Vote(k=0, share=1, strength="0.5", degrees=-90.0)
    assert configure({"degrees": "45.5", "strength": "2"}, Vote)[0] == Vote(degrees=45.5, strength="2")
    assert Vote(places=[1, 2]).places == (1, 2)  # as a file holds it


def test_a_text_that_is_no_number_is_refused_with_the_limits():
    with pytest.raises(MisuseError, match="found 'many', expected a whole number of at least 1, or 0"):
        configure({"k": "many"}, Vote)


def test_limits_stand_beside_the_type_of_a_setting():
    allowed = {note.name: note.allowed for note in setting_notes(OtherDefaults)}
    assert allowed["k"] == "int, at least 1, or 0"
    assert (allowed["by"], allowed["of"]) == ("weight | head", "float, above 0 and at most 1")


def test_a_step_is_named_before_its_setting():
    @dataclass(frozen=True)
    class Named(Vote):
        name = "vote"

    with pytest.raises(MisuseError, match=r"^vote:k=-1: expected"):
        Named(k=-1)
