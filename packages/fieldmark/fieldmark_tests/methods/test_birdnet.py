"""BirdNET as a method: its species by name and place."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

from fieldmark.features.birdnet import BirdNet
from fieldmark.methods.birdnet import BirdNetClassifier
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View
from fieldmark_tests.lessons import with_columns

LABELS = Labels(("acafly", "Blue Jay", "Corvus_corax", "yeti"))


def birdnet_part(lat: float | None = None) -> Part:
    species = [name for name, _ in BirdNet().species]
    logits = np.full((2, len(species)), -9.0, dtype=np.float32)
    for row, name in enumerate(("Empidonax virescens", "Cyanocitta cristata")):
        logits[row, species.index(name)] = 3.0
    where = {"lat": [lat] * 2, "lon": [None if lat is None else 13.4] * 2, "date": [datetime.date(2020, 6, 1)] * 2}
    types = {"lat": pl.Float64, "lon": pl.Float64, "date": pl.Date}
    items = pl.DataFrame({"item_id": ["a", "b"], **where}, schema_overrides=types)
    return Part(with_columns(items), features={"recording": logits})


@pytest.fixture
def birdnet_view() -> View:
    taxa = pl.DataFrame({"label": LABELS.names, "species": ["Empidonax virescens", None, None, "Homo nivalis"]})
    part = birdnet_part()
    return View(LABELS, Taxonomy.of(LABELS, taxa), part, None, None, None)


def test_birdnet_finds_labels_by_scientific_and_common_name_and_gives_the_others_nothing(birdnet_view):
    fitted = BirdNetClassifier().fit(birdnet_view)
    scores = fitted.predict(birdnet_part(), LABELS).scores
    assert scores.argmax(axis=1).tolist() == [0, 1] and scores[0, 0] == pytest.approx(1 / (1 + np.exp(-3)))
    assert (fitted.arrays["places"][:3] >= 0).all() and not scores[:, 3].any()


def test_birdnet_rules_out_birds_that_do_not_live_there(birdnet_view):
    berlin = birdnet_part(52.5)
    scores = BirdNetClassifier().fit(birdnet_view).predict(berlin, LABELS).scores
    assert not scores[:, :2].any() and scores[0, 2] > 0  # no flycatchers of America, but ravens
    asked_nothing = BirdNetClassifier(occurrence=0).fit(birdnet_view).predict(berlin, LABELS).scores
    assert asked_nothing[0, 0] > 0.9
