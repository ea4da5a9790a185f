"""Media: what a declaration promises, and that generic code asks it alone."""

from __future__ import annotations

import pickle
from itertools import combinations

import pytest

from fieldmark.features.settings import EMBEDDERS, FeatureSettings
from fieldmark.methods import METHODS
from fieldmark.registry import imported
from fieldmark.tables.inputs import MEDIA_INPUTS
from fieldmark.tables.media import EVERY_SUFFIX, MEDIA, PHOTO, RECORDING, medium_of


@pytest.mark.parametrize("medium", MEDIA.values(), ids=str)
def test_what_a_medium_names_is_there(medium):
    for place in (medium.network, medium.features, medium.answer, medium.answer_block, medium.thumbnail):
        assert callable(imported(place)), place
    assert (
        FeatureSettings(backbone=medium.extractor).medium == FeatureSettings(backbone=medium.likeness).medium == medium
    )
    assert MEDIA_INPUTS[medium.name].medium == medium.name and medium.plural == f"{medium}s"
    assert pickle.loads(pickle.dumps(medium)) == medium


def test_no_ending_belongs_to_two_media_and_any_other_to_none():
    for one, other in combinations(MEDIA.values(), 2):
        assert not set(one.suffixes) & set(other.suffixes) and one.form != other.form
    assert {medium_of(f"a{suffix.upper()}") for suffix in EVERY_SUFFIX} == {PHOTO, RECORDING}
    assert medium_of("notes.txt") is None and medium_of(".jpg") is None


def test_what_to_take_for_recordings_names_every_embedder_and_the_method_that_trains_one():
    assert all(name in RECORDING.networks for name in EMBEDDERS) and "cnn" in METHODS and "cnn" in RECORDING.networks
