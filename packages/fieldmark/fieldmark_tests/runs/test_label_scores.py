"""Scores of labels, dense or listed: cut, joined, ranked and kept on disk, against plain loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldmark.runs import label_scores
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.label_scores import NOTHING, LabelScores
from fieldmark.runs.predictions import read_predictions
from fieldmark.tables.labels import Labels

SEEDS = st.integers(0, 2**32 - 1)
KINDS = pytest.mark.parametrize("listed", [True, False], ids=["listed", "dense"])
LABELS = Labels(("a", "b", "c"))


def some_codes(rng: np.random.Generator, n_labels: int, *, at_least: int = 0) -> list[int]:
    """Different codes in any order, unknown perhaps among them, perhaps none."""
    codes = rng.permutation(np.arange(-1, n_labels))
    return codes[: rng.integers(at_least, n_labels + 2)].tolist()


def drawn(seed: int, *, listed: bool) -> LabelScores:
    """Predictions with many ties; strangeness, a score of unknown and decisions (sets, some empty) now and then."""
    rng = np.random.default_rng(seed)
    n, n_labels = int(rng.integers(1, 9)), int(rng.integers(1, 21))
    items, labels = (
        tuple(f"i{row}" for row in rng.permutation(n)),
        Labels(tuple(f"l{code}" for code in range(n_labels))),
    )
    precision = rng.choice([np.float32, np.float64])
    strange = rng.normal(size=n) if rng.random() < 0.5 else None
    if listed:
        lists = CodeSets.of_lists([some_codes(rng, n_labels) for _ in range(n)])
        scores = rng.integers(0, 4, len(lists.codes)).astype(precision)
        made = LabelScores.listed(items, labels, lists, scores, strange)
    else:
        scores = rng.integers(0, 4, (n, n_labels)).astype(precision)
        scores[scores == 0] = -np.inf
        unknown = rng.integers(0, 4, n).astype(precision) if rng.random() < 0.5 else None
        made = LabelScores(items, labels, scores, "score", unknown=strange, unknown_label=unknown)
    if rng.random() < 0.5:
        made = made.decided(CodeSets.of_lists([some_codes(rng, n_labels)[:4] for _ in range(n)]))
    return made


def said_of(predictions: LabelScores) -> dict[str, Any]:
    """All that predictions say, by item."""
    return {
        item: (
            list(predictions.scores_by_code(row).items()),
            None if predictions.unknown is None else predictions.unknown[row],
            None if predictions.decisions is None else predictions.decisions.of(row).tolist(),
        )
        for row, item in enumerate(predictions.items)
    }


def ranking(predictions: LabelScores, row: int) -> list[int]:
    """All answers of an item, best first: what was decided, then by score; unknown last among equals in a table."""
    score_of = predictions.scores_by_code(row)
    ranked = list(score_of)
    if predictions.dense:
        last = len(predictions.labels)
        ranked.sort(key=lambda code: (-score_of[code], code if code >= 0 else last))
    decided = [] if predictions.decisions is None else predictions.decisions.of(row).tolist()
    return decided + [code for code in ranked if code not in decided]


@KINDS
@given(seed=SEEDS)
def test_selected_items_keep_all_that_was_said_of_them(listed, seed):
    predictions = drawn(seed, listed=listed)
    rng = np.random.default_rng(seed)
    wanted = rng.permutation(predictions.items)[: rng.integers(1, len(predictions.items) + 1)].tolist()
    chosen = predictions.select(wanted)
    assert chosen.items == tuple(wanted) and chosen.scores.dtype == predictions.scores.dtype
    assert said_of(chosen) == {item: said_of(predictions)[item] for item in wanted}


@KINDS
@given(seed=SEEDS, size=st.integers(1, 9))
def test_blocks_laid_one_after_the_other_are_the_whole(listed, seed, size):
    predictions = drawn(seed, listed=listed)
    blocks = list(predictions.blocks(size))
    assert max(len(block.items) for block in blocks) <= size
    whole = LabelScores.concat(blocks)
    assert whole.items == predictions.items and said_of(whole) == said_of(predictions)
    assert (whole.top(5) == predictions.top(5)).all() and whole.scores.dtype == predictions.scores.dtype


@KINDS
@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_the_disk_changes_nothing_and_keeps_the_precision(listed, seed, tmp_path_factory):
    predictions = drawn(seed, listed=listed)
    path = tmp_path_factory.mktemp("predictions") / "p.parquet"
    predictions.write(path)
    back = read_predictions(path)
    assert back.items == predictions.items and back.labels == predictions.labels and back.scale == predictions.scale
    assert said_of(back) == said_of(predictions) and back.scores.dtype == predictions.scores.dtype


def test_doubles_come_back_from_the_disk_to_the_last_digit(tmp_path):
    scores = np.array([[0.1, 1 / 3, 0.1 + 1e-12]])
    LabelScores(("x",), LABELS, scores, "score").write(tmp_path / "dense.parquet")
    LabelScores.listed(("x",), LABELS, CodeSets.of_lists([[0, 1, 2]]), scores[0]).write(tmp_path / "listed.parquet")
    for name in ("dense", "listed"):
        back = read_predictions(tmp_path / f"{name}.parquet")
        assert back.scores_by_code(0) == {0: 0.1, 1: 1 / 3, 2: 0.1 + 1e-12}
        assert back.top(3).tolist() == [[1, 2, 0]]


def test_lists_are_never_padded_neither_in_memory_nor_on_disk(tmp_path):
    lists = CodeSets.of_lists([[2], [], [0, 1, 2, -1]])
    predictions = LabelScores.listed(("x", "y", "z"), LABELS, lists, np.array([1.0, 4.0, 3.0, 2.0, 1.0]))
    assert predictions.scores.shape == predictions.codes.shape == (5,)
    assert predictions.top(5).tolist() == [[2] + [NOTHING] * 4, [NOTHING] * 5, [0, 1, 2, -1, NOTHING]]
    predictions.write(tmp_path / "p.parquet")
    table = pq.read_table(tmp_path / "p.parquet")
    assert table["codes"].to_pylist() == [[2], [], [0, 1, 2, -1]]
    assert [len(row) for row in table["scores"].to_pylist()] == [1, 0, 4]


def test_each_list_is_brought_into_order_and_equals_stay_as_they_were_given():
    lists = CodeSets.of_lists([[2, 0, 1], [1, 2, 0]])
    predictions = LabelScores.listed(("x", "y"), LABELS, lists, np.array([1.0, 2.0, 1.0, 3.0, 3.0, 3.0]))
    assert predictions.top(3).tolist() == [[0, 2, 1], [1, 2, 0]]


def test_pairs_are_every_score_with_its_item_and_label():
    lists = CodeSets.of_lists([[2], [], [0, 1]])
    listed = LabelScores.listed(("x", "y", "z"), LABELS, lists, np.array([0.5, 0.9, 0.1]))
    assert [column.tolist() for column in listed.pairs()] == [[0, 2, 2], [2, 0, 1], [0.5, 0.9, 0.1]]
    dense = LabelScores(("x", "y"), LABELS, np.arange(6.0).reshape(2, 3), "score")
    assert [column.tolist() for column in dense.pairs()] == [[0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, [0, 1, 2, 3, 4, 5]]


@KINDS
@given(seed=SEEDS, k=st.integers(1, 25), at_once=st.sampled_from([2, label_scores.ITEMS_AT_ONCE]))
def test_the_best_answers_are_those_of_a_plain_loop(listed, seed, k, at_once):
    predictions = drawn(seed, listed=listed)
    expected = [(ranking(predictions, row) + [NOTHING] * k)[:k] for row in range(len(predictions.items))]
    with patch.object(label_scores, "ITEMS_AT_ONCE", at_once):
        assert predictions.top(k).tolist() == expected


@KINDS
@given(seed=SEEDS)
def test_the_rank_of_a_label_is_that_of_a_plain_loop(listed, seed):
    predictions = drawn(seed, listed=listed)
    n = len(predictions.items)
    rankings = [ranking(predictions, row) for row in range(n)]
    for code in range(-1, len(predictions.labels)):
        expected = [ranked.index(code) + 1 if code in ranked else 0 for ranked in rankings]
        assert predictions.rank_of(np.full(n, code, dtype=np.int32)).tolist() == expected
    each = np.random.default_rng(seed).integers(-1, len(predictions.labels), n).astype(np.int32)
    expected = [rankings[row].index(code) + 1 if code in rankings[row] else 0 for row, code in enumerate(each)]
    assert predictions.rank_of(each).tolist() == expected


def test_among_equals_unknown_ranks_behind_every_label():
    scores = np.array([[1.0, 1.0, 0.0]])
    predictions = LabelScores(("x",), LABELS, scores, "score", unknown_label=np.array([1.0]))
    assert predictions.top(4).tolist() == [[0, 1, -1, 2]]
    assert predictions.rank_of(np.array([-1], dtype=np.int32)).tolist() == [3]
    assert predictions.rank_of(np.array([2], dtype=np.int32)).tolist() == [4]


def test_a_set_that_was_decided_for_comes_first_and_the_others_follow_by_their_scores():
    scores = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    decided = LabelScores(("x", "y", "z"), LABELS, scores, "score").decided(CodeSets.of_lists([[2, 1], [-1], []]))
    assert decided.top(4).tolist() == [[2, 1, 0, NOTHING], [-1, 0, 1, 2], [0, 1, 2, NOTHING]]
    assert decided.top(1)[:, 0].tolist() == [2, -1, 0]
    assert decided.rank_of(np.array([0, 0, 0], dtype=np.int32)).tolist() == [3, 2, 1]
    assert (decided.scores == scores).all()


def test_other_scores_keep_the_precision_and_the_strangeness_and_drop_the_decision():
    for precision in (np.float32, np.float64):
        scores = np.eye(3, dtype=precision)
        before = LabelScores(tuple("xyz"), LABELS, scores, "logit", unknown=np.arange(3.0)).decided(np.zeros(3, int))
        after = before.with_scores(np.ones((3, 3), dtype=np.float64), "score")
        assert after.scores.dtype == precision and after.scale == "score" and after.decisions is None
        assert after.unknown is before.unknown


def test_probabilities_have_a_last_column_for_unknown_where_it_competes_and_sum_to_one():
    scores, unknown = np.zeros((2, 3)), np.array([0.0, np.log(3)])
    predictions = LabelScores(("x", "y"), LABELS, scores, "logit", unknown_label=unknown)
    assert predictions.probabilities() == pytest.approx(np.array([[1 / 4] * 4, [1 / 6] * 3 + [1 / 2]]))
    assert predictions.chances() == pytest.approx(predictions.probabilities()[:, :3])
    assert replace(predictions, unknown_label=None).probabilities() == pytest.approx(np.full((2, 3), 1 / 3))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LabelScores(("x",), Labels(("a", "-1")), np.zeros((1, 2)), "score"), "unknown is the code -1"),
        (lambda: LabelScores(("x",), LABELS, np.zeros((1, 2)), "score"), r"shape \(1, 2\), expected \(1, 3\)"),
        (lambda: LabelScores(("x",), LABELS, np.zeros(1), "score", np.zeros(1, dtype=np.int32)), "codes and offsets"),
        (
            lambda: LabelScores.listed(("x", "y"), LABELS, CodeSets.of_lists([[1]]), np.zeros(1)),
            "where the list of each item begins",
        ),
        (
            lambda: replace(
                LabelScores.listed(("x",), LABELS, CodeSets.of_lists([[1]]), np.zeros(1)), unknown_label=np.zeros(1)
            ),
            "a list names unknown itself",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@given(seed=SEEDS)
def test_sets_of_codes_are_cut_and_joined_like_lists(seed):
    rng = np.random.default_rng(seed)
    lists = [some_codes(rng, 4) for _ in range(rng.integers(1, 8))]
    sets = CodeSets.of_lists(lists)
    assert [sets.of(row).tolist() for row in range(len(sets))] == lists
    rows = rng.integers(0, len(lists), rng.integers(0, 12))
    assert [sets.take(rows).of(place).tolist() for place in range(len(rows))] == [lists[row] for row in rows]
    twice = CodeSets.concat([sets, sets.take(rows)])
    assert [twice.of(row).tolist() for row in range(len(twice))] == lists + [lists[row] for row in rows]
    assert sets.first(NOTHING).tolist() == [codes[0] if codes else NOTHING for codes in lists]


def test_offsets_that_do_not_hold_the_codes_are_refused():
    for offsets in ([0, 2], [1, 3], [0, 4, 3]):
        with pytest.raises(ValueError, match="offsets must rise from 0"):
            CodeSets(np.zeros(3, dtype=np.int32), np.array(offsets))
