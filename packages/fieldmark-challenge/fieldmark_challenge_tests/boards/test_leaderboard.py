from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.scoring import Score
from fieldmark.scoring.measurement import FEW_UNITS_CAUTION
from fieldmark.scoring.score_parts import score_parts, truth_files
from fieldmark_challenge.boards.leaderboard import BASELINE, Entrant, best_of_teams, duel, make_board
from fieldmark_challenge.challenges.metrics import board_metric
from fieldmark_challenge.scoring.stored_scores import to_row
from fieldmark_challenge_tests.hosting import START, entrants
from fieldmark_challenge_tests.soundscape_runs import BIRDS, write_run, write_soundscapes

SKILLS = {"spores": 0.9, "gills": 0.87, "caps": 0.3, "stems": 0.28}


@pytest.fixture(scope="module")
def entered(tmp_path_factory):
    return entrants(tmp_path_factory.mktemp("board"), SKILLS)


def test_the_board_agrees_with_the_comparison_on_the_command_line(entered):
    board = make_board("folder", "public", entered, metric="top_1")
    compared = fieldmark.compare({one.team: one.card for one in entered}, metric="top_1")
    assert [row.entrant.team for row in board.rows] == list(compared.names)
    assert [(row.rank_low, row.rank_high) for row in board.rows] == [
        (now.rank_low, now.rank_high) for now in compared.outcome.standings
    ]
    best = {compared.names[run] for run in compared.outcome.best_group}
    assert {row.entrant.team for row in board.rows if row.among_best} == best
    behind, expected = board.rows[2].behind, compared.behind_best(2)
    assert board.rows[0].behind is None and behind is not None and expected is not None
    # The board has its entries in another order, and sums differ in their last digits.
    assert behind.p_adjusted == pytest.approx(expected.p_adjusted, rel=1e-9)
    assert replace(behind, p_adjusted=0.0) == replace(expected, p_adjusted=0.0)


def test_baselines_stand_in_their_place_without_a_rank(entered):
    second = make_board("folder", "public", entered, metric="top_1").rows[1].entrant
    shown = [replace(one, unranked=BASELINE) if one is second else one for one in entered]
    board = make_board("folder", "public", shown, metric="top_1")
    assert board.rows[1].entrant.id == second.id
    assert [row.place for row in board.rows] == [1, None, 2, 3]
    without = make_board("folder", "public", [one for one in entered if one is not second], metric="top_1")
    assert board.ranked == without.rows


def test_an_undefined_score_is_never_ranked(entered):
    nothing = replace(entered[0].card, metrics={"top_1": Score(float("nan"), None, None, "none", "undefined")})
    board = make_board("folder", "public", [replace(entered[0], card=nothing), *entered[1:]], metric="top_1")
    assert board.rows[-1].entrant.team == "spores" and board.rows[-1].place is None
    assert board.rows[0].place == 1 and board.rows[0].entrant.team == "gills"
    assert json.loads(json.dumps(board.to_json(), allow_nan=False))["entries"][-1]["value"] is None


def test_one_entry_and_none_make_a_board(entered):
    alone = make_board("folder", "public", entered[:1])
    assert (alone.rows[0].place, alone.rows[0].rank_high, alone.tied) == (1, 1, 1)
    assert make_board("folder", "public", []).rows == ()


def test_the_best_run_of_a_team_counts_and_of_equal_ones_the_earlier(entered):
    poor, good = entered[2], replace(entered[0], team="caps", id="later", accepted=START + timedelta(days=1))
    again = replace(good, id="again", accepted=START + timedelta(days=2))
    kept = best_of_teams([again, poor, good], board_metric("folder"))
    assert [one.id for one in kept] == ["later"]


def test_scores_that_are_costs_rank_upside_down(entered):
    metric = replace(board_metric("folder", "top_1"), higher_is_better=False)
    kept = best_of_teams([replace(entered[0], team="x"), replace(entered[2], team="x")], metric)
    assert kept[0].id == entered[2].id


def test_a_duel_is_paired_and_symmetric(entered):
    there, back = (duel("folder", *pair, metric="top_1") for pair in (entered[:3:2], entered[2::-2]))
    assert there.separable and back.separable
    assert there.difference.value == pytest.approx(-back.difference.value)
    assert there.difference.interval.low == pytest.approx(-back.difference.interval.high)
    assert there.ahead == (back.ahead[1], back.ahead[0], back.ahead[2]) and sum(there.ahead) == there.first.card.units
    assert "macro_f1_all" in there.others and "top_1" not in there.others
    assert not duel("folder", entered[0], entered[1], metric="top_1").separable


def test_a_run_against_itself_is_no_difference(entered):
    same = duel("folder", entered[0], entered[0])
    assert not same.separable and same.difference.value == 0 and same.ahead[:2] == (0, 0)


def test_entries_on_other_units_are_not_compared_but_shown(entered, tmp_path):
    other = entrants(tmp_path, {"elsewhere": 0.8}, part="private")[0]
    other = replace(other, id="elsewhere")
    board = make_board("folder", "public", [entered[0], other])
    assert "different units" in board.reason and [row.place for row in board.rows] in ([1, 2], [1, 1])
    assert board.rows[0].rank_low is None
    assert "different units" in duel("folder", entered[0], other).to_json()["reason"]


def test_an_unknown_metric_is_misuse(entered):
    with pytest.raises(MisuseError, match="Did you mean top_1"):
        make_board("folder", "public", entered, metric="top1")


def test_a_run_of_equal_scores_does_not_win_on_soundscapes(tmp_path):
    write_soundscapes(tmp_path, per_site=2)
    honest = write_run(tmp_path / "honest.csv", tmp_path, skill=2.0, seed=1)
    there = [line.split(";") for line in (tmp_path / "truth.csv").read_text().splitlines()]
    intervals = sorted({(name, interval) for name, _, interval in there})
    constant = tmp_path / "constant.csv"
    constant.write_text(
        "".join(f"{name};{interval};{bird};0.5\n" for name, interval in intervals for bird in BIRDS[:10])
    )
    entered = []
    for place, run in enumerate((honest, constant)):
        card = score_parts("birdclef-2020", run, truth_files(tmp_path))["public"]
        entered.append(Entrant(str(place), run.stem, "", card, START))
    assert entered[1].score("cmap").value > entered[0].score("cmap").value  # the official order of ties
    board = make_board("birdclef-2020", "public", entered)
    assert [row.entrant.team for row in board.ranked] == ["honest", "constant"]
    assert to_row(1, "public", 1, entered[1].card, "cmap_expected").value == entered[1].score("cmap_expected").value


def test_every_deciding_metric_is_one_of_the_benchmark():
    for name in BENCHMARKS:
        task = BENCHMARKS[name].task
        assert task.deciding.name == (task.decides or task.metrics[0].name)


def test_a_caution_about_a_score_stands_on_the_board(entered):
    assert make_board("folder", "public", entered).cautions == []
    marked = []
    for one in entered:
        scores = {name: replace(score, reason=FEW_UNITS_CAUTION) for name, score in one.card.metrics.items()}
        marked.append(replace(one, card=replace(one.card, metrics=scores)))
    assert make_board("folder", "public", marked).cautions == [FEW_UNITS_CAUTION]
