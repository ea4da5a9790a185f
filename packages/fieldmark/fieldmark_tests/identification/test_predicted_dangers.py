"""The danger notice in `predict`, on the card and on the page follows from the taxa, and from nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import fieldmark
from fieldmark.identification.packaged.photo_groups import GROUPS
from fieldmark.identification.predicted_dangers import predicted_dangers
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
    assert "BE CAREFUL" not in shown  # the photo shows a color, and neither a mushroom nor a snake
    assert ("For 1 of 1 danger is unlikely, but not ruled out." in shown) == bool(sentence)


def test_programs_are_told_which_names_are_poisonous_and_how_likely_that_is(answered, tmp_path):
    told = json.loads(answered("fungi", "--json", "--out", tmp_path / "answers.csv")[2])
    (item, names), *_ = told["answers"].items()
    assert {name["label"]: name["poisonous"] for name in names}["Alba alba"] is True
    assert told["danger"]["probability"] == {} and item.endswith(".jpg")  # it shows no mushroom
    table = pl.read_csv(tmp_path / "answers.csv")
    assert table.filter(pl.col("poisonous"))["label"].to_list() == ["Alba alba"]


@pytest.mark.parametrize("group", ["fungi", "birds"])
def test_a_photo_of_a_mushroom_is_warned_of_whether_or_not_the_model_knows_any(answered, group):
    _, run, _ = answered(group)
    predictions = run.model.predict_photos([Path("fungus.jpg"), Path("wall.jpg")])
    none = dict.fromkeys(GROUPS, 0.0)
    seen = {"fungus.jpg": {**none, "fungi": 0.9}, "wall.jpg": {**none, "other": 1.0}}
    told = predicted_dangers(run.model, predictions, seen)
    assert (list(told.probability), told.improbable) == ((["fungus.jpg"], 1) if group == "fungi" else ([], 0))
    assert told.strange == (() if group == "fungi" else ("fungus.jpg",))
    assert told.lines()[0] == "BE CAREFUL" and MUSHROOM in told.lines() and "poison center" in " ".join(told.advice)
    assert list(predicted_dangers(run.model, predictions).probability) == (list(seen) if group == "fungi" else [])


def test_the_card_shows_labels_and_scores_as_they_were_measured(answered):
    _, run, _ = answered("fungi")
    card = load_model(run.folder).card()
    value = run.scorecard.metrics["top_1"].value
    assert f"| Top 1 | {100 * value:.1f} % |" in card and "## Scores on test" in card
    assert all(f"- {label}" in card for label in run.model.labels.names)
    assert "- Alba alba (poisonous or venomous)" in card
