"""Folds of a view: what belongs together stays together."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fieldmark.errors import InputError, MisuseError
from fieldmark.questions.targets import LabelTargets
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import PHOTO
from fieldmark.tables.schema import ITEMS
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View, loose_media

LABELS = Labels(("a", "b", "c"))


def make_view(folder, contents: list[int], units: list[int], sites: list[int], codes: list[int]) -> View:
    """A view whose photos have the given contents: equal numbers are equal bytes."""
    paths = [folder / f"{row}.jpg" for row in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(f"photo {content:02}".encode())
    items = pl.DataFrame(
        {
            "item_id": [str(path) for path in paths],
            "observation_id": [f"o{unit}" for unit in units],
            "media_ids": [[str(path)] for path in paths],
            "site": [f"s{site}" for site in sites],
            "lat": [50.0 + site for site in sites],
            "lon": [14.0] * len(sites),
        }
    )
    part = Part(ITEMS.check(items, "items"), LabelTargets(np.array(codes, dtype=np.int32)), loose_media(PHOTO, paths))
    taxa = pl.DataFrame({"label": list(LABELS.names)})
    return View(LABELS, Taxonomy.of(LABELS, taxa), part, None, None, None)


numbers = st.lists(st.tuples(*(st.integers(0, most) for most in (15, 12, 8, 2))), min_size=12, max_size=30)


@given(numbers, st.integers(0, 3), st.sampled_from(["unit", "site", "block:5000", "cells:100000"]))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_folds_never_share_a_unit_a_site_or_an_identical_photo(tmp_path, rows, seed, by):
    view = make_view(tmp_path, *(list(column) for column in zip(*rows, strict=True)))
    try:
        folds = list(view.folds(by, 3, seed))
    except MisuseError as error:
        assert "must not be parted" in str(error)
        return
    assert sorted(item for fold in folds for item in fold.held_out.item_ids) == sorted(view.train.item_ids)
    for fold in folds:
        learned, held_out = fold.view.train, fold.held_out
        assert not set(learned.item_ids) & set(held_out.item_ids)
        assert not set(learned.items["observation_id"]) & set(held_out.items["observation_id"])
        if by != "unit":
            assert not set(learned.items["site"]) & set(held_out.items["site"])
        shown = {learned.media.read(item) for item in learned.item_ids}
        assert not shown & {held_out.media.read(item) for item in held_out.item_ids}


def test_folds_by_class_leave_whole_classes_out(tmp_path):
    view = make_view(tmp_path, list(range(30)), list(range(30)), [0] * 30, [row % 3 for row in range(30)])
    for fold in view.folds("class", 3):
        assert len(set(fold.held_out.truth)) == 1 and not set(fold.held_out.truth) & set(fold.view.train.truth)


def test_a_site_that_methods_do_not_see_can_hold_folds_together(tmp_path):
    view = make_view(tmp_path, list(range(20)), list(range(20)), [row % 5 for row in range(20)], [0] * 20)
    hidden = view.train.items.drop("site")
    seen = View(LABELS, view.taxonomy, Part(hidden, view.train.targets, view.train.media), None, None, None)
    with pytest.raises(InputError, match="expected a column 'site'"):
        next(seen.folds("site"))
    again = [fold.held_out.item_ids for fold in seen.folds("site", table=view.train.items)]
    assert again == [fold.held_out.item_ids for fold in view.folds("site")]
    assert "site" not in next(seen.folds("site", table=view.train.items)).held_out.items.columns


def test_days_without_a_date_are_refused_in_place_of_a_silent_draw_by_unit(tmp_path):
    view = make_view(tmp_path, list(range(12)), list(range(12)), [0] * 12, [0] * 12)
    with pytest.raises(InputError, match="no row with a day"):
        next(view.folds("day"))
