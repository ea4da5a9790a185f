"""The kinds of items and answers that are there: what they lay out, read, write and refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Benchmark
from fieldmark.datasets import Dataset
from fieldmark.errors import InputError
from fieldmark.labels import Labels
from fieldmark.opening import open_benchmark
from fieldmark.questions.any_labels import AnyLabels
from fieldmark.questions.one_label import OneLabel
from fieldmark.questions.photos import Photos
from fieldmark.questions.places import Places
from fieldmark.questions.presence import Presence
from fieldmark.questions.segments import Segments
from fieldmark.questions.targets import PairTargets
from fieldmark.release import Release
from fieldmark.runs.label_scores import LabelScores
from fieldmark.splits import Official
from fieldmark.tables import MEDIA
from fieldmark.verbs.score_run import write_truth

LABELS = Labels(("a", "b", "c"))


@pytest.fixture
def survey(tmp_path: Path) -> Dataset:
    """A release of places without a single photo: what was looked for, and what was found."""
    rows = [
        ("p1", "a", ["train"], ["a", "b"]),
        ("p2", "b", ["train"], ["a", "b", "c"]),
        ("p3", "a", ["val"], ["a", "b"]),
        ("p4", "c", ["test"], ["c"]),
        ("p5", "b", ["test"], ["a", "b", "c"]),
    ]
    observations = pl.DataFrame(rows, schema=["observation_id", "label", "parts", "asked"], orient="row").with_columns(
        date=pl.lit(None, pl.Date), lat=pl.lit(46.0), lon=pl.lit(7.0), genus=pl.col("label").replace("b", "a")
    )
    taxa = pl.DataFrame(
        {"label": list(LABELS.names), "poisonous": [None] * 3}, schema_overrides={"poisonous": pl.Boolean}
    )
    return Dataset("survey", Release(tmp_path), taxa, observations, MEDIA.empty())


def benchmark(items: object, answer: object) -> Benchmark:
    task = replace(BENCHMARKS["geolifeclef-2020"].task, items=items, answer=answer, unit="observation_id")  # type: ignore[arg-type]
    return Benchmark("survey", "1", "survey", Official(train="train", val="val", test="test"), task)


def test_a_release_of_places_needs_no_media(survey):
    opened = open_benchmark(benchmark(Places(), OneLabel()), survey)
    assert opened.view.train.item_ids == ("p1", "p2")
    assert opened.view.train.truth is not None and opened.view.train.truth.tolist() == [0, 1]
    assert set(opened.view.train.items.columns) >= {"lat", "lon"}
    assert opened.truth["test"].rows.rows() == [("p4", "c"), ("p5", "b")]


def test_another_column_may_hold_the_label(survey):
    opened = open_benchmark(benchmark(Places(), OneLabel(column="genus")), survey)
    assert opened.view.labels.names == ("a", "c")
    assert opened.truth["test"].rows.rows() == [("p4", "c"), ("p5", "a")]


def test_a_missing_pair_is_an_absence_only_where_somebody_looked(survey):
    opened = open_benchmark(benchmark(Places(), Presence()), survey)
    targets, asked = opened.view.train.targets, opened.truth["test"].asked
    assert isinstance(targets, PairTargets)
    assert targets.looked_for().tolist() == [[True, True, False], [True, True, True]]
    assert targets.holds(3).tolist() == [[True, False, False], [False, True, False]]
    assert asked is not None and asked.rows() == [("p4", "c"), ("p5", "a"), ("p5", "b"), ("p5", "c")]
    later = opened.truth["test"].take(np.array([False, True]))
    assert later.asked is not None and set(later.asked["item_id"]) == {"p5"}


def test_a_table_of_presence_names_every_pair_that_was_asked_about():
    table = {
        "id": ["p", "p", "q"],
        "label": ["a", "b", "a"],
        "present": ["true", "false", "false"],
        "unit": ["1", "1", "2"],
    }
    truth, labels, *_ = Presence().given(Places(), table, None, None, ())
    assert (truth.items, truth.units, labels.names) == (("p", "q"), ("1", "2"), ("a", "b"))
    assert truth.rows.rows() == [("p", "a")]
    assert truth.asked is not None and truth.asked.rows() == [("p", "a"), ("p", "b"), ("q", "a")]
    scores = np.arange(6, dtype=np.float64).reshape(2, 3) / 6
    found = Presence().evaluate(LabelScores(("q", "p"), LABELS, scores, "score"), truth, LABELS, pl.DataFrame(), 1)
    assert found.asked is not None
    assert [pair.tolist() for pair in found.asked] == [[0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"id": ["p"], "label": ["a"]}, "expected a column 'present'"),
        ({"id": ["p"], "label": ["a"], "present": [None]}, "line 2: found no present"),
        ({"id": ["p", "q"], "label": ["a", None], "present": ["true", "true"]}, "line 3: found no label"),
        ({"id": ["p", "p"], "label": ["a", "a"], "present": ["true", "false"]}, "line 3: found a pair of id and label"),
    ],
)
def test_a_table_of_presence_is_refused_with_its_line(table, sentence):
    with pytest.raises(InputError, match=sentence):
        Presence().given(Places(), table, None, None, ())


def test_items_of_any_labels_may_have_none_or_several():
    table = {"id": ["p", "p", "q"], "label": ["a", "b", None]}
    truth, labels, *_ = AnyLabels().given(Photos(), table, None, None, ())
    assert (truth.items, truth.rows.rows(), labels.names) == (("p", "q"), [("p", "a"), ("p", "b")], ("a", "b"))


def test_items_with_one_label_are_named_once_and_have_one():
    for table, sentence in (
        ({"id": ["p", "q"], "label": ["a", None]}, "line 3: found no label"),
        ({"id": ["p", "p"], "label": ["a", "b"]}, "line 3: found the id 'p' again"),
    ):
        with pytest.raises(InputError, match=sentence):
            OneLabel().given(Photos(), table, None, None, ())


def test_loose_recordings_become_segments_that_reach_their_end(tmp_path):
    table = Segments(5).loose([tmp_path / "dawn.wav"], {"seconds": {str(tmp_path / "dawn.wav"): 11.0}})
    assert table["start_s"].to_list() == [0, 5, 10] and table["end_s"].to_list() == [5, 10, 15]
    assert table["item_id"][2] == f"{tmp_path}/dawn.wav/10"


def test_coarse_labels_come_with_items_that_have_no_other(survey):
    declared = benchmark(Places(), OneLabel())
    declared = replace(
        declared,
        task=replace(declared.task, coarse=("genus",)),
        split=Official(train="train", val="val", unlabeled="test"),
    )
    unlabeled = open_benchmark(declared, survey).view.unlabeled
    assert unlabeled is not None and unlabeled.targets is not None
    assert unlabeled.targets.codes.tolist() == [-1, -1]
    assert unlabeled.targets.coarse["genus"].tolist() == [1, 0]
    assert unlabeled.take([1]).targets.coarse["genus"].tolist() == [0]  # type: ignore[union-attr]


def test_the_truth_of_masks_is_written_as_masks_and_scores_one_against_itself(fungi_world, tmp_path):
    name = "fungitastic-mini/segmentation"
    assert write_truth(name, fungi_world, tmp_path / "truth") > 0
    path = tmp_path / "truth" / "truth.parquet"
    assert set(pl.read_parquet_schema(path)) == {"file_name", "label", "width", "height", "rle"}
    card = fieldmark.score(name, path, truth=path)
    assert card.metrics["iou"].value == card.metrics["miou"].value == 1.0
    assert fieldmark.score(name, path, data=fungi_world).metrics["iou"].value == 1.0


def test_pairs_that_are_taken_twice_come_twice():
    pairs = PairTargets(
        np.array([0, 0, 2], dtype=np.int32),
        np.array([1, 0, 2], dtype=np.int32),
        np.array([True, False, True]),
        np.array([1, -1, 2], dtype=np.int32),
        3,
    )
    taken = pairs.take(np.array([2, 0, 0]))
    np.testing.assert_array_equal(taken.holds(3), pairs.holds(3)[[2, 0, 0]])
    assert taken.codes.tolist() == [2, 1, 1]
    together = PairTargets.concat([pairs, taken])
    np.testing.assert_array_equal(together.holds(3), np.vstack([pairs.holds(3), taken.holds(3)]))
