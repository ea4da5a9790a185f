"""Golden files typed from the description of the release, not written by the world."""

from __future__ import annotations

import datetime
import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.exporting.coco import export_coco
from fieldmark.masks.parts import resized
from fieldmark.releases import open_dataset
from fieldmark.releases.checks import CHECKS, Count
from fieldmark.releases.fungitastic import LABEL_COLUMNS, OPEN_COLUMNS, open_fungitastic
from fieldmark.releases.fungitastic_layers import satellite_picture
from fieldmark.releases.fungitastic_masks import decode_rle
from fieldmark.storage.release import Release
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark_tests.places import GOLDEN


@pytest.fixture(params=["2024", "2025"])
def year(request) -> str:
    return request.param


@pytest.fixture
def root(year) -> Path:
    return GOLDEN / f"fungitastic-{year}"


@pytest.fixture
def copy(tmp_path) -> Path:
    return Path(shutil.copytree(GOLDEN / "fungitastic-2025", tmp_path / "fungitastic"))


def parts(dataset) -> dict[str, int]:
    return dict(dataset.media.explode("parts")["parts"].value_counts().iter_rows())


def test_there_are_31_columns_of_which_19_tell_nothing_about_the_label():
    assert len(OPEN_COLUMNS) == 19 and len(OPEN_COLUMNS) + len(LABEL_COLUMNS) == 31
    assert not set(OPEN_COLUMNS) & set(LABEL_COLUMNS)


def test_the_full_set_opens_in_both_releases(root):
    dataset = open_dataset("fungitastic", root)
    assert parts(dataset) == {
        "Train": 4,
        "ClosedSet-Val": 2,
        "OpenSet-Val": 3,
        "ClosedSet-Test": 2,
        "OpenSet-Test": 2,
        "DNA-Test": 1,
    }
    assert dataset.media["media_id"].is_unique().all()


def test_both_namings_of_mini_open_and_give_the_same_parts(root):
    found = parts(open_dataset("fungitastic", root, "Mini"))
    assert {name: found[name] for name in ("Train", "ClosedSet-Val", "ClosedSet-Test")} == {
        "Train": 3,
        "ClosedSet-Val": 1,
        "ClosedSet-Test": 1,
    }


def test_few_shot_opens_under_the_names_of_the_full_set():
    dataset = open_dataset("fungitastic", GOLDEN / "fungitastic-2024", "FewShot")
    assert parts(dataset) == {"Train": 1, "ClosedSet-Val": 1, "ClosedSet-Test": 1}


def test_the_class_is_the_scientific_name_even_where_two_share_a_species(root):
    taxa = open_dataset("fungitastic", root).taxa
    assert taxa["label"].to_list() == ["0", "1", "2"]
    assert taxa["scientific_name"][1] == "Amanita muscaria var. formosa Pers."
    assert taxa["species"].to_list()[:2] == ["Amanita muscaria"] * 2
    assert taxa["poisonous"].to_list() == [True, True, False]


def test_floats_empty_cells_and_danish_soil_are_understood(root):
    rows = {row["observation_id"]: row for row in open_dataset("fungitastic", root).observations.iter_rows(named=True)}
    fly_agaric, variety = rows["2238000001"], rows["2238000002"]
    assert (fly_agaric["year"], fly_agaric["month"], fly_agaric["day"]) == (2019, 9, 14)
    assert fly_agaric["date"] == datetime.date(2019, 9, 14) and fly_agaric["landcover"] == 5
    assert fly_agaric["meta_substrate"] == "soil"
    assert variety["habitat"] is None and variety["landcover"] is None and variety["elevation_m"] is None
    assert rows["3900000001"]["year"] == 2022


def test_an_unknown_species_is_minus_one_and_no_class(root):
    dataset = open_dataset("fungitastic", root)
    unknown = dataset.observations.filter(pl.col("label") == "-1")
    assert unknown["scientific_name"].to_list() == ["Mycena nova Invent."]
    assert "-1" not in dataset.taxa["label"]


def test_without_published_labels_test_has_no_truth_and_with_them_it_has():
    truth = {
        year: open_benchmark(
            BENCHMARKS["fungitastic/closed"], open_dataset("fungitastic", GOLDEN / f"fungitastic-{year}")
        ).truth
        for year in ("2024", "2025")
    }
    assert set(truth["2024"]) == {"val"} and set(truth["2025"]) == {"val", "test"}
    assert truth["2025"]["test"].rows["label"].to_list() == ["0", "2"]


def test_dna_labels_are_published_even_where_those_of_test_are_not(root):
    opened = open_benchmark(BENCHMARKS["fungitastic/dna"], open_dataset("fungitastic", root))
    assert opened.truth["test"].rows["label"].to_list() == ["0"]


def test_private_labels_are_used_where_they_lie_beside_the_test_file(tmp_path):
    root = Path(shutil.copytree(GOLDEN / "fungitastic-2024", tmp_path / "f"))
    (root / "metadata/FungiTastic/FungiTastic-test-DEV.csv").write_text(
        "filename,observationID,category_id\n0-4200000001.JPG,4200000001,0\n0-4200000002.JPG,4200000002,2\n"
    )
    opened = open_benchmark(BENCHMARKS["fungitastic/closed"], open_dataset("fungitastic", root))
    assert opened.truth["test"].rows["label"].to_list() == ["0", "2"]


def test_a_method_never_sees_taxonomy_or_poison(root):
    view = open_benchmark(BENCHMARKS["fungitastic/closed"], open_dataset("fungitastic", root)).view
    assert not {"scientific_name", "genus", "species", "poisonous", "label"} & set(view.train.items.columns)
    assert {"habitat", "meta_substrate", "lat", "elevation_m", "biogeographical_region"} <= set(
        view.train.items.columns
    )


@pytest.mark.parametrize(("size", "expected"), [(None, "300p"), ("fullsize", "fullsize")])
def test_photos_are_read_at_the_smallest_size_that_is_there_or_as_asked(copy, size, expected):
    for folder in ("500p", "300p", "fullsize"):
        (copy / "FungiTastic" / "train" / folder).mkdir(parents=True)
    dataset = open_fungitastic(Release(copy), photos=size)
    path = dataset.media.filter(pl.col("media_id") == "0-2238000001.JPG")["path"][0]
    assert path == f"FungiTastic/train/{expected}/0-2238000001.JPG"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2238000002,Midtjylland", ",Midtjylland", r"Train.csv, line 4: found no filename or no observationID"),
        ("56.249168", "north", r"Train.csv, line 4: found 'north' as latitude, expected a number"),
        ("56.249168", "156.2", r"Train.csv, line 4: found '156.2' as latitude, expected degrees from -90 to 90"),
        ("JPG,1,jord", "JPG,1.5,jord", r"Train.csv, line 4: found 1.5 as category_id, expected a whole number"),
        ("filename", "file", r"Train.csv, line 1: found the columns .* expected a column 'filename'"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(copy, old, new, message):
    path = copy / "metadata/FungiTastic/FungiTastic-Train.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        open_dataset("fungitastic", copy)


def test_a_folder_that_is_no_release_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"found no training file, expected FungiTastic-Train.csv"):
        open_dataset("fungitastic", tmp_path)
    with pytest.raises(MisuseError, match="Did you mean Mini"):
        open_dataset("fungitastic", tmp_path, "Mni")


def test_run_lengths_decode_to_the_picture_they_describe():
    # An L: column 1 of rows 0 to 2 and row 2 up to column 3, in a picture of 4 x 5; the box comes last.
    runs = [1, 1, 4, 1, 4, 3, 6, 1, 0, 3, 3]
    expected = ["01000", "01000", "01110", "00000"]
    assert ["".join(str(int(pixel)) for pixel in row) for row in decode_rle(runs, 4, 5)] == expected
    with pytest.raises(ValueError, match="runs of 21 pixels for a picture of 20"):
        decode_rle([21, 0, 0, 0, 0], 4, 5)


@pytest.mark.parametrize("as_text", [False, True])
def test_masks_of_a_photo_come_by_part_and_pieces_are_joined(copy, as_text):
    runs = [[0, 1, 3, 0, 0, 1, 1], [3, 1, 1, 1, 1, 1], [0, 4, 0, 0, 2, 2]]
    rle = [str(run) for run in runs] if as_text else runs
    (copy / "masks").mkdir()
    pl.DataFrame(
        {
            "file_name": ["0-2238000001.JPG"] * 3,
            "label": ["cap", "cap", "fruiting_body"],
            "width": [2] * 3,
            "height": [2] * 3,
            "rle": rle,
        }
    ).write_parquet(copy / "masks/FungiTastic-Mini-TrainMasks.parquet")
    masks = open_dataset("fungitastic", copy, "Mini").layers["masks"]
    assert masks("0-2238000001.JPG")["cap"].tolist() == [[True, False], [False, True]]
    assert masks("0-2238000001.JPG")["fruiting_body"].all()
    assert masks("3-2238000001.JPG") is None


def test_captions_are_read_and_broken_ones_passed_over(copy):
    folder = copy / "captions" / "train"
    folder.mkdir(parents=True)
    for name, text in {
        "0-2238000001.JPG": json.dumps('A red cap with "white" spots.'),
        "3-2238000001.JPG": '""',
        "0-2238000002.JPG": "{broken",
        "1-3861325341.JPG": json.dumps("known to be broken"),
    }.items():
        (folder / f"{name}.json").write_text(text)
    caption = open_dataset("fungitastic", copy).layers["caption"]
    assert caption("0-2238000001.JPG") == 'A red cap with "white" spots.'
    assert [caption(n) for n in ("3-2238000001.JPG", "0-2238000002.JPG", "1-3861325341.JPG", "none.JPG")] == [None] * 4


def test_captions_may_also_stand_in_the_metadata(copy):
    path = copy / "metadata/FungiTastic/FungiTastic-Train.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([f"{lines[0]},captions", f"{lines[1]},A red cap.", *(f"{line}," for line in lines[2:])]))
    caption = open_dataset("fungitastic", copy).layers["caption"]
    assert caption("0-2238000001.JPG") == "A red cap." and caption("3-2238000001.JPG") is None


def test_climate_comes_by_observation_whatever_the_order_of_year_and_month(copy):
    (copy / "climaticData").mkdir()
    (copy / "climaticData/FungiTastic-Climatic-Timeseries.csv").write_text(
        "observationID,tas_2000_01,CHELSA_pr_02_2001,tasmax_2019_12,bio1,bio19\n2238000001,1.5,40,,8.1,200\n"
    )
    climate = open_dataset("fungitastic", copy).layers["climate"]
    found = climate("2238000001")
    assert found["monthly"] == {"tas": {(2000, 1): 1.5}, "pr": {(2001, 2): 40}, "tasmax": {(2019, 12): None}}
    assert found["annual"] == {1: 8.1, 19: 200}
    assert climate("1") is None
    series = open_dataset("fungitastic", copy).layers["climate_series"].numbers(["2238000001", "1"])
    assert series.shape == (2, 4 * 3) and np.isnan(series[1]).all()  # four variables, three months
    there = np.flatnonzero(np.isfinite(series[0]))  # pr in the second month, tas in the first
    assert there.tolist() == [1, 3] and series[0, there].tolist() == [40, 1.5]


def test_a_line_of_climate_that_is_cut_short_is_refused_with_its_number(copy):
    path = copy / "climaticData/FungiTastic-Climatic-Timeseries.csv"
    path.parent.mkdir()
    path.write_text("observationID,tas_2000_01,bio1\n2238000001,1.5,8.1\n2238000002,1.5\n")
    with pytest.raises(InputError, match=rf"{path.name}, line 3: found 2 fields, expected 3, as in the header"):
        open_dataset("fungitastic", copy).layers["climate"]("2238000001")


def test_satellite_pictures_come_by_observation(copy):
    (copy / "satellite_RGB").mkdir()
    Image.new("RGB", (128, 128), (10, 20, 30)).save(copy / "satellite_RGB/2238000001.png")
    picture = open_dataset("fungitastic", copy).layers["satellite_rgb"]
    assert picture("2238000001").shape == (128, 128, 3) and picture("1") is None


def test_the_organizers_gamma_is_applied_to_clipped_reflectance():
    raw = np.array([[-5, 0, 2500, 10_000, 65_535]])
    assert satellite_picture(raw).tolist() == [[0, 0, round(0.25 ** (1 / 2.5) * 255), 255, 255]]


def test_reported_results_name_their_tables_and_both_where_they_disagree():
    reported = [r for r in BENCHMARKS["fungitastic/closed"].reported if r.what == "ConvNeXt-Base, 384 px"]
    assert {r.source: r.values["macro_f1_all"] for r in reported} == {
        "FungiTastic, table 4": 0.400,
        "FungiTastic, table 8": 0.396,
    }
    assert len(BENCHMARKS["fungitastic-mini/closed"].reported) == 24


@pytest.fixture(scope="module", params=["2024", "2025"])
def world(request) -> tuple[Path, dict]:
    made = request.getfixturevalue("made_unlabeled_fungi" if request.param == "2024" else "made_fungi")
    return made.root, made.told


def test_every_count_of_the_check_is_what_the_world_says_it_made(world):
    root, mark = world
    report = CHECKS["fungitastic"](Release(root), media=True)
    assert report.simulated and report.sound, report.problems
    naming = {"ClosedSet-Val": "Val", "ClosedSet-Test": "Test"}
    *parts, together = report.counts
    for part in parts:
        subset, _, name = part.part.partition("-Closed")
        made = mark["counts"].get(part.part) or mark["counts"][f"{subset}-{naming[f'Closed{name}']}"]
        assert (part.found.observations, part.found.photos) == (made["observations"], made["images"])
        if part.found.classes is not None:
            assert (part.found.classes, part.found.unknown_classes) == (made["classes"], made["unknown_classes"])
    assert len(parts) == len(mark["counts"])
    dataset = fieldmark.dataset("fungitastic", root)
    assert together.part == "all subsets together"
    assert together.found.photos >= len(dataset.media) and together.found.observations >= len(dataset.observations)
    assert together.published["FungiTastic, table 9"] == Count(349_307, 632_313, 6_034, 1_678)
    train = next(part for part in parts if part.part == "FungiTastic-Train")
    assert train.published["FungiTastic, table 9, open set"].photos == 433_702


def test_every_layer_opens(world):
    dataset = fieldmark.dataset("fungitastic", world[0], "Mini")
    masks = [dataset.layers["masks"](media_id) for media_id in dataset.media["media_id"]]
    drawn = [found for found in masks if found]
    assert drawn and all("fruiting_body" in found or "microscopic" in found for found in drawn)
    spores = [bool(dataset.layers["microscopic"](media_id)) for media_id in dataset.media["media_id"]]
    assert spores == [bool(found) and "microscopic" in found for found in masks]
    assert any(dataset.layers["caption"](media_id) for media_id in dataset.media["media_id"])
    everything = fieldmark.dataset("fungitastic", world[0])
    known = everything.layers["microscopic"].read(everything.media["media_id"].to_list())
    assert "masks" not in everything.layers and known.count(None) < len(known)  # outside Mini as well
    observation = dataset.media["observation_id"][0]
    climate = dataset.layers["climate"](observation)
    assert set(climate["monthly"]) == {"tas", "tasmin", "tasmax", "pr"} and len(climate["annual"]) == 19
    assert len(climate["monthly"]["tas"]) == 240
    assert dataset.layers["satellite_rgb"](observation).shape == (128, 128, 3)
    assert dataset.layers["satellite_nir"](observation).shape == (128, 128)


def test_masks_survive_the_export_to_coco(world, tmp_path):
    dataset = fieldmark.dataset("fungitastic", world[0], "Mini")
    written = export_coco(dataset, tmp_path / "mini.json", part="Train")
    data = json.loads((tmp_path / "mini.json").read_text())
    name_of = {image["id"]: image["file_name"].rpartition("/")[2] for image in data["images"]}
    drawn = [entry for entry in data["annotations"] if "segmentation" in entry]
    assert len(drawn) == written.masks > 5 and len(data["annotations"]) == len(data["images"])
    for entry in drawn:
        masks = dataset.layers["masks"](name_of[entry["image_id"]])
        counts, (height, width) = entry["segmentation"]["counts"], entry["segmentation"]["size"]
        pixels = np.repeat(np.arange(len(counts)) % 2 == 1, counts).reshape(width, height).T
        assert (pixels == resized(masks["fruiting_body"], (height, width))).all() and pixels.sum() == entry["area"]
        assert {part["name"] for part in entry["parts"]} == set(masks) - {"fruiting_body"}


def test_instances_are_written_one_by_one_without_the_merged_whole(world, tmp_path):
    dataset = open_dataset("fungitastic", world[0], "Mini")
    written = export_coco(dataset, tmp_path / "instances.json", instances=True)
    data = json.loads((tmp_path / "instances.json").read_text())
    layer = dataset.layers["masks"]
    rows = [layer.instances(photo) for photo in dataset.media["media_id"]]
    pieces = sum(len(one) - (bool(one) and one[-1].label == "fruiting_body") for one in rows)
    assert written.annotations == len(data["annotations"]) == pieces > 10
    assert {"cap", "stem", "microscopic"} <= {one["name"] for one in data["categories"]}


def test_masks_lie_over_the_mushroom_and_not_over_the_ground(world):
    """The fruiting body differs in color from what surrounds it, photo by photo more often than not."""
    dataset = fieldmark.dataset("fungitastic", world[0], "Mini")
    apart = []
    for media_id in dataset.media["media_id"]:
        masks = dataset.layers["masks"](media_id)
        if masks and "fruiting_body" in masks and 0.02 < masks["fruiting_body"].mean() < 0.9:
            photo = np.asarray(Image.open(world[0] / dataset.media.filter(media_id=media_id)["path"][0]).convert("RGB"))
            small = Image.fromarray(masks["fruiting_body"]).resize(photo.shape[1::-1], Image.Resampling.NEAREST)
            inside = np.asarray(small, dtype=bool)
            gap = np.linalg.norm(photo[inside].mean(axis=0) - photo[~inside].mean(axis=0))
            apart.append(gap > photo.std())
    assert len(apart) > 5 and np.mean(apart) > 0.6


@pytest.mark.parametrize(
    "benchmark",
    [
        "fungitastic/closed",
        "fungitastic-mini/closed",
        "fungitastic/open",
        "fungitastic/cost-poison",
        "fungitastic-fewshot",
    ],
)
def test_benchmarks_fit_and_score_on_the_world(world, tmp_path, benchmark):
    result = fieldmark.fit(benchmark, world[0], "frequent", tmp_path / "run")
    assert result.run.simulated
    assert result.scorecard.split == ("val" if world[1]["release"] == "2024" else "test")
    assert (tmp_path / "run" / "predictions" / "test.parquet").exists()
    assert (tmp_path / "run" / "run.csv").exists()
    if world[1]["release"] == "2025":
        page = fieldmark.report([tmp_path / "run"], tmp_path / "page.html").read_text()
        assert "(simulated data)" in page and ("an unknown species" in page) == (
            benchmark in ("fungitastic/open", "fungitastic/cost-poison")
        )
