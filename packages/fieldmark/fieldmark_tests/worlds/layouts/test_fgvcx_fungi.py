"""The world, and all that docs/fgvcx.md does with it: each command of the page runs here, in its order."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import fieldmark
from fieldmark.cli.main import app
from fieldmark.methods import METHODS
from fieldmark.releases.checks import CHECKS
from fieldmark.scoring import Scorecard
from fieldmark.storage.release import Release
from fieldmark_tests.places import DOCS
from fieldmark_worlds.fungi.fungi_kingdom import FUNGI
from fieldmark_worlds.layouts import fgvcx_fungi
from fieldmark_worlds.layouts.fgvcx_fungi import EXTENTS, FgvcxExtent
from fieldmark_worlds.layouts.release_files import finding_rng
from fieldmark_worlds.nature.nature import NatureSettings, grow_nature

NAME = "fgvcx-fungi-2018"
PAGE = DOCS / "fgvcx.md"
COMMANDS = [line for line in re.findall(r"^fieldmark (.*)$", PAGE.read_text(), re.MULTILINE) if "data/" not in line]
# A world of the same make with a quarter of the photos: most of the time goes into painting.
LITTLE = FgvcxExtent(
    NatureSettings(species=5, genera=2, kingdom=FUNGI, zipf=0.0, year_walk=0.0, newcomers=0.0, observers=5),
    finds=400,
    train_photos=30,
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder in which every command of the page was run, and what each printed."""
    folder = tmp_path_factory.mktemp("page")
    printed: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setitem(EXTENTS, "tiny", LITTLE)
        for command in COMMANDS:
            done = CliRunner().invoke(app, shlex.split(command))
            assert done.exit_code == 0, f"{command}: {done.output} {done.exception!r}"
            printed[command] = done.stdout
    return folder, printed


@pytest.fixture(scope="module")
def world(made) -> Path:
    return made[0] / "my-world"


def listed(world: Path, part: str) -> dict[str, Any]:
    return json.loads((world / f"{part}.json").read_text())


def test_the_page_shows_every_verb_at_work(made):
    verbs = {command.split()[0] for command in made[1]}
    assert verbs == {"world", "check", "fit", "score", "report", "predict", "truth", "export"}


def test_every_quirk_of_the_release_is_there(world):
    train, test = listed(world, "train"), listed(world, "test")
    names = [category["name"] for category in train["categories"]]
    assert len(set(names)) == len(names) - 1
    assert any(name.endswith(" ") for name in names) and any(" var. " in name for name in names)
    assert sum(folder.name.endswith(" ") for folder in (world / "images").iterdir()) == 1
    assert train["categories"] == listed(world, "val")["categories"]
    assert set(test) == {"info", "images", "licenses"}
    assert all(set(image) == {"file_name", "license", "id"} for image in test["images"])
    ids = [image["id"] for part in ("train", "val", "test") for image in listed(world, part)["images"]]
    assert len(set(ids)) == len(ids) and min(ids) >= 8192 and max(ids) - min(ids) > 10 * len(ids)


def test_val_has_three_photos_of_every_species_and_test_seven(world):
    categories = len(listed(world, "train")["categories"])
    val = pl.DataFrame(listed(world, "val")["annotations"])["category_id"].value_counts()["count"]
    test = pl.read_csv(world / "solution.csv")["expected"].value_counts()["count"]
    assert (len(val), set(val), len(test), set(test)) == (categories, {3}, categories, {7})


def test_the_world_is_sound_and_its_counts_are_those_it_says(world):
    report = CHECKS["fgvcx-fungi-2018"](Release(world), media=True)
    mark = json.loads((world / "WORLD.json").read_text())
    assert report.sound and report.simulated
    assert not [problem.what for problem in report.problems if problem.severity != "note"]
    for part in report.counts:
        assert part.found.photos == mark["counts"][part.part]["photos"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("size", "photos", "species"), [("tiny", (230, 320), 13), ("small", (2_400, 3_300), 70)])
def test_sizes_hold_for_any_seed(size, photos, species, seed):
    seen, parts = fgvcx_fungi.find(grow_nature(EXTENTS[size].nature, seed), EXTENTS[size], finding_rng(seed))
    there = np.unique(seen.species)
    assert photos[0] <= len(seen) <= photos[1] and len(there) >= species
    for part, least in (("train", 3), ("val", 3), ("test", 7)):
        assert np.bincount(seen.species[parts == part])[there].min() >= least


def test_equal_seeds_give_equal_photos_and_others_do_not():
    def photos(seed: int) -> pl.DataFrame:
        nature, rng = grow_nature(EXTENTS["tiny"].nature, seed), finding_rng(seed)
        seen, parts = fgvcx_fungi.find(nature, EXTENTS["tiny"], rng)
        categories = fgvcx_fungi.name_categories(nature, np.unique(seen.species), rng)
        return fgvcx_fungi.photo_table(seen, parts, categories, rng)

    assert photos(1).equals(photos(1)) and not photos(1).equals(photos(2))


def test_the_run_is_scored_on_test_by_both_rules_and_boards(made):
    card = Scorecard.read(made[0] / "runs" / "linear" / "scorecard.json")
    assert (card.split, card.provenance["simulated"]) == ("test", True)
    assert list(card.metrics) == ["top_5_error", "top_3_error"]
    assert card.metrics["top_5_error"].value <= card.metrics["top_3_error"].value
    assert set(card.groups["usage"]) == {"Public", "Private"}
    again = fieldmark.score(NAME, made[0] / "runs" / "linear", data=made[0] / "my-world")
    assert again.metrics == card.metrics


def test_the_submission_lists_three_ids_for_every_photo_of_test(made):
    rows = pl.read_csv(made[0] / "submission.csv", infer_schema=False)
    assert rows.columns == ["id", "predicted"]
    assert set(rows["id"]) == {str(image["id"]) for image in listed(made[0] / "my-world", "test")["images"]}
    assert {len(line.split(" ")) for line in rows["predicted"]} == {3}
    card = fieldmark.score(NAME, made[0] / "submission.csv", data=made[0] / "my-world")
    full = Scorecard.read(made[0] / "runs" / "linear" / "scorecard.json")
    assert card.metrics["top_3_error"] == full.metrics["top_3_error"]


def test_boards_score_as_a_naive_program_scores_them(made):
    """As the challenge describes it: the share of photos whose category, as text, is not among the first three."""
    world, submission = made[0] / "my-world", (made[0] / "submission.csv").read_text().splitlines()[1:]
    answers = {line.split(",")[0]: line.split(",")[1].split(" ") for line in submission}
    wrong: dict[str, list[bool]] = {}
    for line in (world / "solution.csv").read_text().splitlines()[1:]:
        item, expected, usage = line.split(",")
        wrong.setdefault(usage, []).append(expected not in answers[item][:3])
    card = fieldmark.score(NAME, made[0] / "submission.csv", data=world)
    for usage, errors in wrong.items():
        assert card.groups["usage"][usage]["top_3_error"].value == pytest.approx(sum(errors) / len(errors))


def test_a_submission_of_another_length_is_refused(made):
    arguments = ["predict", "runs/linear", "--data", "my-world", "--answers", "2", "--out", "no.csv"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made[0])
        done = CliRunner().invoke(app, arguments)
    assert "A line lists 3 to 5 answers, not 2." in str(done.exception) and not (made[0] / "no.csv").exists()


def test_external_data_are_declared_on_scorecard_page_and_model(made):
    folder, printed = made
    imagenet = "ImageNet, by the pre-trained weights of efficientnet_lite0"
    card = Scorecard.read(folder / "runs" / "linear" / "scorecard.json")
    assert card.provenance["external_data"] == [imagenet]
    assert imagenet in (folder / "runs" / "linear" / "report.html").read_text()
    assert fieldmark.load_model(folder / "runs" / "linear").trained["external_data"] == [imagenet]
    stated = [text for command, text in printed.items() if "--external-data" in command]
    assert "external data: a checklist of Danish fungi\n" in stated[0]


def test_fine_tuning_declares_the_weights_it_starts_from():
    finetune = METHODS["finetune"]
    assert finetune(network="resnet10t", weights="pretrained").external_data == (
        "the pre-trained weights of resnet10t",
    )
    assert finetune(network="resnet10t", weights="random").external_data == ()


def test_a_part_comes_back_from_coco_as_it_was(made):
    ours, theirs = json.loads((made[0] / "train-again.json").read_text()), listed(made[0] / "my-world", "train")
    extra = {"observation_id"}
    assert {image["id"]: {k: v for k, v in image.items() if k not in extra} for image in ours["images"]} == {
        image["id"]: image for image in theirs["images"]
    }
    kept = ("id", "name", "supercategory")
    assert [{key: category[key] for key in kept} for category in ours["categories"]] == theirs["categories"]
    assert ours["licenses"] == theirs["licenses"]
    pairs = [{(a["image_id"], a["category_id"]) for a in data["annotations"]} for data in (ours, theirs)]
    assert pairs[0] == pairs[1] and len(ours["annotations"]) == len(theirs["annotations"])
