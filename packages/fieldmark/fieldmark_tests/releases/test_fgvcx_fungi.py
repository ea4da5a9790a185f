from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import fieldmark
from fieldmark.errors import InputError
from fieldmark.releases.checks import CHECKS
from fieldmark.tables.scientific_names import parse_name
from fieldmark_tests.releases.fgvcx_by_hand import CATEGORIES, PHOTOS, edit_json, folder_of, write_fgvcx

NAME = "fgvcx-fungi-2018"


@pytest.fixture
def root(tmp_path):
    return write_fgvcx(tmp_path / "release")


def opened(root):
    return fieldmark.dataset(NAME, root)


def test_every_photo_is_listed_once_in_its_part_and_opens(root):
    dataset = opened(root)
    parts = dataset.media.explode("parts")["parts"].value_counts()
    assert dict(parts.iter_rows()) == {part: 5 * photos for part, photos in PHOTOS.items()}
    assert all(dataset.read_medium(media_id)[:2] == b"\xff\xd8" for media_id in dataset.media["media_id"])
    assert dataset.remarks == ()


def test_the_id_of_a_photo_is_the_number_that_a_run_file_asks_for(root):
    images = json.loads((root / "test.json").read_text())["images"]
    ids = opened(root).media.filter(pl.col("parts").list.contains("test"))["media_id"]
    assert ids.to_list() == [str(image["id"]) for image in images]


def test_a_name_that_occurs_twice_stays_two_classes(root):
    taxa = opened(root).taxa
    assert taxa["label"].to_list() == ["0", "1", "2", "3", "4"]
    assert taxa.filter(pl.col("scientific_name") == "Inocybe rimosa")["label"].to_list() == ["0", "1"]


def test_names_give_ranks_and_are_kept_as_they_are(root):
    taxa = opened(root).taxa
    assert taxa["name"].to_list() == [name for _, name in CATEGORIES.values()]
    assert taxa.row(2, named=True)["infraspecific"] == "f. azonites"
    assert taxa["species"].to_list()[2:] == ["Lactarius azonites", "Hygrocybe conica", "Xylodon flaviporus"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Entoloma sericeum var. cinereo-opacum", ("Entoloma", "Entoloma sericeum", "var. cinereo-opacum")),
        ("Hygrocybe acutoconica sensu lato", ("Hygrocybe", "Hygrocybe acutoconica", None)),
        ("Russula sp.", ("Russula", None, None)),
        ("Amanita muscaria (L.) Lam. var. formosa Pers.", ("Amanita", "Amanita muscaria", "var. formosa")),
        ("fungi", (None, None, None)),
    ],
)
def test_ranks_are_read_from_names_as_far_as_names_give_them(name, expected):
    assert tuple(parse_name(name)) == expected


def test_licenses_and_rights_holders_are_kept(root):
    media = opened(root).media
    assert set(media["license"]) == {"CC BY-NC 4.0"}
    test = media["parts"].list.contains("test")
    assert media.filter(test)["rights_holder"].null_count() == test.sum()
    assert set(media.filter(~test)["rights_holder"]) == {f"Holder {n}" for n in range(4)}


def test_the_solution_is_the_truth_of_test_and_says_which_board(root):
    card = _score_of_the_truth(root, "solution.csv")
    assert card.metrics["top_3_error"].value == 0.0 and card.items == 10
    assert set(card.groups["usage"]) == {"Public", "Private"}


def test_a_solution_by_another_name_counts(root):
    (root / "solution.csv").rename(root / "fungi_private.csv")
    assert _score_of_the_truth(root, "fungi_private.csv").metrics["top_5_error"].value == 0.0


def _score_of_the_truth(root, solution):
    run = root.parent / "run.csv"
    rows = pl.read_csv(root / solution, infer_schema=False)
    others = [" ".join(str(n) for n in range(5) if str(n) != label) for label in rows["expected"]]
    answers = [
        f"{item}, {label} {rest}" for item, label, rest in zip(rows["id"], rows["expected"], others, strict=True)
    ]
    run.write_text("id,predicted\n" + "\n".join(answers) + "\n")
    return fieldmark.score(NAME, run, data=root)


@pytest.mark.parametrize(
    ("removed", "remark"),
    [
        (("solution.csv",), "Labels are not published for test; val is scored in their place."),
        (("train.json", "val.json", "solution.csv"), "Not there: train.json, val.json."),
        (("train.json", "val.json", "solution.csv"), "No file lists the categories, so that there are no classes."),
        (("images",), "The photos in images/ are not there: only their annotations can be read."),
        (("test",), "The photos in test/ are not there: only their annotations can be read."),
    ],
)
def test_a_partial_release_opens_and_says_what_is_missing(root, removed, remark):
    for name in removed:
        shutil.rmtree(root / name) if (root / name).is_dir() else (root / name).unlink()
    assert remark in opened(root).remarks


def test_fitting_without_train_says_what_is_missing(root, tmp_path):
    (root / "train.json").unlink()
    with pytest.raises(InputError, match=r"found no items for train, expected at least one\. Not there: train\.json\."):
        fieldmark.fit(NAME, root, "frequent", tmp_path / "run")


def test_a_list_of_categories_alone_opens(tmp_path):
    listed = {"class_names": {"0": "0571.Lactarius azonites f. azonites ", "1": "0002.Amanita citrina"}}
    (tmp_path / "fungi_dataset_spec.json").write_text(json.dumps(listed))
    dataset = opened(tmp_path)
    assert dataset.taxa["label"].to_list() == ["2", "571"] and dataset.media.is_empty()


def test_a_folder_that_lost_the_space_at_its_end_is_found(root):
    folder = root / "images" / folder_of(2)
    folder.rename(folder.with_name(folder.name.rstrip()))
    dataset = opened(root)
    assert all(dataset.read_medium(media_id) for media_id in dataset.media["media_id"])


def test_an_id_of_test_that_train_uses_again_stays_as_it_is_in_test(root):
    test_id = json.loads((root / "test.json").read_text())["images"][0]["id"]

    def change(data):
        data["annotations"][0]["image_id"] = data["images"][0]["id"] = test_id

    edit_json(root / "train.json", change)
    media = opened(root).media
    assert media.filter(pl.col("media_id") == str(test_id))["parts"].to_list() == [["test"]]
    assert f"train-{test_id}" in media["media_id"]


def test_photos_without_an_annotation_are_in_no_part(root):
    edit_json(root / "train.json", lambda data: data["annotations"].pop())
    dataset = opened(root)
    assert "1 photo(s) of train or val have no annotation and are in no part." in dataset.remarks
    assert dataset.media["parts"].list.len().to_list().count(0) == 1


@pytest.mark.parametrize(
    ("file", "change", "sentence"),
    [
        (
            "train.json",
            lambda d: d["images"][1].update(id=d["images"][0]["id"]),
            "more than once, expected each id once",
        ),
        ("train.json", lambda d: d["images"][3].pop("file_name"), "found None as 'file_name' of entry 3 of 'images'"),
        ("train.json", lambda d: d["annotations"][0].update(category_id=77), "found the category 77 for image"),
        ("val.json", lambda d: d["categories"][0].update(name="Amanita muscaria"), "expected one meaning for each id"),
        ("test.json", lambda d: d.pop("images"), "found the keys info, licenses, expected a list 'images'"),
        (
            "train.json",
            lambda d: d["annotations"].append({"image_id": d["images"][0]["id"], "category_id": 4}),
            "in 0 and 4, expected one category per image",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_with_file_and_entry(root, file, change, sentence):
    edit_json(root / file, change)
    with pytest.raises(InputError) as refused:
        opened(root)
    assert sentence in str(refused.value)


def test_a_file_that_was_cut_off_is_named_with_its_line(root):
    (root / "train.json").write_text((root / "train.json").read_text()[:-40])
    with pytest.raises(InputError, match=r"train\.json, line 1: found something unreadable"):
        opened(root)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [("8229,99,Public", "line 2: found the category '99'"), ("8229,,Public", "line 2: found no id or no category")],
)
def test_a_solution_with_a_wrong_line_is_refused(root, line, sentence):
    (root / "solution.csv").write_text(f"id,expected,usage\n{line}\n")
    with pytest.raises(InputError, match=sentence):
        opened(root)


def test_an_empty_folder_is_refused_with_advice(tmp_path):
    with pytest.raises(InputError, match=r"found none of train\.json, val\.json and test\.json"):
        opened(tmp_path)


def in_the_tree_of_the_draft(root: Path) -> Path:
    """Moves the photos of train and val to `train_val_images/<super category>/<category>/`, as the draft had it."""
    for part in ("train", "val"):
        data = json.loads((root / f"{part}.json").read_text())
        names = {one["id"]: one["name"] for one in data["categories"]}
        category_of = {one["image_id"]: one["category_id"] for one in data["annotations"]}
        for image in data["images"]:
            category = category_of[image["id"]]
            name = f"train_val_images/Fungi/{category} {names[category]}/{Path(image['file_name']).name}"
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / image["file_name"]).rename(root / name)
            image["file_name"] = name
        (root / f"{part}.json").write_text(json.dumps(data))
    shutil.rmtree(root / "images")
    return root


def test_the_folder_tree_of_the_draft_opens_and_checks_as_well(tmp_path):
    usual = opened(write_fgvcx(tmp_path / "usual"))
    draft = opened(in_the_tree_of_the_draft(write_fgvcx(tmp_path / "draft")))
    assert draft.remarks == usual.remarks and len(draft.media) == len(usual.media)
    assert [draft.read_medium(one) for one in draft.media["media_id"]] == [
        usual.read_medium(one) for one in usual.media["media_id"]
    ]
    report = CHECKS["fgvcx-fungi-2018"](draft.release)
    problems = {problem.what for problem in report.problems}
    assert not problems & {"an id has no photo", "a photo has no entry", "a folder of photos is missing"}


def test_folders_of_the_draft_that_lost_the_end_of_their_name_are_found(tmp_path):
    root = in_the_tree_of_the_draft(write_fgvcx(tmp_path / "draft"))
    ending = next(path for path in (root / "train_val_images/Fungi").iterdir() if path.name.endswith(" "))
    ending.rename(ending.with_name(ending.name.rstrip()))
    dataset = opened(root)
    assert all(dataset.read_medium(one) for one in dataset.media["media_id"])
