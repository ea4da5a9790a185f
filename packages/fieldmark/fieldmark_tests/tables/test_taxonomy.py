from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy

TAXA = pl.DataFrame({"label": ["a1", "a2", "b1", "x"], "genus": ["A", "A", "B", None], "family": ["F", "F", "F", None]})


@pytest.fixture
def taxonomy() -> Taxonomy:
    return Taxonomy.of(Labels(("b1", "a2", "a1", "x")), TAXA)


def test_probabilities_roll_up_by_summing_over_the_labels_of_each_taxon(taxonomy):
    genera, scores = taxonomy.roll_up(np.array([[0.1, 0.2, 0.3, 0.4]]), "genus")
    assert genera.names == ("A", "B")
    assert scores == pytest.approx(np.array([[0.5, 0.1]]))


def test_log_probabilities_roll_up_to_the_log_of_the_summed_probabilities(taxonomy):
    probabilities = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    _, summed = taxonomy.roll_up(probabilities, "family")
    _, logs = taxonomy.roll_up(np.log(probabilities), "family", by="logsumexp")
    assert np.exp(logs) == pytest.approx(summed)


def test_impossible_labels_stay_impossible_in_log_space(taxonomy):
    _, logs = taxonomy.roll_up(np.full((1, 4), -np.inf), "genus", by="logsumexp")
    assert (logs == -np.inf).all()


def test_other_scores_roll_up_to_the_best_label_of_each_taxon(taxonomy):
    _, scores = taxonomy.roll_up(np.array([[1.0, 5.0, 3.0, 9.0]]), "genus", by="max")
    assert scores.tolist() == [[5.0, 1.0]]


def test_a_label_without_a_row_belongs_to_no_taxon(taxonomy):
    assert taxonomy.taxon(3, "genus") is None and taxonomy.taxon(0, "genus") == "B"
    assert taxonomy.taxon(0, "order") is None
