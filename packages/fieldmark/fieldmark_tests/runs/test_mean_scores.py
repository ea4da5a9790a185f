from __future__ import annotations

import numpy as np
import pytest

from fieldmark.errors import MisuseError
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.mean_scores import mean_predictions
from fieldmark.tables.labels import Labels

LABELS = Labels(("a", "b", "c"))
ITEMS = ("1", "2")


def of(probabilities, scale="log_probability", items=ITEMS) -> LabelScores:
    scores = np.array(probabilities, dtype=np.float64)
    return LabelScores(items, LABELS, np.log(scores) if scale == "log_probability" else scores, scale)


ONE = of([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
OTHER = of([[0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])


def test_a_mean_of_probabilities_is_weighted_and_says_so_in_logs():
    mean = mean_predictions([ONE, OTHER], (3, 1), mean="probabilities", several=False)
    assert mean.scale == "log_probability"
    np.testing.assert_allclose(np.exp(mean.scores[0]), [0.55, 0.3, 0.15])


def test_a_mean_of_logits_is_the_geometric_mean_renormalized_whatever_constant_a_member_adds():
    shifted = LabelScores(ITEMS, LABELS, OTHER.scores + 5.0, "logit")
    mean = mean_predictions([ONE, shifted], (1, 1), mean="logits", several=False)
    expected = np.sqrt(np.exp(ONE.scores) * np.exp(OTHER.scores))
    np.testing.assert_allclose(np.exp(mean.scores), expected / expected.sum(axis=1, keepdims=True))


def test_a_mean_of_ranks_takes_scores_of_any_scale():
    loud = of([[100.0, -3.0, 50.0], [0.0, 0.0, 9.0]], "score")
    mean = mean_predictions([ONE, loud], (1, 1), mean="ranks", several=False)
    assert mean.scale == "score"
    np.testing.assert_allclose(mean.scores[0], [1.0, 0.5, 0.5])  # ranks 1 and 1; 2 and 3; 3 and 2
    assert mean.scores[1, 0] == mean.scores[1, 1]  # equals stay equal
    with pytest.raises(MisuseError, match="mean of ranks"):
        mean_predictions([ONE, loud], (1, 1), mean="probabilities", several=False)


def test_where_several_labels_hold_chances_are_averaged_label_by_label():
    one, other = of([[0.9, 0.8, 0.1], [0.2, 0.2, 0.2]], "score"), of([[0.5, 0.0, 0.3], [0.4, 0.2, 0.0]], "score")
    mean = mean_predictions([one, other], (1, 1), mean="probabilities", several=True)
    np.testing.assert_allclose(mean.scores, [[0.7, 0.4, 0.2], [0.3, 0.2, 0.1]])
    odds = mean_predictions([one, one], (1, 3), mean="logits", several=True)
    np.testing.assert_allclose(odds.scores, one.scores, rtol=1e-9)


def test_items_and_labels_in_another_order_are_put_in_order_and_others_are_refused():
    turned = OTHER.select(("2", "1")).coded_by(Labels(("c", "a", "b")))
    mean = mean_predictions([ONE, turned], (1, 1), mean="probabilities", several=False)
    np.testing.assert_allclose(
        mean.scores, mean_predictions([ONE, OTHER], (1, 1), mean="probabilities", several=False).scores
    )
    with pytest.raises(MisuseError, match="other items: only one answers '2'"):
        mean_predictions([ONE, of([[1, 1, 1], [1, 1, 1]], "score", ("1", "3"))], (1, 1), mean="ranks", several=False)


def test_lists_give_nothing_to_what_they_do_not_name_and_unknown_competes_where_one_member_names_it():
    lists = CodeSets(np.array([1, -1, 2], dtype=np.int32), np.array([0, 2, 3]))
    listed = LabelScores.listed(ITEMS, LABELS, lists, np.array([0.6, 0.4, 1.0]))
    mean = mean_predictions([ONE, listed], (1, 1), mean="probabilities", several=False)
    assert mean.dense and mean.unknown_label is not None
    np.testing.assert_allclose(np.exp(mean.columns[0]), [0.35, 0.4, 0.05, 0.2])
    # For logits, what a list does not name counts as its last entry, so that one short list forbids nothing.
    logits = mean_predictions([ONE, listed], (1, 1), mean="logits", several=False)
    assert np.exp(logits.columns[1]).min() > 0.01


def test_of_many_labels_the_best_are_listed():
    labels = Labels(tuple(f"{number:04d}" for number in range(1200)))
    rng = np.random.default_rng(0)
    members = [LabelScores(ITEMS, labels, rng.normal(size=(2, 1200)).astype(np.float32), "logit") for _ in range(2)]
    mean = mean_predictions(members, (1, 1), mean="probabilities", several=False)
    both = np.mean([one.probabilities() for one in members], axis=0)
    assert not mean.dense and (mean.top(5) == np.argsort(-both, axis=1)[:, :5]).all()
    np.testing.assert_allclose(np.exp(mean.scores[:1000]), np.sort(both[0])[::-1][:1000], rtol=1e-5)


@pytest.mark.parametrize("weights", [(1,), (1, -1), (0, 0)])
def test_weights_that_cannot_be_are_refused(weights):
    with pytest.raises(MisuseError, match="as many weights"):
        mean_predictions([ONE, OTHER], weights, mean="ranks", several=False)
