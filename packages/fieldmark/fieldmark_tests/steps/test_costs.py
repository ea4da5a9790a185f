from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.metrics import costs as metrics
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps import make_step, step_from_data, step_to_data
from fieldmark.steps.costs import RULES, Costs, Prices, costs_by_rule, read_costs, rule_of
from fieldmark.steps.min_cost import MinCost
from fieldmark.tables.labels import Labels
from fieldmark_tests.lessons import learned

LABELS = Labels(("a", "b", "c", "-1"))
DANGEROUS = np.array([True, False, True, False])
EVERYTHING = np.array(list(product((0, 1, 2, -1), repeat=2)), dtype=np.int32)


def full(matrix: np.ndarray) -> Costs:
    labels = Labels(tuple(str(number) for number in range(len(matrix))))
    return Costs(labels, np.arange(len(matrix)), matrix, np.diag(matrix).copy())


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    size = draw(st.integers(2, 5))
    whole = st.integers(0, 9)
    matrix = np.array(draw(st.lists(whole, min_size=size**2, max_size=size**2)), dtype=float).reshape(size, size)
    counts = np.array(draw(st.lists(whole, min_size=3 * size, max_size=3 * size)), dtype=float).reshape(3, size) + 0.5
    return matrix, counts / counts.sum(axis=1, keepdims=True)


@given(problems())
@settings(max_examples=150, deadline=None)
def test_the_answer_is_the_cheapest_of_all_that_could_be_given(problem):
    matrix, probabilities = problem
    costs = full(matrix)
    for row, answer in zip(probabilities, costs.best(probabilities), strict=True):
        paid = [sum(row[y] * matrix[y, a] for y in range(len(row))) for a in range(len(row))]
        assert paid[answer] == pytest.approx(min(paid))
        cheapest = [a for a, price in enumerate(paid) if price < min(paid) + 1e-12]
        assert row[answer] == max(row[a] for a in cheapest)


@given(problems(), st.integers(0, 4))
@settings(max_examples=100, deadline=None)
def test_no_rule_is_expected_to_pay_less_than_the_best_answer(problem, number):
    matrix, probabilities = problem
    costs, rows = full(matrix), np.arange(3)
    expected = costs.expected(probabilities)
    rules = (probabilities.argmax(axis=1), np.full(3, number % len(matrix)), rows % len(matrix))
    for answers in rules:
        assert (expected[rows, costs.best(probabilities)] <= expected[rows, answers] + 1e-9).all()


@pytest.mark.parametrize(
    ("rule", "metric"),
    [
        ("poison", lambda t, p: metrics.poison_cost(t, p, dangerous=DANGEROUS[:3])),
        ("fungiclef-3", lambda t, p: metrics.fungiclef_track(t, p, dangerous=DANGEROUS[:3], track=3)),
        ("unknown", metrics.unknown_cost),
        ("unknown-organizers", lambda t, p: metrics.fungiclef_track(t, p, dangerous=DANGEROUS[:3], track=4)),
        ("venom", lambda t, p: metrics.venom_cost(t, p, venomous=DANGEROUS[:3])),
    ],
    ids=["poison", "fungiclef-3", "unknown", "unknown-organizers", "venom"],
)
def test_the_matrix_of_a_rule_charges_what_the_metric_charges(rule, metric):
    matrix = costs_by_rule(rule, LABELS, DANGEROUS).matrix
    for truth, answer in EVERYTHING:
        assert matrix[truth, answer] == metric(np.array([truth]), np.array([answer]))


def test_a_matrix_kept_by_kinds_expects_what_the_whole_matrix_does():
    probabilities = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    for rule in RULES:
        costs = costs_by_rule(rule, LABELS, DANGEROUS, Prices(c_p=7, c_e=2, c_u=5, c_k=3))
        assert costs.expected(probabilities) == pytest.approx(probabilities @ costs.matrix)
        again = Costs.from_data(costs.to_data())
        assert (again.matrix == costs.matrix).all() and again.labels == costs.labels


def test_a_dearer_poison_never_leaves_more_poisonous_items_called_harmless():
    probabilities = np.random.default_rng(1).dirichlet(np.ones(4) / 2, 200)
    harmless = [
        (~DANGEROUS[costs_by_rule("poison", LABELS, DANGEROUS, Prices(c_p=c_p)).best(probabilities)]).sum()
        for c_p in (1, 10, 100, 1000)
    ]
    assert harmless == sorted(harmless, reverse=True) and harmless[0] > harmless[-1]


def test_long_and_square_tables_say_the_same(tmp_path):
    (tmp_path / "long.csv").write_text("true,predicted,cost\na,b,5\n-1,a,9.5\nb,b,0.25\n")
    (tmp_path / "square.csv").write_text("true,a,b,c,-1\na,0,5,1,1\nb,1,0.25,1,1\nc,1,1,0,1\n-1,9.5,1,1,0\n")
    long, square = (read_costs(tmp_path / f"{name}.csv", LABELS).matrix for name in ("long", "square"))
    assert (long == square).all() and long[0, 1] == 5 and long[3, 0] == 9.5 and long[1, 1] == 0.25 and long[2, 0] == 1


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("true,predicted,cost\na,z,5\n", 2, "found the label 'z', expected a label of the benchmark, or -1"),
        ("true,predicted,cost\na,b,5\na,b,6\n", 3, "found the pair of line 2 again, expected each pair once"),
        ("true,predicted,cost\na,b,dear\n", 2, "found the cost 'dear', expected a number of at least 0"),
        ("true,predicted,cost\na,b,-1\n", 2, "found the cost '-1', expected a number of at least 0"),
        ("true,predicted,cost\na,b,inf\n", 2, "found the cost 'inf', expected a number of at least 0"),
        ("true,a,b\na,0,1\nb,1,0\n", None, "found no column for the label 'c', expected one for each"),
        ("true,a,b,c\na,0,1,1\nb,1,0,1\n", None, "found no row for the label 'c', expected one for each"),
        ("", None, "found an empty file, expected a CSV table"),
    ],
)
def test_a_bad_table_is_refused_in_one_sentence(tmp_path, text, line, sentence):
    path = tmp_path / "prices.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_costs(path, LABELS)
    place = str(path) if line is None else f"{path}, line {line}"
    assert str(refused.value).startswith(f"{place}: {sentence}")


def test_a_table_that_is_not_there_is_refused_before_anything_is_fitted(tmp_path):
    step = MinCost(cost=str(tmp_path / "nowhere.csv"))
    with pytest.raises(InputError, match="no such file"):
        step.check(BENCHMARKS["folder"].task)
    with pytest.raises(MisuseError, match="no such rule"):
        MinCost(cost="posion").check(BENCHMARKS["folder"].task)
    with pytest.raises(MisuseError, match="no costs of its own"):
        MinCost().check(BENCHMARKS["folder"].task)


@pytest.mark.parametrize(
    ("benchmark", "rule"), [("fungitastic/cost-poison", "poison"), ("fungitastic/cost-unknown", "unknown"),
                            ("fungiclef-2023", "poison"), ("snakeclef-2020", "venom")],
)  # fmt: skip
def test_the_rule_is_that_of_the_first_metric_that_prices_mistakes(benchmark, rule):
    assert rule_of(BENCHMARKS[benchmark].task) == rule


def test_the_step_answers_the_cheapest_and_leaves_the_probabilities():
    known = Labels(("a", "b", "c"))
    taxa = pl.DataFrame({"label": ["a", "b", "c"], "poisonous": [True, False, None]})
    scores = np.log(np.array([[0.05, 0.95, 1e-9], [0.002, 0.9, 0.098]], dtype=np.float32))
    val = LabelScores(("x", "y"), known, scores, "log_probability")
    step = learned(MinCost(), val, np.array([0, 1]), benchmark="fungitastic/cost-poison", taxa=taxa)
    answered = step.apply(val, pl.DataFrame())
    # One in twenty is too likely to be poisonous at a price of 100; one in five hundred is not.
    assert answered.top(1)[:, 0].tolist() == [0, 1]
    assert answered.scores[:, :3] == pytest.approx(val.scores)
    again = step_from_data(step_to_data(step))
    assert (again.apply(val, pl.DataFrame()).top(2) == answered.top(2)).all()


def test_steps_take_settings_after_a_colon():
    assert make_step("min-cost:cost=poison,c_p=7") == MinCost(cost="poison", c_p=7.0)
    with pytest.raises(MisuseError, match="no setting called 'c_q'"):
        make_step("min-cost:c_q=7")
    with pytest.raises(MisuseError, match="at least 0"):
        make_step("min-cost:c_p=-7")
