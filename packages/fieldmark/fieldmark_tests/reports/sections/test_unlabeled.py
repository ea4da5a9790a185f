"""Few labels on a page: phyla taken for each other, and what became of unlabeled photos, counted item by item."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl

from fieldmark.reports.sections.unlabeled import accuracy_by_labels, phylum_confusion, species_counts
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy

LABELS = Labels(("0", "1", "2"))
TAXA = pl.DataFrame(
    {
        "label": LABELS.names,
        "kingdom": ["Plantae", "Animalia", "Animalia"],
        "phylum": ["Bryophyta", "Mollusca", "Chordata"],
    }
)


def context(**more):
    items = {
        "train": pl.DataFrame({"label": ["0", "0", "1"]}),
        "unlabeled": pl.DataFrame({"label": [None] * 5, "hidden_label": ["0", "7", "7", "8", "2"]},
                                  schema={"label": pl.String, "hidden_label": pl.String}),
    }  # fmt: skip
    opened = SimpleNamespace(items=items, hidden=np.array([0, -1, -1, -1, 2]))
    return SimpleNamespace(opened=opened, labels=LABELS, taxonomy=Taxonomy.of(LABELS, TAXA), folder=Path("x"), **more)


def test_shares_of_phyla_are_of_the_photos_of_each_true_one():
    found = phylum_confusion(context(truth=np.array([0, 0, 0, 1, 2]), predicted=np.array([0, 0, 1, 2, 2])))
    assert found.names == ("Chordata (A)", "Mollusca (A)", "Bryophyta (P)") and found.items == (1, 1, 3)
    assert np.allclose(found.shares, [[1, 0, 0], [1, 0, 0], [0, 1 / 3, 2 / 3]])


def test_species_are_counted_with_and_without_labels_and_out_of_class():
    counts = species_counts(context())
    assert counts.labeled.tolist() == [2, 1] and counts.inside.tolist() == [1, 1] and counts.outside.tolist() == [2, 1]


def test_accuracy_is_counted_by_labels_of_the_species_for_every_run():
    items = pl.DataFrame({"item_id": ["a", "b", "c", "d", "e"]})
    cards = [
        SimpleNamespace(unit_ids=["e", "d", "c", "b", "a"], pseudo={"top_1": np.array([1.0, 0, 0, 1, 1])}),
        SimpleNamespace(unit_ids=["a", "b", "c", "d", "e"], pseudo={"top_1": np.array([0.0, 0, 0, 0, 1])}),
        SimpleNamespace(unit_ids=["x"], pseudo={"top_1": np.array([1.0])}),  # of something else
    ]
    runs = tuple(SimpleNamespace(title=str(number), scorecard=card) for number, card in enumerate(cards))
    own = {"truth": np.array([0, 0, 0, 1, 2]), "unit": np.arange(5), "items": items, "runs": runs}
    found = accuracy_by_labels(context(train_counts=np.array([8, 2, 2]), **own))
    assert found.bins == ((2, 2), (8, 8)) and found.classes == (2, 1) and found.titles == ("2", "8")
    shares = {curve.title: [round(one.value, 3) for one in curve.shares] for curve in found.curves}
    assert shares == {"0": [0.5, 0.667], "1": [0.5, 0.0]}
    assert accuracy_by_labels(context(train_counts=np.array([5, 5, 5]), **own)) is None
