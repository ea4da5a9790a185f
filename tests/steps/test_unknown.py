from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.labels import Labels
from fieldmark.metrics.openset import f1_of_class, known_roc_auc, open_macro_f1
from fieldmark.runs.label_scores import NOTHING, LabelScores
from fieldmark.runs.predictions import read_predictions
from fieldmark.steps import step_from_data, step_to_data
from fieldmark.steps.base import fit_step
from fieldmark.steps.bias_temperature import BiasTemperature
from fieldmark.steps.group_temperature import GroupTemperature
from fieldmark.steps.max_softmax import MaxSoftmax
from fieldmark.steps.observation import ObservationMax, ObservationMean
from fieldmark.steps.temperature import Temperature
from fieldmark.steps.unknown_probability import UnknownProbability
from fieldmark.steps.unknown_threshold import UnknownThreshold, decision_metric
from tests.lessons import learned, lesson

LABELS, ITEMS = Labels(("a", "b", "c")), pl.DataFrame()
TAXA = pl.DataFrame({"label": list(LABELS.names), "poisonous": [True, False, False]})


def drawn(n: int = 400, share: float = 0.3, seed: int = 0) -> tuple[LabelScores, np.ndarray]:
    """Items of which a share is unknown, with a score of strangeness that tells something."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < share, -1, rng.integers(0, 3, n)).astype(np.int32)
    logits = rng.normal(0, 1, (n, 3)).astype(np.float32)
    logits[np.arange(n)[truth >= 0], truth[truth >= 0]] += 2
    unknown = (rng.normal(0, 1, n) + 1.5 * (truth < 0)).astype(np.float32)
    return LabelScores(tuple(map(str, range(n))), LABELS, logits, "logit", unknown=unknown), truth


def codes(predictions: LabelScores) -> np.ndarray:
    return predictions.top(1)[:, 0]


def test_a_constant_score_tells_nothing_and_calls_nothing_unknown_for_nothing():
    predictions, truth = drawn()
    flat = np.zeros(len(truth), dtype=np.float32)
    assert known_roc_auc(flat, truth >= 0) == 0.5
    step = learned(
        UnknownProbability(),
        LabelScores(predictions.items, LABELS, predictions.scores, "logit", unknown=flat),
        truth,
        ITEMS,
    )
    applied = step.apply(LabelScores(predictions.items, LABELS, predictions.scores, "logit", unknown=flat), ITEMS)
    assert applied.probabilities()[:, 3] == pytest.approx(np.full(len(truth), (truth < 0).mean()), abs=1e-5)


def test_accepting_95_percent_needs_no_unknown_items_and_accepts_no_less():
    predictions, truth = drawn()
    known = [item for item, code in zip(predictions.items, truth, strict=True) if code >= 0]
    alone = learned(UnknownThreshold("tpr-95"), predictions.select(known), truth[truth >= 0], ITEMS)
    step = learned(UnknownThreshold("tpr-95"), predictions, truth, ITEMS)
    assert step == alone
    accepted = codes(step.apply(predictions, ITEMS))[truth >= 0] >= 0
    assert 0.95 <= accepted.mean() <= 0.95 + 1 / len(known)


@pytest.mark.parametrize(
    ("benchmark", "reads"),
    [
        ("fungitastic/open", ("truth", "predicted", "n_classes")),
        ("fungitastic/cost-unknown", ("truth", "predicted")),
        ("fungitastic/cost-poison", ("truth", "predicted", "dangerous")),
    ],
)
def test_no_other_line_is_better_on_val_for_what_the_task_measures(benchmark, reads):
    predictions, truth = drawn(n=120)
    metric = decision_metric(BENCHMARKS[benchmark].task)
    step = learned(UnknownThreshold(), predictions, truth, benchmark=benchmark, taxa=TAXA)

    def value(line: float) -> float:
        answers = codes(UnknownThreshold("task", line).apply(predictions, ITEMS))
        about = {"truth": truth, "predicted": answers, "n_classes": 3, "dangerous": np.array([True, False, False])}
        found = metric.value(**{name: about[name] for name in reads}, **metric.options)
        return found if metric.higher_is_better else -found

    assert value(step.threshold) == pytest.approx(max(value(line) for line in np.unique(predictions.unknown)))


def test_the_task_is_measured_by_macro_f1_in_the_open_set_and_by_f1_of_unknown_where_asked():
    predictions, truth = drawn(n=150)
    assert decision_metric(BENCHMARKS["fungitastic/open"].task).value is open_macro_f1
    step = learned(UnknownThreshold("f1-unknown"), predictions, truth, benchmark="fungitastic/open", taxa=TAXA)
    reached = f1_of_class(truth, codes(step.apply(predictions, ITEMS)), cls=-1)
    lines = np.unique(predictions.unknown)
    tried = [f1_of_class(truth, np.where(predictions.unknown > line, -1, 0), cls=-1) for line in lines]
    assert reached == pytest.approx(max(tried))


def test_a_val_without_unknown_items_cannot_draw_a_line_for_them():
    predictions, truth = drawn(share=0.0)
    with pytest.raises(MisuseError, match="tpr-95"):
        learned(UnknownThreshold(), predictions, truth, benchmark="fungitastic/open", taxa=TAXA)
    assert learned(UnknownProbability(), predictions, truth, ITEMS).apply(predictions, ITEMS) is predictions


def test_stated_probabilities_of_unknown_come_true_and_all_sum_to_one():
    val, truth = drawn(n=4000)
    test, later = drawn(n=4000, seed=1)
    stated = learned(UnknownProbability(), val, truth, ITEMS).apply(test, ITEMS).probabilities()
    assert stated.sum(axis=1) == pytest.approx(np.ones(4000), abs=1e-5)
    for low in np.arange(0, 0.8, 0.2):
        inside = (stated[:, 3] >= low) & (stated[:, 3] < low + 0.2)
        assert (later[inside] < 0).mean() == pytest.approx(stated[inside, 3].mean(), abs=0.07)


def test_known_labels_keep_their_odds_whatever_is_unknown():
    predictions, truth = drawn()
    scaled = learned(UnknownProbability(), predictions, truth, ITEMS).apply(predictions, ITEMS).scores[:, :3]
    before = predictions.scores - predictions.scores[:, :1]
    assert scaled - scaled[:, :1] == pytest.approx(before, abs=1e-3)


@pytest.mark.parametrize(
    "step", [Temperature(), BiasTemperature(), GroupTemperature("habitat"), ObservationMean(), ObservationMax()]
)
def test_a_probability_of_unknown_is_scaled_and_pooled_like_that_of_any_label(step):
    predictions, truth = drawn(n=60)
    items = pl.DataFrame(
        {
            "item_id": predictions.items,
            "observation_id": [str(row // 3) for row in range(60)],
            "habitat": ["bog", "meadow"] * 30,
        }
    )
    stated = UnknownProbability(1.5, -1.0).apply(predictions, ITEMS)
    as_label = LabelScores(stated.items, Labels(("a", "b", "c", "other")), stated.columns, stated.scale)
    known = truth >= 0
    changed, expected = (
        learned(step, one.select(np.array(one.items)[known]), truth[known], items.filter(known)).apply(one, items)
        for one in (stated, as_label)
    )
    assert changed.unknown_label is not None
    assert changed.probabilities() == pytest.approx(expected.probabilities(), abs=1e-6)


def test_steps_that_know_nothing_of_the_unknown_are_fitted_on_known_items_alone():
    predictions, truth = drawn()
    known = [item for item, code in zip(predictions.items, truth, strict=True) if code >= 0]
    alone = learned(Temperature(), predictions.select(known), truth[truth >= 0])
    assert fit_step(Temperature(), predictions, lesson(predictions, truth)) == alone


def test_decisions_of_a_rule_survive_the_file_and_come_first_without_being_listed_twice(tmp_path):
    predictions, _ = drawn(n=30)
    decided = UnknownThreshold("task", 0.5).apply(predictions, ITEMS)
    decided.write(tmp_path / "p.parquet")
    again = read_predictions(tmp_path / "p.parquet")
    assert (again.top(4) == decided.top(4)).all() and (again.decisions.codes == decided.decisions.codes).all()
    # Unknown is listed where it is the answer; nothing else gave it a score.
    fourth = np.where(predictions.unknown > 0.5, -1, NOTHING)
    assert [sorted(row) for row in decided.top(4).tolist()] == [[code, 0, 1, 2] for code in fourth.tolist()]
    assert (decided.top(1)[:, 0] == np.where(predictions.unknown > 0.5, -1, predictions.scores.argmax(axis=1))).all()
    assert decided.with_scores(decided.scores, "score").decisions is None
    assert (decided.select(decided.items[::-1]).decisions.codes == decided.decisions.codes[::-1]).all()


def test_fitted_steps_are_plain_data():
    predictions, truth = drawn()
    for step in (UnknownProbability(), UnknownThreshold("tpr-95")):
        fitted = learned(step, predictions, truth, ITEMS)
        assert step_from_data(step_to_data(fitted)) == fitted


def test_without_a_score_of_strangeness_the_missing_step_is_named():
    predictions, truth = drawn(n=10)
    bare = MaxSoftmax().apply(predictions, ITEMS).with_scores(predictions.scores, "logit")
    assert bare.unknown is not None
    with pytest.raises(ValueError, match="max-softmax"):
        learned(UnknownThreshold("tpr-95"), LabelScores(bare.items, LABELS, bare.scores, "logit"), truth, ITEMS)
