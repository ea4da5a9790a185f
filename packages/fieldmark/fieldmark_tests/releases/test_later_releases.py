"""Releases of FungiCLEF, SnakeCLEF, PlantCLEF, GeoLifeCLEF and FathomNet since 2021: read, fitted, scored, checked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import fsspec
import polars as pl
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release
from fieldmark_worlds.layouts import relaid, relaid_plots, surveys

PACKED = {
    "fungiclef-2022": (relaid.pack_fungi_2022, "fungi_world"),
    "fungiclef-2023": (relaid.pack_fungi_2023, "fungi_world"),
    "snakeclef-2021": (relaid.pack_snakes_2021, "snake_world"),
    "snakeclef-2022": (relaid.pack_snakes_2022, "snake_world"),
    "snakeclef-2023": (relaid.pack_snakes_2023, "snake_world"),
    "snakeclef-2024": (relaid.pack_snakes_2024, "snake_world"),
    "plantclef-2021": (relaid.pack_plants_2021, "plant_world"),
    "plantclef-2022": (relaid_plots.pack_plants_2022, "plant_world"),
    "plantclef-2024": (relaid_plots.pack_plots, "plant_world"),
    "fathomnet-2025": (relaid_plots.pack_fathomnet, "snake_world"),
}
LITTLE = (40, 100, 120)
SINGLE_PLANTS = "PlantCLEF2024_single_plant_training_metadata.csv"
Releases = Callable[[str], Path]


@pytest.fixture(scope="module")
def release(request, tmp_path_factory) -> Releases:
    """The world of an edition, packed when it is first asked for."""
    made: dict[str, Path] = {}

    def find(name: str) -> Path:
        if name not in made:
            root = tmp_path_factory.mktemp("later") / name
            if name in PACKED:
                packer, base = PACKED[name]
                relaid.pack(name, packer, request.getfixturevalue(base), root)
            else:
                surveys.write_extent(root, LITTLE, "little", year=int(name[-4:]), seed=4)
            made[name] = root
        return made[name]

    return find


@pytest.fixture
def own_copy(release, tmp_path) -> Releases:
    """A copy that a test may spoil."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(release(name), tmp_path / name))

    return copy


def opened_release(benchmark: str, root: Path) -> Opened:
    declared = fieldmark.benchmark(benchmark)
    return open_benchmark(declared, open_release(declared, root))


def spoil(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("benchmark", "dataset", "method", "header"),
    [
        ("fungiclef-2022", "fungiclef-2022", "frequent", "ObservationId,ClassId"),
        ("fungiclef-2023", "fungiclef-2023", "frequent", "observationID,class_id"),
        ("snakeclef-2021", "snakeclef-2021", "frequent", "UUID,prediction"),
        ("snakeclef-2022", "snakeclef-2022", "frequent", "ObservationId,class_id"),
        ("snakeclef-2023", "snakeclef-2023", "frequent", "observation_id,class_id"),
        ("snakeclef-2024", "snakeclef-2024", "frequent", "observation_id,class_id"),
        ("plantclef-2021", "plantclef-2021", "frequent", "ObservationId;ClassId;Probability;Rank"),
        ("plantclef-2023", "plantclef-2022", "frequent", "obsid;classid;probability;rank"),
        ("plantclef-2026", "plantclef-2024", "frequent", '"quadrat_id","species_ids"'),
        ("geolifeclef-2023", "geolifeclef-2023", "frequent", "Id,Predicted"),
        ("geolifeclef-2024", "geolifeclef-2024", "frequent", "surveyId,predictions"),
        ("geolifeclef-2025", "geolifeclef-2025", "neighbors", "surveyId,predictions"),
        ("fathomnet-2025", "fathomnet-2025", "frequent", "annotation_id,concept_name"),
    ],
)
def test_an_edition_is_read_checked_fitted_and_scored(benchmark, dataset, method, header, release, tmp_path, run_main):
    root = release(dataset)
    code, printed, _ = run_main("check", benchmark, root)
    assert code == 0 and "error" not in printed and "simulated release" in printed
    result = fieldmark.fit(benchmark, root, method, tmp_path / "run")
    assert result.scorecard.split == "test" and result.scorecard.items > 0
    assert (tmp_path / "run" / "run.csv").read_text().splitlines()[0] == header
    again = fieldmark.score(benchmark, tmp_path / "run", data=root)
    assert again.metrics == result.scorecard.metrics


def test_fungi_know_their_finds_their_poison_and_the_unknown(release):
    closed, opened = (opened_release(name, release(name)) for name in ("fungiclef-2022", "fungiclef-2023"))
    assert "-1" not in set(closed.truth["val"].rows["label"]) and "-1" in set(closed.truth["test"].rows["label"])
    assert "-1" in set(opened.truth["val"].rows["label"])
    assert closed.items["train"]["media_ids"].list.len().max() > 1  # photos of one find are one item
    assert len(closed.items["train"]) == len(opened.items["train"])
    taxa = opened.dataset.taxa
    assert taxa["label"].to_list() == [str(number) for number in range(len(taxa))]
    assert taxa["poisonous"].any() and not taxa["poisonous"].all() and "genus" in taxa.columns
    assert {"habitat", "substrate", "country"} <= set(opened.view.train.items.columns) | {"country"}


def test_snakes_of_two_sources_are_train_and_venom_comes_from_the_list(release):
    dataset = fieldmark.dataset("snakeclef-2023", release("snakeclef-2023"))
    train = dataset.media.filter(pl.col("parts").list.contains("train"))["path"]
    assert train.str.starts_with("HMP/2020/").any() and train.str.starts_with("SnakeCLEF2023-small_size/2020/").any()
    flags = pl.read_csv(release("snakeclef-2023") / "venomous_status_list.csv", infer_schema=False)
    listed = {label for label, flag in flags.iter_rows() if flag == "1"}
    assert set(dataset.taxa.filter("poisonous")["label"]) == listed
    assert dataset.observations["region"].drop_nulls().str.len_chars().max() == 2


def test_photos_of_another_size_are_found_in_the_folders_of_their_parts(own_copy):
    root = own_copy("snakeclef-2024")
    (root / "SnakeCLEF2023-small_size").rename(root / "kept")
    for part in ("train", "val"):
        shutil.copytree(root / "kept", root / part / "SnakeCLEF2023-medium_size")
    (root / "SnakeCLEF2024-small_size").rename(root / "SnakeCLEF2024-large_size")
    paths = fieldmark.dataset("snakeclef-2024", root).media["path"].to_list()
    assert all((root / path).exists() for path in paths)
    assert {path.split("/")[0] for path in paths} == {"train", "val", "HMP", "SnakeCLEF2024-large_size"}


def test_plots_show_many_species_and_single_plants_one(release):
    opened = opened_release("plantclef-2025", release("plantclef-2024"))
    pairs = opened.truth["test"].rows
    assert pairs.group_by("item_id").len()["len"].max() > 1 and len(set(opened.truth["test"].units)) == 4
    assert opened.truth["val"].rows["item_id"].is_unique().all()
    assert opened.truth["test"].items[0] == "T1-A1-20250601"
    single = opened_release("plantclef-2024/single-plants", release("plantclef-2024"))
    assert not set(single.items["test"]["item_id"]) & set(opened.items["test"]["item_id"])


def test_tiles_of_plots_are_answered_by_a_model_of_single_plants(release, tmp_path, run_main):
    root = release("plantclef-2024")
    settings = {"size": 32, "l2": 0.03}
    fieldmark.fit("plantclef-2024/single-plants", root, "linear", tmp_path / "run", settings=settings)
    asked = root / "PlantCLEF2025_test_images"
    arguments = ("--out", tmp_path / "tiles.csv", "--tiles", 3, "--at-least", 0.4)
    code, printed, _ = run_main("tile", tmp_path / "run", asked, *arguments)
    assert code == 0 and printed.startswith("12 plots")
    card = fieldmark.score("plantclef-2025", tmp_path / "tiles.csv", data=root)
    assert card.items == 12 and card.units == 4 and card.metrics["unit_f1"].value > 0


def test_without_the_lists_of_plots_a_run_is_written_and_val_is_scored(own_copy, tmp_path):
    root = own_copy("plantclef-2024")
    (root / "test_labels.csv").unlink()
    dataset = fieldmark.dataset("plantclef-2024", root)
    assert dataset.remarks == ("12 photos of plots have no list of species: a run can be written, not scored.",)
    result = fieldmark.fit("plantclef-2024", root, "frequent", tmp_path / "run")
    assert result.scorecard.split == "val"
    assert len((tmp_path / "run" / "run.csv").read_text().splitlines()) == 13


def test_surveys_list_their_species_and_records_name_one(release):
    later = fieldmark.dataset("geolifeclef-2024", release("geolifeclef-2024"))
    parts = {part: rows for (part,), rows in later.observations.explode("parts").group_by("parts")}
    assert set(parts) == {"train", "records", "test"}
    assert parts["train"]["labels"].list.len().max() > 1 and parts["train"]["label"].is_null().all()
    assert (parts["records"]["labels"].list.len() == 1).all()
    assert "." not in "".join(later.taxa["label"])  # 12.0 is 12
    numbers = later.layers["environment"].numbers(parts["test"]["observation_id"].to_list())
    assert numbers.shape[1] == 27 and not pl.DataFrame(numbers).to_series(0).is_nan().any()
    only = fieldmark.releases.open_dataset("geolifeclef-2024", release("geolifeclef-2024"), "surveys")
    assert set(only.observations["parts"].explode()) == {"train", "test"}
    opened = opened_release("geolifeclef-2024", release("geolifeclef-2024"))
    assert len(opened.items["val"]) and len(opened.items["train"]) + len(opened.items["val"]) == len(parts["train"])


def test_a_method_for_places_lists_what_reaches_a_threshold_of_val(release, tmp_path):
    result = fieldmark.fit("geolifeclef-2025", release("geolifeclef-2025"), "neighbors", tmp_path / "run")
    assert [step.name for step in result.model.steps] == ["presence", "label-lists"]
    assert 0 < result.model.steps[1].shared < 1


def test_surveys_have_no_photos_to_take_features_of(release, tmp_path):
    with pytest.raises(MisuseError, match="items have no photo to take features of: name what a method should read"):
        fieldmark.fit("geolifeclef-2025", release("geolifeclef-2025"), "linear", tmp_path / "run")


def test_a_release_at_an_address_is_read_like_one_on_disk(release):
    memory = fsspec.filesystem("memory")
    root = release("geolifeclef-2025")
    memory.put(str(root), "/later-2025", recursive=True)
    there, here = (fieldmark.dataset("geolifeclef-2025", place) for place in ("memory://later-2025", root))
    assert there.digest == here.digest and there.layers["environment"].names == here.layers["environment"].names


def test_surveys_of_2023_are_places_with_a_day_and_their_dates_have_two_forms(tmp_path):
    folder = tmp_path / "Presence_Absence_surveys"
    folder.mkdir()
    columns = "glcID;observer;date;dayOfYear;year;lon;lat;speciesId;patchID"
    rows = [
        '12;"Newlands, C.;Perry, J.";2019-07-12;193;2019;-2.5;54.25;7246;3003975',
        "11;;1562889600;193;2019;-2.5;54.25;9212.0;3003975",
        "13;;1588802400;128;2020;6.5;43.25;4885;116489",
    ]
    (folder / "Presences_Absences_train.csv").write_text("\n".join([columns, *rows]) + "\n")
    (folder / "enviroTab_pa_train.csv").write_text(
        "patchID;dayOfYear;lon;lat;bio1;soil\n3003975;193;-2.5;54.25;8.5;NA\n"
    )
    dataset = fieldmark.dataset("geolifeclef-2023", tmp_path)
    assert dataset.observations.select("observation_id", "labels").rows() == [
        ("11", ["7246", "9212"]),
        ("13", ["4885"]),
    ]
    assert [str(date) for date in dataset.observations["date"]] == ["2019-07-12", "2020-05-06"]
    assert dataset.layers["environment"].names == ("bio1",)
    assert dataset.remarks == ("There are no records, and the surveys have no val of their own.",)
    assert set(dataset.observations["parts"].explode()) == {"train"}


def test_the_check_names_what_is_missing_and_says_what_is_published(own_copy, run_main):
    root = own_copy("fungiclef-2022")
    (root / "WORLD.json").unlink()
    gone = next((root / "DF20").iterdir())
    gone.unlink()
    code, printed, _ = run_main("check", "fungiclef-2022", root)
    assert code == 1 and f"DF20/{gone.name}" in printed
    assert "295,938" in printed and "118,676" in printed and "1,969 unknown species" in printed


def test_names_of_several_ranks_lie_in_a_tree(release, own_copy, tmp_path):
    opened = opened_release("fathomnet-2025", release("fathomnet-2025"))
    named = set(opened.dataset.taxa["label"])
    assert any(" " in name for name in named) and any(" " not in name for name in named)
    assert len(set(opened.truth["test"].units)) < len(opened.truth["test"].items)  # two animals in an image
    images = [set(opened.items[part]["image"]) for part in ("train", "val")]
    assert all(images) and not images[0] & images[1]  # regions of one photo are drawn together
    root = own_copy("fathomnet-2025")
    (root / "taxonomy.csv").unlink()
    assert "There is no taxonomy.csv" in fieldmark.dataset("fathomnet-2025", root).remarks[0]


def test_a_tree_with_blank_ranks_is_read_and_one_that_contradicts_itself_is_refused(own_copy):
    root = own_copy("fathomnet-2025")
    path = root / "taxonomy.csv"
    header, first, second, *rest = path.read_text().splitlines()
    name = second.split(",")[0]
    blank = second.replace(",Reptilia,", ", ,")
    path.write_text("\n".join([header, first, blank, blank, *rest]) + "\n")  # the same row twice is one
    taxa = fieldmark.dataset("fathomnet-2025", root).taxa
    row = taxa.filter(pl.col("label") == name).row(0, named=True)
    assert row["class"] is None and (row["phylum"], row["order"]) == ("Chordata", "Squamata")
    path.write_text("\n".join([header, first, blank, second, *rest]) + "\n")
    with pytest.raises(InputError, match=rf"taxonomy\.csv, line 4: found '{name}' with other ranks than in line 3"):
        fieldmark.dataset("fathomnet-2025", root)


@pytest.mark.parametrize(
    ("name", "table", "old", "new", "sentence"),
    [
        ("fungiclef-2023", "FungiCLEF2023_val_metadata_PRODUCTION.csv", "class_id", "class", "a column 'class_id'"),
        ("snakeclef-2022", "SnakeCLEF2022-TrainMetadata.csv", "2020/", "", None),
        ("plantclef-2024", SINGLE_PLANTS, ";train\n", ";learn\n", "one of train, val"),
        ("plantclef-2024", "test_labels.csv", '"[', '"[x ', "line 2: found .* expected a list such as"),
        ("geolifeclef-2025", "GLC25_PA_metadata_train.csv", ".0\n", "\n", None),
        ("geolifeclef-2025", "GLC25_PA_metadata_test.csv", "lat", "latitude", "a column 'lat'"),
        ("fathomnet-2025", "dataset_train.json", '"category_id": 1', '"category_id": 99', "the category 99"),
    ],
)  # fmt: skip
def test_a_table_at_fault_is_refused_with_its_place(name, table, old, new, sentence, own_copy):
    root = own_copy(name)
    spoil(root / table, old, new)
    if sentence is None:
        assert len(fieldmark.dataset(name, root).observations)  # nothing is wrong with it
    else:
        with pytest.raises(InputError, match=sentence):
            fieldmark.dataset(name, root)


def test_a_row_without_class_is_refused_with_its_line(own_copy):
    root = own_copy("snakeclef-2022")
    path = root / "SnakeCLEF2022-TrainMetadata.csv"
    rows = pl.read_csv(path, infer_schema=False)
    empty = pl.when(pl.int_range(pl.len()) == 2).then(None).otherwise("class_id").alias("class_id")
    rows.with_columns(empty).write_csv(path)
    with pytest.raises(InputError, match=r"TrainMetadata.csv, line 4: found no class_id, expected one in each row"):
        fieldmark.dataset("snakeclef-2022", root)


def test_a_folder_without_the_tables_is_refused_with_what_was_looked_for(tmp_path):
    for name, looked_for in (
        ("fungiclef-2022", "DF20-train_metadata.csv"),
        ("geolifeclef-2024", "GLC24_PA_metadata_train.csv"),
        ("fathomnet-2025", "dataset_train.json"),
    ):
        with pytest.raises(InputError, match=f"found no {looked_for}"):
            fieldmark.dataset(name, tmp_path)
    with pytest.raises(MisuseError, match="has no subset called 'Mini'"):
        fieldmark.releases.open_dataset("fungiclef-2022", tmp_path, "Mini")


def test_few_shots_of_2025_lie_in_images(fungi_world, tmp_path):
    shutil.copytree(fungi_world / "metadata", tmp_path / "metadata")
    shutil.copytree(fungi_world / "FungiTastic-FewShot", tmp_path / "images" / "FungiTastic-FewShot")
    opened = opened_release("fungiclef-2025", tmp_path)
    assert opened.dataset.media["path"].str.starts_with("images/FungiTastic-FewShot/").all()
    assert all((tmp_path / path).exists() for path in opened.dataset.media["path"])


def test_a_world_is_packed_from_another_and_says_so(snake_world, tmp_path):
    mark = relaid.pack("snakeclef-2022", relaid.pack_snakes_2022, snake_world, tmp_path / "world")
    written = json.loads((tmp_path / "world" / "WORLD.json").read_text())
    assert written == json.loads(json.dumps(mark)) and written["simulated"] is True
    assert (written["dataset"], written["packed_from"]) == ("snakeclef-2022", "snakeclef-2020")
