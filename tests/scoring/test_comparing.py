from __future__ import annotations

import json

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError

ITEMS = 120


@pytest.fixture
def cards(tmp_path):
    """Runs of known quality on the same items: right with probability 0.9, 0.88 and 0.3."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, ITEMS)
    truth = {"id": [str(n) for n in range(ITEMS)], "label": [f"c{n}" for n in labels]}
    found = {}
    for name, skill in (("good", 0.9), ("almost_as_good", 0.88), ("poor", 0.3)):
        answers = np.where(rng.random(ITEMS) < skill, labels, (labels + 1) % 6)
        path = tmp_path / f"{name}.csv"
        path.write_text("id,predicted\n" + "".join(f"{row},c{answer}\n" for row, answer in enumerate(answers)))
        found[name] = fieldmark.score("folder", path, truth=truth)
    return found


def test_runs_are_ranked_and_those_that_cannot_be_told_apart_share_ranks(cards):
    compared = fieldmark.compare(cards, metric="top_1")
    ranks = {compared.names[s.run]: (s.rank_low, s.rank_high) for s in compared.outcome.standings}
    assert ranks == {"good": (1, 2), "almost_as_good": (1, 2), "poor": (3, 3)}
    assert {compared.names[run] for run in compared.outcome.best_group} == {"good", "almost_as_good"}


def test_the_difference_is_that_of_the_scores_and_its_interval_is_paired(cards):
    compared = fieldmark.compare(cards, metric="top_1")
    values = {name: card.metrics["top_1"].value for name, card in cards.items()}
    pair = compared.behind_best(compared.names.index("poor"))
    assert pair.value == pytest.approx(max(values.values()) - values["poor"])
    assert pair.interval.low < pair.value < pair.interval.high and pair.p_adjusted < 0.001
    assert compared.behind_best(0) is None


def test_tables_escape_and_name_everything(cards, tmp_path):
    compared = fieldmark.compare(cards)
    assert compared.metric == "macro_f1_all"
    assert r"almost\_as\_good" in compared.to_latex() and compared.to_latex().count(r"\\") == 4
    assert compared.to_markdown().splitlines()[1].count("---") == 6
    assert json.loads(json.dumps(compared.to_json()))["runs"][2]["name"] == "poor"
    compared.plot(tmp_path / "ranks.png")
    compared.plot(tmp_path / "ranks.svg")
    assert (tmp_path / "ranks.png").read_bytes().startswith(b"\x89PNG") and "<svg" in (
        tmp_path / "ranks.svg"
    ).read_text()
    with pytest.raises(
        MisuseError, match=r"ranks\.xyz: found a plot ending in \.xyz, expected one of \.png, \.svg, \.pdf"
    ):
        compared.plot(tmp_path / "ranks.xyz")


def test_scorecards_on_disk_compare_like_those_in_memory(cards, tmp_path):
    for name, card in cards.items():
        card.write(tmp_path / "cards" / f"{name}.json")
    from_disk = fieldmark.compare([tmp_path / "cards" / f"{name}.json" for name in cards])
    assert from_disk.to_json() == fieldmark.compare(cards).to_json()


def test_what_cannot_be_compared_is_refused(cards, tmp_path):
    with pytest.raises(MisuseError, match="at least two runs"):
        fieldmark.compare({"good": cards["good"]})
    with pytest.raises(MisuseError, match=r"compared by 'top_2'. Did you mean top_"):
        fieldmark.compare(cards, metric="top_2")
    (tmp_path / "other.csv").write_text("id,predicted\n1,c1\n2,c1\n")
    other = fieldmark.score("folder", tmp_path / "other.csv", truth={"id": ["1", "2"], "label": ["c1", "c2"]})
    with pytest.raises(
        InputError, match=r"other: found other units, expected a run on test of folder \(version 2\), as good"
    ):
        fieldmark.compare({"good": cards["good"], "other": other})
