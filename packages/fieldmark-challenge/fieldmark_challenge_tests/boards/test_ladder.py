from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.scoring import Score, Scorecard
from fieldmark_challenge.boards.ladder import LEVEL, release, released_entrants
from fieldmark_challenge.boards.leaderboard import BASELINE
from fieldmark_challenge.challenges.metrics import board_metric
from fieldmark_challenge_tests.hosting import START, entrants
from studies.evidence import ladder as study
from studies.evidence.guessing import TARGETS, guessed, mixed

METRIC = board_metric("folder", "top_1")
UNITS = 200


def card_of(hits: np.ndarray) -> Scorecard:
    value = float(hits.mean())
    units = tuple(map(str, range(len(hits))))
    score = Score(value, value - 0.05, value + 0.05, "jackknife-t")
    kept = {"pseudo": {"top_1": hits}, "unit_ids": units}
    return Scorecard("folder", "1", "public", len(hits), len(hits), 2, {"top_1": score}, {}, **kept)


def test_only_a_clear_improvement_is_told():
    hits = (np.arange(UNITS) < 100).astype(float)
    slightly, clearly = hits.copy(), hits.copy()
    slightly[[100, 101, 0]] = 1, 1, 0
    clearly[100:150] = 1
    told = release([card_of(run) for run in (hits, slightly, clearly, hits)], METRIC)
    assert [one.improved for one in told] == [True, False, True, False]
    assert [one.value for one in told] == pytest.approx([0.5, 0.5, 0.75, 0.75])
    assert [one.of for one in told] == [0, 0, 2, 2]


@pytest.mark.parametrize("exchanged", [1, 2, 5, 10])
def test_right_guesses_are_not_told_one_by_one(exchanged):
    """A few guesses at a time, kept when the Ladder calls them better: with one standard error all labels are found."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, UNITS)
    climbed = {}
    for level in (None, LEVEL):
        held = rng.integers(0, 2, UNITS)
        cards = [card_of((held == truth).astype(float))]
        for turn in range(200):
            tried = held.copy()
            at = np.arange(turn * exchanged, (turn + 1) * exchanged) % UNITS
            tried[at] = 1 - tried[at] if exchanged == 1 else rng.integers(0, 2, exchanged)
            card = card_of((tried == truth).astype(float))
            if release([cards[-1], card], METRIC, level=level)[-1].improved:
                held, cards = tried, [*cards, card]
        climbed[level] = cards[-1].metrics["top_1"].value - cards[0].metrics["top_1"].value
    assert climbed[None] > 0.15 and climbed[LEVEL] < 0.03


def test_random_answers_do_not_climb_as_they_do_on_a_plain_board():
    """The attack of Blum and Hardt: keep what scored above a half, take the majority. The Ladder gives it nothing."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, UNITS)
    guesses = rng.integers(0, 2, (1000, UNITS))
    cards = [card_of((guess == truth).astype(float)) for guess in guesses]
    seen = np.array([card.metrics["top_1"].value for card in cards])
    vote = (2 * guesses[seen > 0.5].mean(axis=0) > 1).astype(int)
    told = release(cards, METRIC)
    climbed = [guesses[place] for place, one in enumerate(told) if one.improved]
    ladder_vote = (np.mean(climbed, axis=0) > 0.5).astype(int)
    assert (vote == truth).mean() > 0.8
    assert (ladder_vote == truth).mean() < (vote == truth).mean() - 0.1
    assert len(climbed) < 15


def test_a_fixed_step_asks_for_it_and_rounds_to_it():
    runs = [(np.arange(UNITS) < hits).astype(float) for hits in (101, 109, 118)]
    told = release([card_of(run) for run in runs], METRIC, step=0.05)
    assert [one.improved for one in told] == [True, False, True]
    assert told[-1].value == pytest.approx(0.6)


def test_a_worse_run_is_no_improvement_on_a_score_that_was_rounded_down():
    """Rounded by half a unit, the score that is shown would let many small exchanges pass, whichever way they go."""
    held = np.where(np.arange(UNITS) < 100, 0.514, 0.0)
    worse = held - np.where(np.arange(UNITS) < 20, 0.002, 0.0)
    told = release([card_of(held), card_of(worse)], METRIC)
    assert told[0].value == pytest.approx(0.255) and not told[1].improved


def test_units_that_hardly_differ_do_not_count_as_evidence():
    """Where classes or pixels are pooled every unit moves a little, though ten lucky ones carry the difference."""
    held = 0.4 + 1e-6 * np.sin(np.arange(UNITS))
    lucky = np.full(UNITS, 0.4) + np.where(np.arange(UNITS) < 10, 0.5, 0.0)
    assert not release([card_of(held), card_of(lucky)], METRIC)[1].improved
    better = np.full(UNITS, 0.4) + np.where(np.arange(UNITS) < 20, 0.5, 0.0)
    assert release([card_of(held), card_of(better)], METRIC)[1].improved


def test_undefined_scores_and_costs():
    cost = replace(METRIC, higher_is_better=False)
    undefined = replace(card_of(np.ones(UNITS)), metrics={"top_1": Score(float("nan"), None, None, "none")})
    runs = [undefined, card_of(np.ones(UNITS)), card_of(np.zeros(UNITS))]
    told = release(runs, cost)
    assert told[0].value is None and told[-1].value == 0 and told[-1].of == 2


def test_the_board_gets_one_released_run_per_team_with_nothing_else_on_its_card(tmp_path):
    poor, good, base = entrants(tmp_path, {"first": 0.3, "second": 0.8, "base": 0.5})
    good = replace(good, team="first", accepted=START + timedelta(days=1))
    shown = released_entrants([good, poor, replace(base, unranked=BASELINE)], board_metric("folder"))
    assert [one.id for one in shown] == [base.id, good.id]
    card = shown[1].card
    assert list(card.metrics) == list(card.pseudo) == ["macro_f1_all"] and not card.groups
    assert card.metrics["macro_f1_all"].value == pytest.approx(good.card.metrics["macro_f1_all"].value, abs=0.02)


def test_the_study_attacks_boards_with_answers_that_change_their_scores():
    """Otherwise a metric that an exchange does not reach would look as if nothing could be gained."""
    for name, target in TARGETS.items():
        rng = np.random.default_rng(0)
        start = target.draw(rng)
        metric = BENCHMARKS[target.benchmark].task.deciding
        tried = mixed(start, guessed(start, rng), np.unique(start["unit"])[:30])
        first, second = (study.card_of(fields, metric).metrics[metric.name].value for fields in (start, tried))
        assert first != second, name
