"""Species with field photos against species with sheets alone, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fieldmark
from fieldmark.reports.charts.maps import MapPoints, species_per_cell
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.sections import domains, nearest


@pytest.fixture(scope="module")
def context(plant_world, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    for method, settings in (("align", {"bias": 0.1}), ("centroid", {})):
        features = {"weights": "random", "size": 32}
        fieldmark.fit("plantclef-2020", plant_world, method=method, settings={**settings, **features}, out=out / method)
    return load_context([out / "align", out / "centroid"])


def test_each_run_has_a_row_for_species_with_and_without_field_photos(context):
    assert domains.SECTION.applies(context) and domains.asked_of(context) == "photo"
    taught = domains.photographed(context, "photo")
    groups = {(one.run, one.title): one for one in domains.gap(context, taught)}
    assert len(groups) == 4
    first = context.first.title
    inside = ~taught[context.truth]
    ranks = domains.ranks_of(context, context.first)
    assert groups[first, "sheets alone"].reciprocal.value == pytest.approx((1 / ranks[inside]).mean())
    both = [groups[first, title] for title in ("with field photos", "sheets alone")]
    share = np.average([one.reciprocal.value for one in both], weights=[one.reciprocal.items for one in both])
    assert share == pytest.approx(context.first.scorecard.metrics["mrr"].value, abs=1e-6)
    assert {"mrr", "mrr_rare"} <= set(context.first.scorecard.metrics)
    page = domains.SECTION.render(context)
    assert "sheets alone" in page and "herbarium alone" in page
    assert "Map of the number of species" in page


def test_species_are_counted_once_for_each_cell():
    places = MapPoints(np.array([0.0, 0.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0]))
    cells, _ = species_per_cell(places, np.array([3, 3, 5, 3]))
    assert sorted(cells[cells > 0].tolist()) == [1, 2]


def test_answers_stand_beside_the_sheets_that_lie_nearest(context):
    assert nearest.SECTION.applies(context)
    shown = nearest.compared(context)
    assert shown and {one.right for one in shown} <= {True, False}
    items = context.opened.items["train"]
    about = {row["item_id"]: row for row in items.iter_rows(named=True)}
    for one in shown:
        assert one.true is not None and about[one.true.item]["label"] == one.truth
        assert about[one.true.item]["domain"] != "photo"
        assert (one.answered is None) == one.right or about[one.answered.item]["label"] == one.answer
    page = nearest.SECTION.render(context)
    assert page.count("<tr>") == len(shown) + 1 and "Nearest sheet of the answer" in page
