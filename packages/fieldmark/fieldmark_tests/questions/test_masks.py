from __future__ import annotations

import json
import shutil

import numpy as np
import polars as pl
import pytest
from PIL import Image
from sklearn.metrics import jaccard_score

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.runs.mask_files import MaskFiles, read_masks
from fieldmark.views.score_run import write_truth

NAME = "fungitastic-mini/segmentation"
PHOTOS = [f"{n % 2}-{1000 + n // 2}.JPG" for n in range(12)]  # two photos of each of six observations


def runs_of(mask: np.ndarray, *, box: bool) -> list[int]:
    flat = np.concatenate([[False], mask.ravel(), [not mask.ravel()[-1]]])
    changes = np.flatnonzero(np.diff(flat)).tolist()
    lengths = np.diff([0, *changes]).tolist()
    return [*lengths, 0, 0, 1, 1] if box else lengths


@pytest.fixture
def masks() -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    made = {}
    for photo in PHOTOS:
        cap, stem = rng.random((20, 30)) < 0.3, rng.random((20, 30)) < 0.2
        made[photo] = {"cap": cap, "stem": stem, "fruiting_body": cap | stem}
    return made


def write_parquet(path, masks, *, box: bool = True) -> None:
    rows = [
        {"file_name": photo, "label": part, "width": 30, "height": 20, "rle": runs_of(mask, box=box)}
        for photo, parts in masks.items()
        for part, mask in parts.items()
    ]
    pl.DataFrame(rows).write_parquet(path)


def other(masks, seed: int = 1):
    rng = np.random.default_rng(seed)
    return {
        p: {part: mask ^ (rng.random(mask.shape) < 0.1) for part, mask in parts.items()} for p, parts in masks.items()
    }


@pytest.mark.parametrize("box", [True, False])
def test_iou_is_the_mean_over_photos_and_miou_is_pooled_over_pixels(tmp_path, masks, box):
    answered = other(masks)
    write_parquet(tmp_path / "truth.parquet", masks, box=box)
    write_parquet(tmp_path / "run.parquet", answered, box=box)
    card = fieldmark.score(NAME, tmp_path / "run.parquet", truth=tmp_path / "truth.parquet")
    by_photo = [jaccard_score(masks[p]["fruiting_body"].ravel(), answered[p]["fruiting_body"].ravel()) for p in PHOTOS]
    assert card.metrics["iou"].value == pytest.approx(np.mean(by_photo))
    pooled = [
        jaccard_score(*(np.concatenate([m[p][part].ravel() for p in PHOTOS]) for m in (masks, answered)))
        for part in ("cap", "stem")
    ]
    assert card.metrics["miou"].value == pytest.approx(np.mean(pooled))
    assert (card.items, card.units, card.classes) == (12, 6, 2)
    assert card.metrics["iou"].low < card.metrics["iou"].value < card.metrics["iou"].high


def test_a_folder_of_pictures_of_another_size_is_scored_like_its_run_lengths(tmp_path, masks):
    write_parquet(tmp_path / "truth.parquet", masks)
    (tmp_path / "run").mkdir()
    for photo, parts in masks.items():
        large = Image.fromarray(parts["fruiting_body"]).resize((60, 40), Image.Resampling.NEAREST)
        large.save(tmp_path / "run" / photo.replace(".JPG", ".png"))
    card = fieldmark.score(NAME, tmp_path / "run", truth=tmp_path / "truth.parquet")
    assert card.metrics["iou"].value == 1.0
    assert "miou" not in card.metrics  # the run has no parts


def test_parts_may_lie_in_folders(tmp_path, masks):
    write_parquet(tmp_path / "truth.parquet", masks)
    for photo, parts in masks.items():
        for part in ("cap", "stem"):
            (tmp_path / "run" / part).mkdir(parents=True, exist_ok=True)
            Image.fromarray(parts[part]).save(tmp_path / "run" / part / f"{photo}.png")
    card = fieldmark.score(NAME, tmp_path / "run", truth=tmp_path / "truth.parquet")
    assert card.metrics["miou"].value == 1.0 and card.metrics["iou"].value == 1.0


def test_nothing_found_where_nothing_is_counts_one_and_spores_do_not_count(tmp_path):
    empty, dot = np.zeros((20, 30), dtype=bool), np.eye(20, 30, dtype=bool)
    truth = {"0-1.JPG": {"fruiting_body": empty}, "0-2.JPG": {"fruiting_body": dot}, "0-3.JPG": {"microscopic": dot}}
    write_parquet(tmp_path / "truth.parquet", truth)
    write_parquet(tmp_path / "run.parquet", {p: {"fruiting_body": empty} for p in truth})
    card = fieldmark.score(NAME, tmp_path / "run.parquet", truth=tmp_path / "truth.parquet")
    assert (card.items, card.metrics["iou"].value) == (2, 0.5)


def test_some_of_the_photos_are_compared_whether_or_not_there_are_parts(tmp_path, masks):
    task = BENCHMARKS[NAME].task
    for parts in (("fruiting_body",), ("cap", "stem")):
        shown = {photo: {part: own[part] for part in parts} for photo, own in masks.items()}
        write_parquet(tmp_path / "masks.parquet", shown)
        truth, labels, classes, _ = task.answer.given(task.items, tmp_path / "masks.parquet", None, None, ())
        found = task.answer.evaluate(truth.masks, truth, labels, classes, 1)
        few = found.take(np.arange(len(truth.items)) < 3)
        assert few.truth.items == truth.items[:3] and few.intersection.tolist() == found.intersection[:3].tolist()
        assert len(few.part_table[0]) == (3 if "cap" in parts else 0)


def test_only_the_pictures_of_photos_that_are_asked_about_are_opened(tmp_path, masks):
    write_parquet(tmp_path / "truth.parquet", masks)
    (tmp_path / "run").mkdir()
    for photo, own in masks.items():
        Image.fromarray(own["fruiting_body"]).save(tmp_path / "run" / f"{photo}.png")
    (tmp_path / "run" / "another.png").write_bytes(b"no picture")
    card = fieldmark.score(NAME, tmp_path / "run", truth=tmp_path / "truth.parquet")
    assert card.metrics["iou"].value == 1.0


def test_missing_broken_and_misfitting_masks_are_refused(tmp_path, masks):
    write_parquet(tmp_path / "truth.parquet", masks)
    with pytest.raises(InputError, match="no such file or directory, expected a folder of masks"):
        fieldmark.score(NAME, tmp_path / "absent", truth=tmp_path / "truth.parquet")
    (tmp_path / "run").mkdir()
    with pytest.raises(InputError, match="found no pictures"):
        fieldmark.score(NAME, tmp_path / "run", truth=tmp_path / "truth.parquet")
    (tmp_path / "run" / "0-1000.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="no mask for 11 of 12 photos"):
        fieldmark.score(NAME, tmp_path / "run", truth=tmp_path / "truth.parquet")
    rows = {
        "file_name": ["0-1.JPG"],
        "label": ["fruiting_body"],
        "width": [2],
        "height": [2],
        "rle": [[9, 1, 0, 0, 1, 1]],
    }
    pl.DataFrame(rows).write_parquet(tmp_path / "bad.parquet")
    with pytest.raises(InputError, match="row 0: found runs of 12 pixels"):
        fieldmark.score(NAME, tmp_path / "bad.parquet", truth=tmp_path / "bad.parquet")


@pytest.mark.parametrize(
    ("column", "value", "found"),
    [
        ("rle", None, "None as rle"),
        ("rle", [0, None, 2], "as rle"),
        ("rle", [], "runs of 0 pixels"),
        ("rle", [5, -1], "a negative run length"),
        ("rle", [0, 2, 1], "runs of 3 pixels"),
        ("width", None, "the width None"),
        ("height", 0, "the height 0"),
        ("width", 10**12, "a picture of 1000000000000 x 2"),
        ("label", None, "None as label"),
        ("file_name", " ", "' ' as file_name"),
    ],
)
def test_what_is_no_mask_is_refused_with_its_row(tmp_path, column, value, found):
    good = {"file_name": "0-1.JPG", "label": "cap", "width": 2, "height": 2, "rle": [0, 2, 2]}
    pl.DataFrame([good]).write_parquet(tmp_path / "truth.parquet")
    pl.DataFrame([good | {"file_name": "0-2.JPG"}, good | {column: value}]).write_parquet(tmp_path / "run.parquet")
    with pytest.raises(InputError, match=r"run\.parquet, row 1: found ") as refused:
        fieldmark.score(NAME, tmp_path / "run.parquet", truth=tmp_path / "truth.parquet")
    assert found in str(refused.value)


def test_pieces_of_a_part_and_masks_of_a_true_photo_have_one_size(tmp_path):
    good = {"file_name": "0-1.JPG", "label": "cap", "width": 2, "height": 2, "rle": [0, 2, 2]}
    pl.DataFrame([good]).write_parquet(tmp_path / "good.parquet")
    for label, found in (("cap", "found a picture of 4 x 1"), ("stem", "masks of 0-1 with 2 x 2 and 4 x 1 pixels")):
        pl.DataFrame([good, good | {"label": label, "width": 4, "height": 1}]).write_parquet(tmp_path / "bad.parquet")
        with pytest.raises(InputError, match=found):
            fieldmark.score(NAME, tmp_path / "good.parquet", truth=tmp_path / "bad.parquet")


def test_a_part_spelled_otherwise_is_refused_and_a_strange_one_counts_nothing(tmp_path):
    good = {"file_name": "0-1.JPG", "label": "cap", "width": 2, "height": 2, "rle": [0, 2, 2]}
    pl.DataFrame([good]).write_parquet(tmp_path / "truth.parquet")
    pl.DataFrame([good | {"label": "CAP "}]).write_parquet(tmp_path / "run.parquet")
    with pytest.raises(InputError, match="found the part 'CAP ', expected 'cap'"):
        fieldmark.score(NAME, tmp_path / "run.parquet", truth=tmp_path / "truth.parquet")
    pl.DataFrame([good | {"label": "hat"}]).write_parquet(tmp_path / "run.parquet")
    card = fieldmark.score(NAME, tmp_path / "run.parquet", truth=tmp_path / "truth.parquet")
    assert (card.metrics["iou"].value, card.metrics["miou"].value, card.classes) == (1.0, 0.0, 2)


def test_the_truth_of_masks_is_written_as_masks_and_scores_one_against_itself(fungi_world, tmp_path):
    name = "fungitastic-mini/segmentation"
    assert write_truth(name, fungi_world, tmp_path / "truth") > 0
    path = tmp_path / "truth" / "truth.parquet"
    assert set(pl.read_parquet_schema(path)) == {"file_name", "label", "width", "height", "rle"}
    card = fieldmark.score(name, path, truth=path)
    assert card.metrics["iou"].value == card.metrics["miou"].value == 1.0
    assert fieldmark.score(name, path, data=fungi_world).metrics["iou"].value == 1.0


def test_the_last_row_of_a_photo_is_the_whole_as_in_the_code_of_the_organizers(tmp_path):
    left, right = np.array([[True, False, False]]), np.array([[False, True, True]])
    rows = [("0-1.JPG", "fruiting_body", left), ("0-1.JPG", "cap", left), ("0-1.JPG", "stem", right)]
    size = {"width": 3, "height": 1}
    true = [{"file_name": name, "label": part, **size, "rle": runs_of(mask, box=True)} for name, part, mask in rows]
    pl.DataFrame(true).write_parquet(tmp_path / "truth.parquet")
    answer = {"file_name": "0-1.JPG", "label": "fruiting_body", **size, "rle": runs_of(right, box=True)}
    pl.DataFrame([answer]).write_parquet(tmp_path / "run.parquet")
    metrics = ["iou", "iou:whole=joined"]
    card = fieldmark.score(NAME, tmp_path / "run.parquet", truth=tmp_path / "truth.parquet", metrics=metrics)
    assert card.metrics["iou"].value == 1.0
    assert card.metrics["iou_joined"].value == pytest.approx(2 / 3)


def test_an_older_file_with_run_lengths_as_text_is_a_truth_too(tmp_path, masks):
    write_parquet(tmp_path / "truth.parquet", masks)
    rows = pl.read_parquet(tmp_path / "truth.parquet")
    texts = [str(runs) for runs in rows["rle"].to_list()]
    rows.with_columns(rle=pl.Series(texts)).write_parquet(tmp_path / "older.parquet")
    cards = [
        fieldmark.score(NAME, tmp_path / "truth.parquet", truth=tmp_path / name)
        for name in ("truth.parquet", "older.parquet")
    ]
    assert [card.metrics["miou"].value for card in cards] == [1.0, 1.0]


def test_masks_as_coco_are_run_and_truth(tmp_path, masks):
    write_parquet(tmp_path / "truth.parquet", masks)
    read = read_masks(tmp_path / "truth.parquet")
    MaskFiles().write(tmp_path / "masks.json", read)
    again = read_masks(tmp_path / "masks.json")
    assert again.items == read.items and again.name_of == read.name_of
    for item in read.items:
        for part, mask in read.open(item).items():
            np.testing.assert_array_equal(again.open(item)[part], mask)
    card = fieldmark.score(NAME, tmp_path / "masks.json", truth=tmp_path / "masks.json")
    assert card.metrics["iou"].value == card.metrics["miou"].value == 1.0


def test_pycocotools_opens_what_is_written_as_coco(tmp_path, masks):
    reference = pytest.importorskip("pycocotools.coco")
    write_parquet(tmp_path / "truth.parquet", masks)
    MaskFiles().write(tmp_path / "masks.json", read_masks(tmp_path / "truth.parquet"))
    coco = reference.COCO(str(tmp_path / "masks.json"))
    for annotation in coco.loadAnns(coco.getAnnIds()):
        photo = coco.loadImgs(annotation["image_id"])[0]["file_name"]
        part = coco.loadCats(annotation["category_id"])[0]["name"]
        np.testing.assert_array_equal(coco.annToMask(annotation).astype(bool), masks[photo][part])


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"segmentation": [[0, 0, 1, 1, 2, 0]]}, "annotation 0: found polygons, expected run lengths"),
        ({"segmentation": {"size": [2, 2], "counts": [3]}}, "annotation 0: found runs of 3 pixels"),
        ({"segmentation": {"size": [10**6, 10**6], "counts": [10**12]}}, "annotation 0: found a picture of"),
        ({"image_id": 7}, "annotation 0 without 7"),
    ],
)
def test_what_is_no_mask_in_coco_is_refused_with_its_annotation(tmp_path, change, found):
    annotation = {"image_id": 1, "category_id": 1, "segmentation": {"size": [2, 2], "counts": [4]}} | change
    data = {"images": [{"id": 1, "file_name": "0-1.JPG"}], "categories": [{"id": 1, "name": "mushroom"}]}
    (tmp_path / "run.json").write_text(json.dumps(data | {"annotations": [annotation]}))
    with pytest.raises(InputError, match=found):
        read_masks(tmp_path / "run.json")


def test_an_image_without_annotations_has_an_empty_mask_in_coco(tmp_path):
    image = {"id": 1, "file_name": "photos/0-1.JPG", "width": 3, "height": 2}
    data = {"images": [image], "categories": [{"id": 1, "name": "mushroom"}], "annotations": []}
    (tmp_path / "run.json").write_text(json.dumps(data))
    masks = read_masks(tmp_path / "run.json")
    assert masks.items == ("0-1",) and not masks.open("0-1")["fruiting_body"].any()


def test_photos_of_a_specimen_stay_one_unit_in_a_truth_that_is_written(tmp_path):
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
    lines = ["file,observation,part"]
    for number in range(9):
        for folder in ("images", "masks"):
            Image.new("L", (8, 6), 255).convert("RGB").save(tmp_path / folder / f"{number}.png")
        lines.append(f"{number}.png,specimen {number // 2},{'test' if number > 3 else ('train', 'val')[number // 2]}")
    (tmp_path / "observations.csv").write_text("\n".join(lines) + "\n")
    write_truth("folder/segmentation", tmp_path, tmp_path / "truth")
    path = tmp_path / "truth" / "truth.parquet"
    card = fieldmark.score("folder/segmentation", path, truth=path)
    assert (card.items, card.units) == (5, 3)


def test_masks_of_test_are_a_truth_where_its_species_are_not_published(fungi_world, tmp_path):
    for path in ("masks", "FungiTastic-Mini", "metadata/FungiTastic-Mini"):
        shutil.copytree(fungi_world / path, tmp_path / path)
    for path in (tmp_path / "metadata/FungiTastic-Mini").glob("*Test.csv"):
        gone = ("scientificName", "species", "genus", "family", "category_id", "poisonous", "specificEpithet")
        pl.read_csv(path, infer_schema=False).drop(gone, strict=False).write_csv(path)
    assert write_truth(NAME, tmp_path, tmp_path / "truth") > 0


def test_the_whole_way_on_a_release_counts_what_is_left_out(fungi_world, tmp_path, run_main):
    result = fieldmark.fit(NAME, fungi_world, "ellipse", tmp_path / "run")
    remarks = " ".join(result.run.remarks)
    assert "photos of train have no mask: they are neither learned from nor scored." in remarks
    assert "show spores alone" in remarks
    code, said, _ = run_main("truth", NAME, "--data", fungi_world, "--out", tmp_path / "truth")
    assert code == 0 and "truth.parquet" in said
    again = fieldmark.score(NAME, tmp_path / "run", truth=tmp_path / "truth/truth.parquet")
    assert again.metrics["iou"].value == pytest.approx(result.scorecards["test"].metrics["iou"].value)
    names = pl.read_parquet(tmp_path / "run/run.parquet")["file_name"]
    assert names.str.ends_with(".JPG").all()
