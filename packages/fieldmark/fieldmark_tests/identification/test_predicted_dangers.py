"""The danger notice in `predict`, on the card and on the page follows from the taxa, and from nothing else."""

from __future__ import annotations

import json

import polars as pl
import pytest

import fieldmark
from fieldmark.models import load_model

LABELS = ("Alba alba", "Alba nigra", "Rubra vera")
RANKS = {"fungi": ("Fungi", "", ""), "birds": ("Animalia", "Aves", ""), "snakes": ("Animalia", "Reptilia", "Serpentes")}
MUSHROOM, SNAKE = "Never eat a mushroom because a model named it.", "Never touch a snake because a model named it."


@pytest.fixture
def answered(make_release, run_main, tmp_path):
    """Fits the training frequencies to photos of a group, and answers a photo by `predict`."""

    def answer(group: str, *more: object):
        root = make_release(per_class=4)
        flags = (None, None, None) if group == "birds" else (True, False, False)
        rows = [(label, *RANKS[group], flag) for label, flag in zip(LABELS, flags, strict=True)]
        taxa = pl.DataFrame(rows, ["label", "kingdom", "class", "order", "poisonous"], orient="row")
        taxa.write_csv(root / "taxa.csv")
        run = fieldmark.fit("folder", root, "frequent", tmp_path / "run")
        photo = next((root / "test").rglob("*.jpg"))
        code, shown, _ = run_main("predict", run.folder, photo, *more)
        assert code == 0
        return root, run, shown

    return answer


@pytest.mark.parametrize(("group", "sentence"), [("fungi", MUSHROOM), ("snakes", SNAKE), ("birds", "")])
def test_predict_card_and_page_warn_where_the_taxa_say_so(answered, group, sentence, tmp_path):
    root, run, shown = answered(group)
    page = fieldmark.report([run.folder], tmp_path / "page.html", data=root).read_text()
    for text in (shown, load_model(run.folder).card(), page):
        assert [one for one in (MUSHROOM, SNAKE) if one in text] == [one for one in (sentence,) if one]
    assert ("BE CAREFUL" in shown) == bool(sentence) and ("emergency number" in shown) == bool(sentence)


def test_programs_are_told_which_names_are_poisonous_and_how_likely_that_is(answered, tmp_path):
    told = json.loads(answered("fungi", "--json", "--out", tmp_path / "answers.csv")[2])
    (item, names), *_ = told["answers"].items()
    assert {name["label"]: name["poisonous"] for name in names}["Alba alba"] is True
    assert told["danger"]["probability"][item] == pytest.approx(1 / 3, abs=0.05)
    table = pl.read_csv(tmp_path / "answers.csv")
    assert table.filter(pl.col("poisonous"))["label"].to_list() == ["Alba alba"]


def test_the_card_shows_labels_and_scores_as_they_were_measured(answered):
    _, run, _ = answered("fungi")
    card = load_model(run.folder).card()
    value = run.scorecard.metrics["top_1"].value
    assert f"| Top 1 | {100 * value:.1f} % |" in card and "## Scores on test" in card
    assert all(f"- {label}" in card for label in run.model.labels.names)
    assert "- Alba alba (poisonous or venomous)" in card
