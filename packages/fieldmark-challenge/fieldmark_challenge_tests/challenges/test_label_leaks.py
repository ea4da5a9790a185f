from __future__ import annotations

import tarfile
import zipfile

import numpy as np
import polars as pl
import pytest

from fieldmark.questions.truth import Truth
from fieldmark_challenge.challenges import offered_files
from fieldmark_challenge.challenges.label_leaks import leaks_of, natural, runs_test, secret_order
from fieldmark_challenge.challenges.offered_files import ITEMS_FILE, LABELS_FILE
from fieldmark_challenge.lifecycle import creation
from fieldmark_challenge.records.schema import DataFile
from fieldmark_challenge.submissions.uploads import checklist
from fieldmark_challenge_tests.platform import Platform

CLASSES = 10
PER_CLASS = 20


def drawn_ids(seed: int = 0, count: int = CLASSES * PER_CLASS) -> list[str]:
    return [f"{number:08x}" for number in np.random.default_rng(seed).choice(2**32, count, replace=False)]


def make_truth(ids: list[str], labels: list[str]) -> Truth:
    return Truth(pl.DataFrame({"item_id": ids, "label": labels}), tuple(ids), tuple(ids))


SORTED = [f"class {number // PER_CLASS}" for number in range(CLASSES * PER_CLASS)]


def make_challenge(platform: Platform, slug: str, ids: list[str], labels: list[str]):
    path = platform.folder / f"{slug}.csv"
    rows = [f"{item},{label}" for item, label in zip(ids, labels, strict=True)]
    path.write_text("\n".join(["id,label", *rows, ""]))
    with creation.material_of_files("folder", path) as material:
        new = creation.NewChallenge(slug, "folder", public_share=0.5)
        return creation.create_challenge(platform.database, platform.storage, platform.admin, new, material)


def offered(platform: Platform, challenge, name: str) -> list[str]:
    with platform.database.read() as session:
        row = session.query(DataFile).filter_by(challenge_id=challenge.id, name=name).one()
        return b"".join(platform.storage.chunks(row.path)).decode().splitlines()[1:]


def test_equal_blocks_of_what_is_handed_out_score_no_better_than_chance(small_platform: Platform):
    """With a truth sorted by class, equal blocks of items.csv once scored 1.000 without a model."""
    ids = drawn_ids()
    made = make_challenge(small_platform, "sorted", ids, SORTED)
    label_of = dict(zip(ids, SORTED, strict=True))
    names = sorted(set(SORTED))
    for file in (ITEMS_FILE, "sample_run.csv"):
        listed = [line.partition(",")[0] for line in offered(small_platform, made, file)]
        assert sorted(listed) == sorted(ids) and listed != ids
        hits = [label_of[item] == names[place // PER_CLASS] for place, item in enumerate(listed)]
        assert np.mean(hits) < 0.3
        assert not runs_test([label_of[item] for item in listed]).leaks
    assert offered(small_platform, made, LABELS_FILE) == names


def test_the_secret_order_is_the_same_on_renewal_and_another_in_another_challenge(small_platform: Platform):
    ids = drawn_ids()
    one, other = (make_challenge(small_platform, slug, ids, SORTED) for slug in ("one", "other"))
    before = [offered(small_platform, one, file) for file in (ITEMS_FILE, "sample_run.csv")]
    offered_files.renew_lists(small_platform.database, small_platform.storage, small_platform.admin, one)
    assert [offered(small_platform, one, file) for file in (ITEMS_FILE, "sample_run.csv")] == before
    assert offered(small_platform, other, ITEMS_FILE) != before[0]
    assert secret_order(ids, b"key") == secret_order(ids[::-1], b"key") != secret_order(ids, b"another")


def test_what_runs_are_checked_against_says_nothing_of_the_order_of_the_truth(small_platform: Platform):
    made = make_challenge(small_platform, "sorted", drawn_ids(), SORTED)
    assert list(checklist(small_platform.storage, made).items) == sorted(drawn_ids())


def test_ids_that_sort_by_class_are_warned_of_and_drawn_ones_are_not(small_platform: Platform):
    numbered = [f"photo{number}" for number in range(len(SORTED))]
    made = make_challenge(small_platform, "numbered", numbered, SORTED)
    (sentence,) = creation.warnings_about(small_platform.database, small_platform.storage, made)
    assert sentence.startswith("The order of the ids tells labels (95% of neighbors have the same label, 10% by chance")
    assert "runs test of Wald and Wolfowitz" in sentence
    drawn = make_challenge(small_platform, "drawn", drawn_ids(), SORTED)
    assert creation.warnings_about(small_platform.database, small_platform.storage, drawn) == []


def test_photos_of_one_observation_stand_together_without_a_warning():
    rng = np.random.default_rng(2)
    units = [f"o{number // 4:03}" for number in range(400)]
    label_of = {unit: f"class {rng.integers(10)}" for unit in dict.fromkeys(units)}
    ids = [f"{unit}-{number}" for number, unit in enumerate(units)]
    rows = pl.DataFrame({"item_id": ids, "label": [label_of[unit] for unit in units]})
    assert leaks_of(Truth(rows, tuple(ids), tuple(units))) == []


def test_ids_that_take_turns_are_warned_of_too():
    ids = [f"{number:04}" for number in range(600)]
    (sentence,) = leaks_of(make_truth(ids, [f"class {number % 3}" for number in range(600)]))
    assert "0% of neighbors have the same label, 33% by chance" in sentence


def test_tables_and_archives_are_looked_into(tmp_path):
    ids = drawn_ids()
    truth = make_truth(ids, SORTED)
    (tmp_path / "test.csv").write_text("id,width\n" + "".join(f"{item},1\n" for item in ids))
    (tmp_path / "fine.csv").write_text("id,width\n" + "".join(f"{item},1\n" for item in sorted(ids)))
    (tmp_path / "about.csv").write_text("label,name\nclass 1,x\n")
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as packed:
        for item, label in sorted(zip(ids, SORTED, strict=True)):
            time = (2024, 1, 1 + int(label.split()[1]), 0, 0, 0)
            packed.writestr(zipfile.ZipInfo(f"photos/{item}.jpg", time), b"x" * 10)
    with tarfile.open(tmp_path / "photos.tar", "w") as tape:
        for item, label in sorted(zip(ids, SORTED, strict=True)):
            (tmp_path / "photo").write_bytes(b"x" * (100 + int(label.split()[1])))
            info = tape.gettarinfo(tmp_path / "photo", f"{label}/{item}.jpg")
            info.mtime = 0
            with (tmp_path / "photo").open("rb") as file:
                tape.addfile(info, file)
    names = ("test.csv", "fine.csv", "about.csv", "photos.zip", "photos.tar")
    found = leaks_of(truth, [tmp_path / name for name in names])
    assert [sentence.partition(" tells")[0].partition(" names")[0] for sentence in found] == [
        "test.csv: the order of its lines",
        "photos.zip: the time of its files",
        "photos.tar: the size of its files",
        f"photos.tar: {'/'.join(min(zip(ids, SORTED, strict=True))[::-1])}.jpg",
    ]


@pytest.mark.parametrize("sizes", [(30, 30), (5, 40, 15), (3,) * 20])
def test_the_runs_test_has_the_moments_of_all_orders(sizes):
    labels = [f"class {code}" for code, size in enumerate(sizes) for _ in range(size)]
    rng = np.random.default_rng(0)
    found = [runs_test(list(rng.permutation(labels))) for _ in range(3000)]
    assert np.mean([one.agreeing for one in found]) == pytest.approx(found[0].by_chance, rel=0.02, abs=0.002)
    assert 0.005 < np.mean([one.p_value < 0.05 for one in found]) < 0.06
    assert not any(one.leaks for one in found)


def test_numbers_in_ids_sort_by_their_size():
    assert sorted(["b2", "a10", "a9", "10", "9", "a"], key=natural) == ["9", "10", "a", "a9", "a10", "b2"]
