"""Scores by how many records the observer has in training, counted item by item."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.sections import collectors
from fieldmark_tests.reports.by_hand import FUNGI, MakeRelease, MakeRun, noisy

PEOPLE = ("Ada", "Bo", "Cy", "")


def with_observers(root: Path, observer_of) -> Path:
    path = root / "observations.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "observer"])
        writer.writeheader()
        writer.writerows(row | {"observer": observer_of(row)} for row in rows)
    return root


def by_part(row: dict[str, str]) -> str:
    """Ada has most of train, Bo one record of it; Cy and the nameless are new in test."""
    if row["file"].startswith("test/"):
        return PEOPLE[int(row["observation"].rpartition("-")[2]) % 4]
    return "Bo" if row["observation"] == "Amanita muscaria-train-0" else "Ada"


@pytest.fixture
def context(make_release: MakeRelease, make_run: MakeRun):
    return load_context([make_run(with_observers(make_release(FUNGI), by_part), noisy)])


def test_items_are_counted_by_the_training_records_of_their_observer(context):
    assert collectors.SECTION.applies(context)
    found = {one.title: one for one in collectors.bins(context)}
    people = context.items["observer"].to_list()
    records = context.opened.items["train"].filter(context.opened.items["train"]["observer"] == "Ada")
    assert 10 <= records["observation_id"].n_unique() < 100  # observations, not photos
    for title, person in (("0", "Cy"), ("1", "Bo"), ("10–99", "Ada")):  # noqa: RUF001
        inside = np.array([name == person for name in people])
        assert found[title].observers == 1 and found[title].right.items == inside.sum()
        assert found[title].right.value == pytest.approx(context.correct[inside].mean())
        assert found[title].right.units == len(np.unique(context.unit[inside]))
    assert set(found) == {"0", "1", "10–99"}  # noqa: RUF001


def test_what_the_same_species_score_on_the_whole_stands_beside_it(context):
    first = collectors.bins(context)[0]
    inside = np.array([name == "Cy" for name in context.items["observer"].to_list()])
    recall = [context.correct[context.truth == code].mean() for code in context.truth[inside]]
    assert first.same_species == pytest.approx(np.mean(recall))
    page = collectors.SECTION.render(context)
    assert "Same species, all observers" in page and "without an observer left out" in page


def test_there_is_no_section_where_observers_are_not_told(make_release, make_run):
    root = make_release(FUNGI)
    assert not collectors.SECTION.applies(load_context([make_run(root, noisy)]))
    few = with_observers(make_release(FUNGI, name="few"), lambda row: "Ada" if row["file"].endswith("0.jpg") else "")
    assert not collectors.SECTION.applies(load_context([make_run(few, noisy, name="other")]))
