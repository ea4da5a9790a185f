"""Semi-iNat and Semi-Aves: what the readers take, what they refuse, and what a check says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.releases import open_dataset
from fieldmark.releases.checks import CHECKS
from fieldmark.releases.semi.photo_lists import read_list
from fieldmark.storage.release import Release
from fieldmark_tests.fixtures import save_photo

RANKS = ("kingdom", "phylum", "class", "order", "family", "genus", "species")
SNAIL = dict(
    zip(RANKS, ("Animalia", "Mollusca", "Gastropoda", "S", "Helicidae", "Helix", "Helix pomatia"), strict=True)
)
MOSS = dict(
    zip(RANKS, ("Plantae", "Bryophyta", "Bryopsida", "H", "Hypnaceae", "Hypnum", "Hypnum jutlandicum"), strict=True)
)
FERN = dict(zip(RANKS, ("Plantae", "Tracheophyta", "P", "P", "Pteridaceae", "Pteris", "Pteris cretica"), strict=True))


@pytest.fixture
def inat(tmp_path) -> Path:
    root = tmp_path / "inat"
    paths = (
        "l_train/0/0.jpg",
        "l_train/1/0.jpg",
        "val/0/0.jpg",
        "val/1/0.jpg",
        "test/ab.jpg",
        "u_train/x.jpg",
        "u_train/y.jpg",
    )
    for number, path in enumerate(paths):
        save_photo(root / path, (90, 90, 90), seed=number)
    coarse = [
        {"image_name": "x.jpg", "kingdom": "Animalia", "phylum": "Mollusca"},
        {"image_name": "y.jpg", "kingdom": "Plantae", "phylum": "Tracheophyta"},
    ]
    (root / "annotation_v2.json").write_text(
        json.dumps({"annotations": [{"class_id": 0, **SNAIL}, {"class_id": 1, **MOSS}], "unlabeled_taxa": coarse})
    )
    labels = root / "labels"
    labels.mkdir()
    (labels / "all_taxa_info.json").write_text(json.dumps({"0": SNAIL, "1": MOSS, "2": FERN}))
    (labels / "test.txt").write_text("test/ab.jpg 1\n")
    (labels / "u_train_in.txt").write_text("u_train/x.jpg 0\n")
    (labels / "u_train_out.txt").write_text("u_train/y.jpg 2\n")
    return root


@pytest.fixture
def aves(tmp_path) -> Path:
    root = tmp_path / "aves"
    root.mkdir()

    def annotate(name: str, files: list[str], classes: list[int]) -> None:
        images = [{"file_name": file, "id": number} for number, file in enumerate(files)]
        told = [{"image_id": number, "id": number, "category_id": one} for number, one in enumerate(classes)]
        (root / f"anno_{name}.json").write_text(json.dumps({"images": images, "annotations": told}))

    annotate("l_train", ["trainval_images/0/0.jpg", "trainval_images/1/0.jpg"], [0, 1])
    annotate("val", ["trainval_images/0/1.jpg", "trainval_images/1/1.jpg"], [0, 1])
    annotate("u_train_in", ["u_train_in/0.jpg"], [-1])
    annotate("u_train_out", ["u_train_out/0.jpg"], [-1])
    annotate("test", ["test/0.jpg", "test/1.jpg"], [])
    (root / "solution.csv").write_text("Id,Category\n0,1\n1,0\n")
    (root / "semi_aves_class_names.txt").write_text("0 Anas_acuta\n1 Buteo_buteo\n")
    return root


def by_id(data) -> dict[str, dict]:
    return {row["observation_id"]: row for row in data.observations.to_dicts()}


def test_coarse_and_hidden_labels_stand_apart_from_labels(inat):
    rows = by_id(open_dataset("semi-inat-2021", inat))
    assert rows["l_train/1/0.jpg"]["label"] == "1" and rows["l_train/1/0.jpg"]["phylum"] == "Bryophyta"
    assert rows["ab.jpg"]["label"] == "1"  # as runs call it
    unlabeled = [rows[f"u_train/{name}.jpg"] for name in "xy"]
    assert [row["label"] for row in unlabeled] == [None, None]
    assert [row["phylum"] for row in unlabeled] == ["Mollusca", "Tracheophyta"]
    assert [(row["hidden_label"], row["membership"]) for row in unlabeled] == [("0", "in-class"), ("2", "out-of-class")]


def test_the_classes_are_the_in_class_species_alone(inat):
    data = open_dataset("semi-inat-2021", inat)
    assert data.taxa["label"].to_list() == ["0", "1"]
    assert data.taxa["scientific_name"].to_list() == ["Helix pomatia", "Hypnum jutlandicum"]


def test_a_photo_of_two_classes_is_refused_with_its_line(inat):
    (inat / "labels" / "val.txt").write_text("val/0/0.jpg 0\nval/1/0.jpg 0\n")
    with pytest.raises(InputError, match=r"val\.txt, line 2: .*class 0.*expected class 1"):
        open_dataset("semi-inat-2021", inat)


def test_a_class_that_the_annotations_do_not_name_is_refused(inat):
    save_photo(inat / "l_train" / "7" / "0.jpg", (1, 1, 1), seed=1)
    with pytest.raises(InputError, match="the class '7'"):
        open_dataset("semi-inat-2021", inat)


def test_paths_of_lists_may_contain_spaces(tmp_path):
    (tmp_path / "u_train_in.txt").write_text("images/12_Agaricus arvensis/photo one.JPG 3\nimages/a.JPG -1\n")
    assert read_list(Release(tmp_path), "u_train_in.txt") == [
        ("images/12_Agaricus arvensis/photo one.JPG", "3"),
        ("images/a.JPG", None),
    ]


@pytest.mark.parametrize("line", ["images/a.jpg", "images/a.jpg three", "3"])
def test_a_line_without_a_class_is_refused(tmp_path, line):
    (tmp_path / "l.txt").write_text(f"a.jpg 1\n{line}\n")
    with pytest.raises(InputError, match=r"l\.txt, line 2"):
        read_list(Release(tmp_path), "l.txt")


def test_a_check_names_both_readings_of_what_the_document_says_twice(inat):
    report = CHECKS["semi-inat-2021"](Release(inat))
    told = {one.what: one.places for one in report.problems if one.severity == "note"}
    coarse = next(places for what, places in told.items() if "abstract" in what and "section 2" in what)
    assert coarse == ("here: 2 of 2 unlabeled photos have a phylum (1 of 1 in-class, 1 of 1 out-of-class)",)
    animals = next(places for what, places in told.items() if "2439 animal species" in what)
    assert animals == ("here: 3 species, 1 of them animals",)


def test_a_check_counts_species_by_phylum_in_class_and_out(inat):
    counts = {one.part: one for one in CHECKS["semi-inat-2021"](Release(inat)).counts}
    fern = counts["species of Tracheophyta"]
    assert (fern.found.classes, fern.found.unknown_classes) == (0, 1)
    assert fern.published["Semi-iNat 2021, table 1"].unknown_classes == 674


def test_a_missing_photo_is_an_error_of_the_check(inat):
    (inat / "labels" / "l_train.txt").write_text("l_train/0/9.jpg 0\n")
    report = CHECKS["semi-inat-2021"](Release(inat), media=True)
    assert not report.sound and [one.places for one in report.problems if one.severity == "error"] == [
        ("l_train/0/9.jpg",)
    ]


def test_semi_aves_opens_from_its_annotations_and_solution(aves):
    data = open_dataset("semi-aves-2020", aves)
    rows = by_id(data)
    assert (rows["0"]["label"], rows["1"]["label"]) == ("1", "0")
    assert rows["u_train_out/0.jpg"]["membership"] == "out-of-class" and rows["u_train_out/0.jpg"]["label"] is None
    assert data.taxa["species"].to_list() == ["Anas acuta", "Buteo buteo"]
    parts = dict(data.media.select("media_id", "parts").iter_rows())
    assert parts["u_train_in/0.jpg"] == ["u_train", "u_train_in"]


def test_the_subset_in_leaves_out_of_class_photos_out(aves):
    media = open_dataset("semi-aves-2020", aves, "in").media["media_id"].to_list()
    assert "u_train_in/0.jpg" in media and "u_train_out/0.jpg" not in media
    with pytest.raises(MisuseError, match="no subset called 'out'"):
        open_dataset("semi-aves-2020", aves, "out")


def test_a_solution_of_other_photos_is_refused(aves):
    (aves / "solution.csv").write_text("Id,Category\n0,1\n2,0\n")
    with pytest.raises(InputError, match="the id '2', which test does not have"):
        open_dataset("semi-aves-2020", aves)


def test_the_public_and_the_private_test_are_two_parts_with_two_scores(aves, inat):
    (aves / "solution.csv").write_text("Id,Category,Usage\n0,1,Public\n1,0,Private\n")
    counts = {one.part: one for one in CHECKS["semi-aves-2020"](Release(aves)).counts}
    assert counts["test, public"].found.photos == counts["test, private"].found.photos == 1
    assert counts["test, private"].published["Semi-iNat 2021, table 2"].photos == 4_000
    run = {"Id": ["0", "1"], "Category": ["1", "1"]}
    card = fieldmark.score("semi-aves-2020", run, data=aves)
    assert card.groups["test_part"]["public"]["top_1"].value == 1.0
    assert card.groups["test_part"]["private"]["top_1"].value == 0.0
    (inat / "labels" / "solution.csv").write_text("Id,Category,Usage\nab.jpg,1,Private\n")
    assert by_id(open_dataset("semi-inat-2021", inat))["ab.jpg"]["test_part"] == "private"
    (inat / "labels" / "solution.csv").write_text("Id,Category,Usage\nab.jpg,1,both\n")
    with pytest.raises(InputError, match="line 2: found the usage 'both', expected Public or Private"):
        open_dataset("semi-inat-2021", inat)


def test_a_release_without_a_solution_has_the_digest_it_had(inat):
    plain = open_dataset("semi-inat-2021", inat)
    assert plain.observations["test_part"].is_null().all()
    (inat / "labels" / "solution.csv").write_text("Id,Category,Usage\nab.jpg,1,Private\n")
    assert open_dataset("semi-inat-2021", inat).digest == plain.digest
