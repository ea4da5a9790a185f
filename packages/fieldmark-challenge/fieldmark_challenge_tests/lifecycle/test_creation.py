"""Challenges made from releases and from files: truth, samples, parts, and what will not do."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.scoring.score_parts import truth_files
from fieldmark.tables.labels import Labels
from fieldmark.web.refusals import RefusalError
from fieldmark_challenge.challenges import offered_files
from fieldmark_challenge.lifecycle import creation
from fieldmark_challenge.records.schema import Challenge, DataFile, Submission, Team
from fieldmark_challenge.submissions.uploads import checklist
from fieldmark_challenge_tests.platform import Platform

HOSTED = [name for name in BENCHMARKS if BENCHMARKS[name].task.run.hosted]


@pytest.mark.parametrize("name", HOSTED)
def test_the_sample_run_of_every_benchmark_is_a_valid_run(name, tmp_path):
    task = BENCHMARKS[name].task
    items = ("rec/0", "rec/5", "other/0") if task.items.noun == "segment" else ("x1", "x2", "x3")
    labels = Labels(tuple(f"label{number}" for number in range(40)))
    offered_files.write_sample(tmp_path / "run.csv", task, items, labels)
    read = task.run.read(tmp_path / "run.csv", items, labels, unknown=task.unknown)
    assert read.items == items


def test_a_challenge_from_a_release_has_its_truth_and_a_baseline(small_platform: Platform, make_release):
    platform = small_platform
    with creation.material_of_release("folder", make_release(per_class=24)) as material:
        new = creation.NewChallenge("photos", "folder", public_share=0.5)
        made = creation.create_challenge(platform.database, platform.storage, platform.admin, new, material)
    assert (made.items, made.units, made.units_public, made.classes) == (18, 18, 9, 3)
    assert len(checklist(platform.storage, made).items) == 18
    with platform.database.read() as session:
        names = {file.name for file in session.query(DataFile).filter_by(challenge_id=made.id)}
        baseline = session.query(Submission).join(Team).filter(Team.challenge_id == made.id).one()
        assert baseline.team.kind == "baseline" and not baseline.counted
    assert names == {"sample_run.csv", "items.csv", "labels.csv"}


def test_which_units_are_public_cannot_be_guessed(small_platform: Platform):
    drawn = set()
    for number in range(3):
        with creation.material_of_files("folder", small_platform.folder / "tiny-truth.csv") as material:
            new = creation.NewChallenge(f"drawn-{number}", "folder", public_share=0.5)
            creation.create_challenge(
                small_platform.database, small_platform.storage, small_platform.admin, new, material
            )
            drawn.add((material.folder / "parts.csv").read_text())
    assert len(drawn) == 3


def test_soundscapes_are_hosted_from_their_tables(small_platform: Platform, tmp_path):
    platform = small_platform
    (tmp_path / "t.csv").write_text("r1;jay;00:00:00-00:00:05\nr2;owl;00:00:05-00:00:10\nr3;jay;00:00:00-00:00:02\n")
    (tmp_path / "m.csv").write_text("MediaId,seconds,site\n" + "".join(f"r{n},10,s{n % 2}\n" for n in range(1, 5)))
    with creation.material_of_files("birdclef-2020", tmp_path / "t.csv", None, tmp_path / "m.csv") as material:
        new = creation.NewChallenge("birds", "birdclef-2020", public_share=0.5)
        made = creation.create_challenge(platform.database, platform.storage, platform.admin, new, material)
    assert (made.items, made.units, made.classes) == (8, 4, 2)
    # Equal scores decide nothing unless the organizer wants it so.
    assert made.metric == "cmap_expected" and not made.simulated


def test_an_organizer_may_choose_the_metric_that_decides_and_a_world_is_shown_as_one(
    small_platform: Platform, tmp_path
):
    platform = small_platform
    (tmp_path / "t.csv").write_text("r1;jay;00:00:00-00:00:05\nr2;owl;00:00:05-00:00:10\nr3;jay;00:00:00-00:00:02\n")
    rows = "".join(f"r{n},10,s{n % 2},true\n" for n in range(1, 5))
    (tmp_path / "m.csv").write_text("MediaId,seconds,site,simulated\n" + rows)
    with creation.material_of_files("birdclef-2020", tmp_path / "t.csv", None, tmp_path / "m.csv") as material:
        new = creation.NewChallenge("worldly-birds", "birdclef-2020", public_share=0.5, metric="cmap")
        made = creation.create_challenge(platform.database, platform.storage, platform.admin, new, material)
        assert made.metric == "cmap" and made.simulated
        wrong = creation.NewChallenge("no-birds", "birdclef-2020", public_share=0.5, metric="accuracy")
        with pytest.raises(MisuseError, match="birdclef-2020 has no metric 'accuracy'"):
            creation.create_challenge(platform.database, platform.storage, platform.admin, wrong, material)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"slug": "Not A Slug"}, "small letters"),
        ({"public_share": 0.001}, "both parts need"),
        ({"daily_limit": 0}, "from 1 on"),
        ({"slug": "tiny"}, "already"),
    ],
)
def test_what_will_not_do_is_said_and_nothing_is_made(small_platform: Platform, settings, sentence):
    with pytest.raises((RefusalError, MisuseError), match=sentence):
        small_platform.make(**{"slug": "other"} | settings)
    with small_platform.database.read() as session:
        assert session.query(Challenge).count() == 1


def test_masks_are_hosted_from_a_folder_of_pictures_and_kept_as_a_table(small_platform: Platform, tmp_path):
    platform = small_platform
    for number in range(8):
        for part in ("cap", "stem"):
            (tmp_path / "masks" / part).mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.eye(4, 6, number % 3, dtype=bool)).save(tmp_path / f"masks/{part}/{number}.png")
    with creation.material_of_files("folder/segmentation", tmp_path / "masks") as material:
        new = creation.NewChallenge("parts", "folder/segmentation", public_share=0.5)
        made = creation.create_challenge(platform.database, platform.storage, platform.admin, new, material)
        kept = truth_files(material.folder)
    assert kept["truth"].name == "truth.parquet"
    assert (made.items, made.units, made.units_public, made.classes) == (8, 8, 4, 2)
    with platform.database.read() as session:
        names = {file.name for file in session.query(DataFile).filter_by(challenge_id=made.id)}
    assert names == {"sample_run.parquet", "items.csv", "labels.csv"}


def test_a_challenge_of_masks_from_a_release_has_an_ellipse_to_beat(small_platform: Platform, tmp_path):
    write_photos(tmp_path, 12)
    with creation.material_of_release("folder/segmentation", tmp_path) as material:
        ((title, run, _),) = material.baselines
        assert title == "center ellipse" and run.name == "run.parquet"
        new = creation.NewChallenge("bodies", "folder/segmentation", public_share=0.5)
        made = creation.create_challenge(
            small_platform.database, small_platform.storage, small_platform.admin, new, material
        )
    assert made.items == made.units == 4


def write_photos(root, number: int) -> None:
    """Gray photos with white squares, and masks of these."""
    for folder in ("images", "masks"):
        (root / folder).mkdir()
    rows = ["file,part"]
    for place in range(number):
        mask = np.zeros((24, 32), dtype=bool)
        mask[4 : 16 + place % 4, 6:20] = True
        Image.fromarray(np.where(mask, 255, 90).astype(np.uint8)).convert("RGB").save(root / f"images/{place}.png")
        Image.fromarray(mask).save(root / f"masks/{place}.png")
        rows.append(f"{place}.png,{('train', 'val', 'test')[place % 3]}")
    (root / "observations.csv").write_text("\n".join(rows) + "\n")
