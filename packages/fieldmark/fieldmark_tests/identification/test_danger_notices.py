"""How much is said about danger: the whole notice, or one line where it comes from groups that are improbable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

import fieldmark
from fieldmark.identification.danger_notices import DangerQuestion, danger_notice
from fieldmark.identification.label_facts import LabelFacts, TaxonOfLabel
from fieldmark.identification.packaged.imagenet_model import ImageNetHead, imagenet_model
from fieldmark.identification.packaged.photo_groups import GROUPS
from fieldmark.identification.photo_answers import DangerNotice, RankedClaim, UnknownVerdict
from fieldmark.identification.taxon_records import TaxonRecords
from fieldmark.identification.text import danger_lines
from fieldmark.methods.base import Arrays, Fitted
from fieldmark.views.parts import Part

# Label: group, poisonous as the taxa tell it.
KINDS = {
    "dog": ("other", False),
    "scorpion": ("other", True),
    "wren": ("birds", False),
    "adder": ("snakes", True),
    "grass snake": ("snakes", False),
    "death cap": ("fungi", True),
    "a mushroom": ("fungi", None),
}
FACTS = LabelFacts(
    [TaxonOfLabel(label, label, None, flag) for label, (_, flag) in KINDS.items()],
    [group for group, _ in KINDS.values()],
    np.array([flag is not False for _, flag in KINDS.values()]),
    TaxonRecords(()),
)
DOG = RankedClaim("species", "dog", 0.95, ("dog",))
KNOWN = UnknownVerdict(True)


def notice(
    shares: Mapping[str, float],
    *,
    sure_of: RankedClaim | None = DOG,
    verdict: UnknownVerdict = KNOWN,
    seen: Mapping[str, float] | None = None,
) -> DangerNotice | None:
    """The notice where the rest of the probability lies on the dog; `seen` is what the packaged network says."""
    chances = np.array([shares.get(label, 0.0) for label in KINDS])
    chances[0] = 1 - chances[1:].sum()
    groups = None if seen is None else {**dict.fromkeys(GROUPS, 0.0), **seen}
    return danger_notice(DangerQuestion(FACTS, chances, 0.0099, verdict, sure_of, groups), lambda _: ())


def test_a_cardinal_shown_to_a_model_that_knows_cobras_gets_one_line_at_most():
    seen = {"birds": 0.97, "snakes": 0.021}
    unsure = {"sure_of": None, "verdict": UnknownVerdict(False, because="It looks like nothing.")}
    told = notice({"adder": 0.2, "wren": 0.3}, seen=seen, **unsure)
    assert told.brief and not told.look_alikes and "Dangerous snakes are unlikely (2.1 %)" in told.because[0]
    assert notice({"adder": 0.2, "wren": 0.3}, seen={"birds": 0.98, "snakes": 0.019}, **unsure) is None
    assert notice({"wren": 0.99}, seen={"birds": 0.999}) is None


@pytest.mark.parametrize(("group", "advice"), [("fungi", "poison center"), ("snakes", "After a bite")])
def test_a_fungus_or_a_snake_shown_to_a_model_of_birds_gets_the_whole_notice(group, advice):
    birds = LabelFacts([TaxonOfLabel("wren", "wren", None, None)], ["birds"], np.zeros(1, np.bool_), TaxonRecords(()))
    wren = RankedClaim("species", "wren", 0.99, ("wren",))
    for chance, verdict, sure_of, brief in [
        (0.9, KNOWN, wren, False),
        (0.45, UnknownVerdict(False), None, False),
        (0.03, UnknownVerdict(False), None, True),
        (0.45, KNOWN, wren, True),  # a model that knows it is heard, unless the group is likelier than not
    ]:
        seen = {**dict.fromkeys(GROUPS, 0.0), group: chance}
        told = danger_notice(DangerQuestion(birds, np.ones(1), 0.0099, verdict, sure_of, seen), lambda _: ())
        assert told.brief is brief and told.group == group
        assert brief or ("has no names" in told.because[0] and advice in " ".join(told.advice))


def test_what_a_model_of_fungi_is_sure_of_is_a_fungus_whatever_else_is_seen():
    told = notice({"death cap": 0.9}, sure_of=RankedClaim("species", "death cap", 0.9, ("death cap",)), seen={})
    assert not told.brief and told.group == "fungi"


def test_each_look_alike_is_of_a_plausible_group():
    asked = []
    seen = {**dict.fromkeys(GROUPS, 0.0), "fungi": 0.9}
    chances = np.array([0.2, 0.2, 0.0, 0.3, 0.0, 0.3, 0.0])
    question = DangerQuestion(FACTS, chances, 0.0099, UnknownVerdict(False), None, seen)
    danger_notice(question, lambda groups: asked.append(list(groups)) or ())
    assert asked == [["fungi", "other"]]


def test_danger_from_an_improbable_group_is_told_in_one_line():
    told = notice({"adder": 0.02, "grass snake": 0.01})
    assert told.brief and told.probability == pytest.approx(0.02) and told.group == "snakes"
    line = "Dangerous snakes are unlikely (2.0 %), but not ruled out. Never touch a snake because a model named it."
    assert list(danger_lines(told)) == [line]


def test_a_mushroom_is_never_passed_over_in_silence():
    for share in (0.0102, 0.02, 0.049):
        told = notice({"death cap": share})
        assert told.brief and next(danger_lines(told)).endswith("Never eat a mushroom because a model named it.")
    assert notice({"a mushroom": 0.02}).brief  # nobody called it harmless
    assert notice({"death cap": 0.0098}) is None


def test_from_five_percent_on_the_whole_notice_is_given():
    assert notice({"death cap": 0.0499}).brief
    for shares in (
        {"death cap": 0.0501},
        {"death cap": 0.011, "a mushroom": 0.04},
        {"adder": 0.02, "grass snake": 0.03},
    ):
        told = notice(shares)
        assert not told.brief and "emergency number" in " ".join(told.advice), shares
        assert next(danger_lines(told)) == "BE CAREFUL"


def test_improbable_groups_count_together():
    told = notice({"adder": 0.015, "death cap": 0.02})
    assert told.brief and "Dangerous fungi and snakes are unlikely (3.5 % together)" in told.because[0]
    assert "Never eat" in told.because[0] and "Never touch" in told.because[0]
    assert not notice({"adder": 0.026, "death cap": 0.026}).brief


def test_a_whole_notice_always_says_why():
    unsure = {"sure_of": None}
    told = notice({"adder": 0.007, "death cap": 0.006}, **unsure)  # each below the line, above it together
    line = "The probability of all dangerous species together is 1.3 %; a warning is shown above 1.0 %."
    assert not told.brief and told.because == (line,)
    told = notice({"grass snake": 0.8}, seen={"snakes": 0.03, "birds": 0.9}, **unsure)
    assert not told.brief and told.because == ("The model takes it for one of the snakes (80 %).",)


@given(
    shares=st.lists(st.floats(0, 0.1), min_size=len(KINDS) - 1, max_size=len(KINDS) - 1),
    seen=st.none() | st.fixed_dictionaries({"fungi": st.floats(0, 0.5), "snakes": st.floats(0, 0.5)}),
    known=st.sampled_from([True, False, None]),
    sure=st.booleans(),
)
def test_no_notice_is_empty(shares, seen, known, sure):
    own = dict(zip(list(KINDS)[1:], shares, strict=True))
    told = notice(own, sure_of=DOG if sure else None, verdict=UnknownVerdict(known), seen=seen)
    assert told is None or (told.because and all(told.because))


@pytest.mark.parametrize(
    "unsure",
    [
        {"sure_of": None},
        {"sure_of": RankedClaim("kingdom", "Animalia", 0.99, ("dog", "wren"))},
        {"sure_of": RankedClaim("class", "Reptilia and more", 0.99, ("dog", "adder"))},
        {"verdict": UnknownVerdict(False, because="It looks like nothing.")},
    ],
)
def test_where_the_model_is_not_sure_of_something_else_the_whole_notice_is_given(unsure):
    assert not notice({"adder": 0.02}, **unsure).brief


def test_danger_in_the_group_of_the_specimen_keeps_the_whole_notice():
    snake = RankedClaim("species", "grass snake", 0.95, ("grass snake",))
    assert not notice({"grass snake": 0.95, "adder": 0.02}, sure_of=snake).brief
    assert not notice({"grass snake": 0.95, "adder": 0.02, "death cap": 0.02}, sure_of=snake).brief
    told = notice({"grass snake": 0.95, "death cap": 0.02}, sure_of=snake)
    assert told.brief and told.because[0].startswith("Dangerous fungi are unlikely (2.0 %)")


def test_dangerous_labels_without_a_group_are_one_by_themselves():
    assert notice({"scorpion": 0.02}).because[0].startswith("Dangerous other kinds are unlikely (2.0 %)")
    assert not notice({"scorpion": 0.02}, sure_of=RankedClaim("class", "Both", 0.95, ("dog", "scorpion"))).brief
    assert not notice({"scorpion": 0.06}).brief


@dataclass(frozen=True)
class SureOfABird(ImageNetHead):
    """Whatever it is shown, it is surely a bird, and perhaps a rattlesnake."""

    def _columns(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        return np.repeat(arrays["columns"], part.items.height, axis=0)


def test_names_that_a_person_leaves_out_do_not_change_the_notice(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "bird.png")
    model = imagenet_model()
    chances = np.full((1, len(model.labels) + 1), 1e-9)
    chances[0, [model.labels.code_of["Ardea alba"], model.labels.code_of["Crotalus"], -1]] = 0.97, 0.02, 0.01
    columns = np.log(chances).astype(np.float32)
    sure = replace(model, fitted=Fitted(SureOfABird(), {"columns": columns}), store=tmp_path)
    answer = fieldmark.identify(tmp_path / "bird.png", sure)
    for options in ({"only": ["Aves"]}, {"exclude": ["Crotalus"]}):
        assert fieldmark.identify(tmp_path / "bird.png", sure, **options).danger == answer.danger
