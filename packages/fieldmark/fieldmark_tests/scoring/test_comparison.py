from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.views.score_run import write_truth

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


TABLES = {
    "truth": {"id": [str(n) for n in range(40)], "label": [f"c{n % 4}" for n in range(40)]},
    "classes": {"label": [f"c{n}" for n in range(4)]},
}
EIGHT = {"label": [f"c{n}" for n in range(8)]}
RUN = {"id": TABLES["truth"]["id"], "predicted": [f"c{n % 4 if n % 5 else (n + 1) % 4}" for n in range(40)]}


def test_the_same_run_with_other_classes_is_refused_where_the_metric_rests_on_them():
    few, many = (fieldmark.score("folder", RUN, **TABLES | {"classes": one}) for one in (TABLES["classes"], EIGHT))
    expected = (
        r"many: found 8 classes, expected the 4 of few, on which macro_f1_all rests. Score both with the same list"
    )
    with pytest.raises(InputError, match=expected):
        fieldmark.compare({"few": few, "many": many})
    for metric in ("top_1", "macro_f1_present"):
        compared = fieldmark.compare({"few": few, "many": many}, metric=metric)
        assert compared.to_json()["differences"][0]["value"] == 0
        assert compared.remarks == (f"many was scored with other classes than few; {metric} does not rest on them.",)
    other = {"label": ["c0", "c1", "c2", "c3", "c9"]}
    five = [
        fieldmark.score("folder", RUN, **TABLES | {"classes": one}) for one in (other, {"label": EIGHT["label"][:5]})
    ]
    with pytest.raises(InputError, match="found other classes, expected those of a"):
        fieldmark.compare(dict(zip("ab", five, strict=True)))


def test_another_truth_on_the_same_units_is_refused_and_the_order_of_rows_is_not_another():
    card = fieldmark.score("folder", RUN, **TABLES)
    turned = {name: list(reversed(values)) for name, values in TABLES["truth"].items()}
    again = fieldmark.score("folder", RUN, **TABLES | {"truth": turned, "classes": {"label": ["c3", "c1", "c0", "c2"]}})
    assert again.digests == card.digests
    corrected = {**TABLES["truth"], "label": ["c1", *TABLES["truth"]["label"][1:]]}
    other = fieldmark.score("folder", RUN, **TABLES | {"truth": corrected})
    with pytest.raises(InputError, match="b: found another truth, expected the truth that a was scored against"):
        fieldmark.compare({"a": card, "b": other}, metric="top_1")
    merged = {**TABLES["truth"], "unit": ["u0", *TABLES["truth"]["id"][1:]]}
    assert fieldmark.score("folder", RUN, **TABLES | {"truth": merged}).digests["truth"] != card.digests["truth"]


def test_other_conventions_and_other_facts_are_refused():
    card = fieldmark.score("folder", RUN, **TABLES)
    digests = card.digests | {"conventions": card.digests["conventions"] | {"top_1": "other"}}
    other = replace(card, digests=digests, conventions=card.conventions | {"top_1": "ties count half"})
    with pytest.raises(InputError, match=r"b: found top_1 by 'ties count half', expected '.*', as a"):
        fieldmark.compare({"a": card, "b": other}, metric="top_1")
    assert not fieldmark.compare({"a": card, "b": other}, metric="top_3").remarks
    flags = [{"label": TABLES["classes"]["label"], "poisonous": [False, one, True, False]} for one in (True, False)]
    answered = RUN | {"unknown_score": [0.0] * 40}
    costs = [fieldmark.score("fungitastic/cost-poison", answered, **TABLES | {"classes": one}) for one in flags]
    with pytest.raises(InputError, match="b: found another poisonous of classes, expected the same as for a"):
        fieldmark.compare(dict(zip("ab", costs, strict=True)), metric="cost_poison")


def test_scorecards_of_before_compare_with_a_caution():
    card = fieldmark.score("folder", RUN, **TABLES)
    older = replace(fieldmark.score("folder", RUN, **TABLES | {"classes": EIGHT}), digests={})
    (remark,) = fieldmark.compare({"a": card, "b": older}).remarks
    assert remark.startswith("b: from before scorecards said which truth, classes and conventions they rest on, and ")
    assert "scored with 4 and 8 classes, on which macro_f1_all rests; those are taken to be the same" in remark


def test_folders_files_and_scorecards_stand_in_one_list(tmp_path):
    card = fieldmark.score("folder", RUN, **TABLES)
    card.write(str(tmp_path / "stored.json"))
    compared = fieldmark.compare([card, str(tmp_path / "stored.json"), tmp_path / "stored.json", card])
    assert set(compared.names) == {"run 1", "stored", str(tmp_path / "stored.json"), "run 4"}
    method = replace(card, provenance=card.provenance | {"method": "linear"})
    assert set(fieldmark.compare([method, method]).names) == {"linear", "linear (2)"}
    assert set(fieldmark.compare({"a": card, "b": tmp_path / "stored.json"}).names) == {"a", "b"}
    for wrong in ("runs/x", card):
        with pytest.raises(MisuseError, match="at least two runs, in a list or by name"):
            fieldmark.compare(wrong)
    with pytest.raises(MisuseError, match="a run file or a table of answers, not int"):
        fieldmark.compare([card, 3])
    with pytest.raises(InputError, match=r"units.parquet: no such file, expected the values per unit"):
        (tmp_path / "stored.units.parquet").unlink()
        fieldmark.compare([card, tmp_path / "stored.json"])


def test_a_metric_that_one_of_the_runs_lacks_is_refused():
    card, other = (fieldmark.score("folder", RUN, **TABLES, metrics=names) for names in (None, ["top_1"]))
    with pytest.raises(MisuseError, match="cannot be compared by 'macro_f1_all'"):
        fieldmark.compare({"a": card, "b": other}, metric="macro_f1_all")


def test_a_truth_that_was_written_down_has_the_digests_of_its_release(make_release, tmp_path):
    root = make_release()
    write_truth("folder", root, tmp_path / "truth")
    run = tmp_path / "run.csv"
    lines = (tmp_path / "truth" / "truth.csv").read_text().splitlines()[1:]
    run.write_text("id,predicted\n" + "".join(f"{line.split(',')[0]},Alba alba\n" for line in lines))
    tables = {"truth": tmp_path / "truth" / "truth.csv", "classes": tmp_path / "truth" / "classes.csv"}
    of_release = fieldmark.score("folder", run, data=root).digests
    of_tables = fieldmark.score("folder", run, **tables).digests
    for key in ("truth", "classes", "conventions"):
        assert of_tables[key] == of_release[key]
    common = set(of_tables["facts"]) & set(of_release["facts"])
    assert common and all(of_tables["facts"][name] == of_release["facts"][name] for name in common)
