"""The line beyond which an item is called unknown."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.metrics.openset import f1_of_class, known_roc_auc, open_macro_f1
from fieldmark.runs.label_scores import NOTHING, LabelScores
from fieldmark.runs.predictions import read_predictions
from fieldmark.steps.unknown_probability import UnknownProbability
from fieldmark.steps.unknown_score import MaxSoftmax
from fieldmark.steps.unknown_threshold import UnknownThreshold, decision_metric
from fieldmark_tests.lessons import learned
from fieldmark_tests.steps.unknown_items import ITEMS, LABELS, TAXA, codes, drawn


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


def test_without_a_score_of_strangeness_the_missing_step_is_named():
    predictions, truth = drawn(n=10)
    bare = MaxSoftmax().apply(predictions, ITEMS).with_scores(predictions.scores, "logit")
    assert bare.unknown is not None
    with pytest.raises(ValueError, match="max-softmax"):
        learned(UnknownThreshold("tpr-95"), LabelScores(bare.items, LABELS, bare.scores, "logit"), truth, ITEMS)
