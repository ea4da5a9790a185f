"""The promises of the world in the layout of FungiTastic: names and columns are those of the release."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from fieldmark.errors import MisuseError
from fieldmark.work.blocks import LocalExecutor
from fieldmark_tests.made_once import MadeFolder
from fieldmark_tests.worlds.layouts.fungitastic_release import (
    ALWAYS,
    COLUMNS,
    FOLDERS,
    MINI,
    SEED,
    UNLABELED_COLUMNS,
    Row,
    Source,
    World,
    column,
    folder_of,
    masks_of,
    source_of,
    subset_of,
)
from fieldmark_worlds.fungi.painter import paint_with_parts
from fieldmark_worlds.layouts import fungitastic, fungitastic_photos
from fieldmark_worlds.layouts.fungitastic_finds import EXTENTS
from fieldmark_worlds.layouts.fungitastic_photos import paint_release


@pytest.fixture(scope="module")
def source() -> Source:
    return source_of(SEED)


@pytest.fixture(scope="session")
def labeled(made_fungi: MadeFolder) -> World:
    return World(made_fungi.root, "2025", made_fungi.told)


@pytest.fixture(scope="session")
def unlabeled(made_unlabeled_fungi: MadeFolder) -> World:
    return World(made_unlabeled_fungi.root, "2024", made_unlabeled_fungi.told)


@pytest.fixture(scope="session", params=["2025", "2024"])
def world(request: pytest.FixtureRequest) -> World:
    made: World = request.getfixturevalue("labeled" if request.param == "2025" else "unlabeled")
    return made


def test_metadata_files_bear_the_names_of_the_release(world: World) -> None:
    expected = {
        f"metadata/{subset}/{subset}-{part}.csv"
        for subset, parts in {**ALWAYS, "FungiTastic-Mini": MINI[world.release]}.items()
        for part in parts
    }
    assert {str(path.relative_to(world.root)) for path in world.root.glob("metadata/*/*")} == expected


def test_columns_are_the_31_of_the_release_or_the_19_without_labels(world: World) -> None:
    for stem, rows in world.tables.items():
        hidden = world.release == "2024" and folder_of(stem) == "test"
        assert tuple(rows[0]) == (UNLABELED_COLUMNS if hidden else COLUMNS), stem


def test_photos_lie_where_the_metadata_says_and_nowhere_else(world: World) -> None:
    expected = set()
    for stem, rows in world.tables.items():
        subset, folder = subset_of(stem), folder_of(stem)
        sizes = ("300p", "fullsize") if subset == "FungiTastic-Mini" else ("300p",)
        expected |= {f"{subset}/{folder}/{size}/{name}" for size in sizes for name in column(rows, "filename")}
    on_disk = {str(path.relative_to(world.root)) for path in world.root.glob("FungiTastic*/*/*/*")}
    assert on_disk == expected
    known = {"metadata", "masks", "captions", "climaticData", "satellite_RGB", "satellite_NIR", "WORLD.json"}
    known |= {"traits.parquet", "FungiTastic", "FungiTastic-Mini", "FungiTastic-FewShot"}
    assert {path.name for path in world.root.iterdir()} == known


def test_ids_are_contiguous_and_alphabetical_in_each_subset_and_differ_between_subsets(labeled: World) -> None:
    ids: dict[str, dict[str, int]] = {}
    for stem, rows in labeled.tables.items():
        here = {row["scientificName"]: int(row["category_id"]) for row in rows if row["category_id"] != "-1"}
        subset = ids.setdefault(subset_of(stem), {})
        assert all(subset.setdefault(name, number) == number for name, number in here.items())
    for subset, numbers in ids.items():
        assert numbers == {name: i for i, name in enumerate(sorted(numbers))}
        assert set(numbers) == column(labeled.tables[f"{subset}-Train"], "scientificName")
    mini, full = ids["FungiTastic-Mini"], ids["FungiTastic"]
    assert set(mini) < set(full) and any(mini[name] != full[name] for name in mini)
    assert not set(full) & set(ids["FungiTastic-FewShot"])


def test_the_class_is_the_scientific_name_and_some_classes_share_their_species(labeled: World) -> None:
    rows = [row for table in labeled.tables.values() for row in table]
    species_of = {row["scientificName"]: row["species"] for row in rows}
    for row in rows:
        assert row["species"] == f"{row['genus']} {row['specificEpithet']}"
        assert row["scientificName"].startswith(f"{row['species']} ")
    main = column(labeled.tables["FungiTastic-Train"], "scientificName")
    shared = Counter(species_of[name] for name in main)
    assert max(shared.values()) == 2
    for species in (name for name, classes in shared.items() if classes == 2):
        assert len({row["poisonous"] for row in rows if row["species"] == species}) == 1


def test_unknown_species_are_in_the_open_sets_only_and_never_in_train(world: World) -> None:
    for stem, rows in world.tables.items():
        if "category_id" in rows[0]:
            assert ("-1" in column(rows, "category_id")) == ("OpenSet" in stem), stem
    taught = column(world.tables["FungiTastic-Train"], "scientificName")
    taught |= column(world.tables["FungiTastic-FewShot-Train"], "scientificName")
    unknown = world.traits.filter(pl.col("category_id") == -1)
    assert unknown.height > 0 and not taught & set(unknown["scientificName"])


def test_the_closed_set_is_the_known_part_of_the_open_set(world: World) -> None:
    unknown = set(world.traits.filter(pl.col("category_id") == -1)["filename"])
    pairs = [stem for stem in world.tables if "ClosedSet" in stem]
    assert len(pairs) == (4 if world.release == "2024" else 2)
    for stem in pairs:
        wider = world.tables[stem.replace("ClosedSet", "OpenSet")]
        assert world.tables[stem] == [row for row in wider if row["filename"] not in unknown]
        assert len(wider) > len(world.tables[stem])


def test_species_with_too_few_train_observations_are_the_few_shot_ones(labeled: World) -> None:
    few = EXTENTS["tiny"].few
    for stem, allowed in (("FungiTastic-Train", range(few, 10**6)), ("FungiTastic-FewShot-Train", range(1, few))):
        seen = {(row["scientificName"], row["observationID"]) for row in labeled.tables[stem]}
        assert all(count in allowed for count in Counter(name for name, _ in seen).values())
    train = column(labeled.tables["FungiTastic-FewShot-Train"], "scientificName")
    for part in ("Val", "Test"):
        assert column(labeled.tables[f"FungiTastic-FewShot-{part}"], "scientificName") <= train


def test_splits_are_years_and_share_no_observation(world: World) -> None:
    years = {"train": range(1900, 2022), "val": (2022,), "test": (2023,), "dna-test": (2023,)}
    split_of: dict[str, str] = {}
    for stem, rows in world.tables.items():
        folder = folder_of(stem)
        for row in rows:
            assert int(float(row["year"])) == int(row["eventDate"][:4]) and float(row["year"]) in years[folder]
            assert split_of.setdefault(row["observationID"], folder.removeprefix("dna-")) == folder.removeprefix("dna-")
    assert min(float(row["year"]) for row in world.tables["FungiTastic-Train"]) < 2010


def test_dna_rows_repeat_test_rows(world: World) -> None:
    for subset, part in (("FungiTastic", "ClosedSet-Test"), ("FungiTastic-Mini", MINI[world.release][2])):
        test = [tuple(row.items()) for row in world.tables[f"{subset}-{part}"]]
        dna = world.tables[f"{subset}-DNA-Test"]
        shown = [tuple((name, row[name]) for name, _ in test[0]) for row in dna]
        assert dna and "category_id" in dna[0] and set(shown) < set(test)
        for row in dna:
            name, folder = row["filename"], world.root / subset
            assert (folder / "dna-test/300p" / name).read_bytes() == (folder / "test/300p" / name).read_bytes()


def test_mini_is_every_row_of_its_genera_with_the_same_photos(labeled: World) -> None:
    genera = column(labeled.tables["FungiTastic-Mini-Train"], "genus")
    assert len(genera) == 2
    for mini, full in (("Train", "Train"), ("Val", "ClosedSet-Val"), ("Test", "ClosedSet-Test"), ("DNA-Test",) * 2):
        everything = [row["filename"] for row in labeled.tables[f"FungiTastic-{full}"] if row["genus"] in genera]
        assert [row["filename"] for row in labeled.tables[f"FungiTastic-Mini-{mini}"]] == everything
        for name in everything:
            folder = FOLDERS[mini]
            small = (labeled.root / "FungiTastic-Mini" / folder / "300p" / name).read_bytes()
            assert small == (labeled.root / "FungiTastic" / folder / "300p" / name).read_bytes()


def test_every_photo_opens_in_its_size_and_no_more_than_300_are_distinct(labeled: World) -> None:
    small, large = set(), 0
    for path in labeled.root.glob("FungiTastic*/*/*/*.JPG"):
        with Image.open(path) as photo:
            photo.load()
            assert photo.format == "JPEG" and photo.size == ((192, 192) if path.parent.name == "300p" else (224, 224))
        small.add(path.name)
        large += path.parent.name == "fullsize"
    assert large and len(small) == labeled.traits.height <= 300


def test_the_quirks_of_the_real_cells_are_there(labeled: World) -> None:
    rows = [row for table in labeled.tables.values() for row in table]
    assert all(re.fullmatch(r"\d+\.0", row["month"]) and re.fullmatch(r"\d+\.0", row["day"]) for row in rows)
    kinds = {stem: {"." in row["year"] for row in table} for stem, table in labeled.tables.items()}
    assert all(len(kind) == 1 for kind in kinds.values()) and {True} in kinds.values() and {False} in kinds.values()
    assert all(re.fullmatch(r"\d{10}", row["observationID"]) for row in rows)
    assert all(re.fullmatch(rf"\d+-{row['observationID']}\.JPG", row["filename"]) for row in rows)
    assert {row["metaSubstrate"] for row in rows if row["substrate"] == "soil"} == {"jord", "soil"}
    for name in ("habitat", "substrate", "landcover", "elevation"):
        assert 0 < sum(not row[name] for row in rows) < 0.2 * len(rows)
    covers = {float(row["landcover"]) for row in rows if row["landcover"]}
    assert covers <= set(range(1, 18)) and len(covers) > 4
    assert column(rows, "hasCoordinate") == {"True"} and column(rows, "poisonous") == {"0", "1"}
    assert any(not row["scientificName"].isascii() for row in rows)
    indices: dict[str, set[int]] = {}
    for row in rows:
        indices.setdefault(row["observationID"], set()).add(int(row["filename"].split("-")[0]))
    assert any(max(numbers) >= len(numbers) for numbers in indices.values())


def test_the_country_is_invented_and_lies_in_the_sea(labeled: World) -> None:
    rows = labeled.tables["FungiTastic-Train"]
    assert column(rows, "countryCode") == {"XF"}
    assert all(42 <= float(row["latitude"]) <= 48 and -34 <= float(row["longitude"]) <= -26 for row in rows)
    region_of = {row["district"]: row["region"] for row in rows}
    assert all(region_of[row["district"]] == row["region"] for row in rows)
    assert len(set(region_of.values())) > 1


def test_masks_are_those_of_mini_photos_and_end_with_the_merged_one(labeled: World) -> None:
    share = {}
    for name, part in (("Train", "Train"), ("Validation", "Val"), ("Test", "Test")):
        photos, rows = masks_of(labeled, name), labeled.tables[f"FungiTastic-Mini-{part}"]
        assert set(photos) <= column(rows, "filename")
        share[part] = len(photos) / len(rows)
        for layers in photos.values():
            labels = [label for label, _ in layers]
            assert set(labels) <= {
                *("cap", "stem", "gills", "pores", "teeth", "ridges", "ring", "fruiting_body", "microscopic")
            }
            if labels != ["microscopic"]:
                assert labels[-1] == "fruiting_body" and "microscopic" not in labels
                assert np.array_equal(layers[-1][1], np.logical_or.reduce([mask for _, mask in layers[:-1]]))
    assert 0.15 < share["Train"] < 0.5 < share["Val"]


def test_masks_show_the_painted_parts_of_the_full_photo(labeled: World, source: Source) -> None:
    """Parts are painted here once more, from the traits; they are those that the release decodes to."""
    on_disk = {**masks_of(labeled, "Train"), **masks_of(labeled, "Test")}
    published = {Path(photo.job.file).name: photo for photo in source.published("2025")}
    some = [name for name in sorted(on_disk) if not published[name].microscopic][::8]
    assert len(some) >= 3
    for name in some:
        job, decoded = published[name].job, dict(on_disk[name])
        picture, parts = paint_with_parts(job.specimen, job.rng(), 224, camera=job.camera)
        under = str(job.specimen["underside"])
        visible = {under if part in ("gills", "pores") else part: mask for part, mask in parts.items() if mask.any()}
        assert set(decoded) == {*visible, "fruiting_body"}
        assert all(np.array_equal(decoded[part], mask) for part, mask in visible.items())
        stream = io.BytesIO()
        picture.save(stream, "JPEG", quality=90)
        folder = published[name].fullsize[0]
        assert (labeled.root / folder).read_bytes() == stream.getvalue()


def test_microscopic_photos_are_few_never_alone_and_flagged_by_their_mask(labeled: World) -> None:
    traits = labeled.traits
    spores = traits.filter("microscopic")
    assert 0 < spores.height < 0.1 * traits.height
    photos = Counter(traits["observationID"])
    assert all(photos[observation] > 1 for observation in spores["observationID"])
    flagged = set()
    for name in ("Train", "Validation", "Test"):
        flagged |= {file for file, layers in masks_of(labeled, name).items() if layers[-1][0] == "microscopic"}
    in_mini = spores.filter(pl.col("mini_category_id") >= 0)
    assert flagged == set(in_mini["filename"]) and flagged


def test_captions_are_bare_strings_that_name_no_species(labeled: World) -> None:
    words = set()
    for row in (row for table in labeled.tables.values() for row in table):
        words |= {row["genus"], row["specificEpithet"], row["family"]}
    captions = {path: json.loads(path.read_text(encoding="utf-8")) for path in labeled.root.glob("captions/*/*.json")}
    expected = {
        f"captions/{split}/{name}.json" for split, name in labeled.traits.select("split", "filename").iter_rows()
    }
    assert {str(path.relative_to(labeled.root)) for path in captions} == expected
    assert all(isinstance(text, str) for text in captions.values())
    assert 0 < sum(not text for text in captions.values()) < 0.1 * len(captions)
    assert not any(word in text for text in captions.values() for word in words)
    assert len(set(captions.values())) > 0.5 * len(captions)


def test_the_climate_of_every_observation_has_20_years_and_19_summaries(labeled: World) -> None:
    table = pl.read_csv(labeled.root / "climaticData/FungiTastic-Climatic-Timeseries.csv")
    monthly = [
        f"{variable}_{year}_{month:02d}"
        for variable in ("tas", "tasmin", "tasmax", "pr")
        for year in range(2000, 2020)
        for month in range(1, 13)
    ]
    assert table.columns == ["observationID", *monthly, *(f"bio{number}" for number in range(1, 20))]
    assert sorted(table["observationID"]) == sorted(labeled.traits["observationID"].unique())
    assert not table.null_count().sum_horizontal().item()
    tas, low, high, rain = (table.select(monthly[i * 240 : (i + 1) * 240]).to_numpy() for i in range(4))
    assert np.all(low < tas) and np.all(tas < high) and np.all(rain >= 0)
    by_month = tas.reshape(-1, 20, 12).mean(axis=(0, 1))
    assert by_month[6] > by_month[0] + 5
    assert np.abs(tas.mean(axis=1) - table["bio1"].to_numpy()).max() < 1.5
    assert np.abs(rain.sum(axis=1) / 20 / table["bio12"].to_numpy() - 1).max() < 0.25


def test_a_satellite_saw_the_place_of_every_observation(labeled: World) -> None:
    names = {f"{number}.png" for number in labeled.traits["observationID"].unique()}
    for band, mode in (("RGB", "RGB"), ("NIR", "L")):
        paths = list((labeled.root / f"satellite_{band}").iterdir())
        assert {path.name for path in paths} == names
        assert sum(path.stat().st_size for path in paths) < 20_000 * len(paths)
        for path in paths:
            with Image.open(path) as picture:
                assert (picture.format, picture.mode, picture.size) == ("PNG", mode, (128, 128))


def test_counts_in_the_world_file_are_those_of_the_metadata(world: World) -> None:
    mark = json.loads((world.root / "WORLD.json").read_text())
    assert mark == world.mark
    assert (mark["fieldmark_world"], mark["simulated"], mark["dataset"]) == (1, True, "fungitastic")
    assert mark["release"] == world.release and set(mark["counts"]) == set(world.tables)
    truth = {row["filename"]: row for row in world.traits.iter_rows(named=True)}
    for stem, rows in world.tables.items():
        names = {row["scientificName"] if "scientificName" in row else _true_name(truth, row) for row in rows}
        unknown = {_true_name(truth, row) for row in rows if truth[row["filename"]]["category_id"] == -1}
        assert mark["counts"][stem] == {
            "observations": len(column(rows, "observationID")),
            "images": len(rows),
            "classes": len(names),
            "unknown_classes": len(unknown),
        }
    hidden = [stem for stem, rows in world.tables.items() if "category_id" not in rows[0]]
    assert sorted(mark["unlabeled"]) == sorted(hidden)


def _true_name(truth: dict[str, dict[str, object]], row: Row) -> str:
    return str(truth[row["filename"]]["scientificName"])


def test_the_two_releases_show_the_same_observations_under_other_names(labeled: World, unlabeled: World) -> None:
    for stem in ("FungiTastic-Train", "FungiTastic-ClosedSet-Val", "FungiTastic-DNA-Test", "FungiTastic-Mini-Train"):
        assert labeled.tables[stem] == unlabeled.tables[stem]
    assert labeled.tables["FungiTastic-Mini-Val"] == unlabeled.tables["FungiTastic-Mini-ClosedSet-Val"]
    assert labeled.traits.equals(unlabeled.traits)
    told = [{name: row[name] for name in UNLABELED_COLUMNS} for row in labeled.tables["FungiTastic-ClosedSet-Test"]]
    assert told == unlabeled.tables["FungiTastic-ClosedSet-Test"]


def test_without_labels_nothing_but_the_truth_table_tells_what_the_test_shows(unlabeled: World) -> None:
    only_test = unlabeled.traits.filter((pl.col("split") == "test") & (pl.col("category_id") == -1))
    elsewhere = set(unlabeled.traits.filter(pl.col("split") != "test")["scientificName"])
    secret = set(only_test["scientificName"]) - elsewhere
    text = "".join(path.read_text(encoding="utf-8") for path in unlabeled.root.rglob("*.csv"))
    text += (unlabeled.root / "WORLD.json").read_text()
    assert secret and not any(name in text for name in secret)


def test_neither_workers_nor_blocks_change_a_byte(
    labeled: World, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The world on disk was painted by one process; here some of its photos are painted by two, in other blocks."""
    monkeypatch.setattr(fungitastic_photos, "PHOTOS_PER_BLOCK", 5)
    some = [photo for photo in source.published("2025") if photo.microscopic or photo.masked][::6]
    masks = paint_release(tmp_path, some, LocalExecutor(2))
    for photo in some:
        for file in photo.files:
            assert (tmp_path / file).read_bytes() == (labeled.root / file).read_bytes(), file
    files = [Path(photo.job.file).name for photo in some if photo.masked]
    assert list(dict.fromkeys(row.file_name for row in masks)) == files and len(files) >= 4


def test_the_best_possible_is_stated_for_the_closed_and_for_the_open_test(labeled: World) -> None:
    best = labeled.mark["best_possible"]
    assert isinstance(best, dict)
    assert set(best) == {"test_top_1", "expected_top_1", "open_test_top_1", "open_expected_top_1"}
    assert all(0.7 < value <= 1 for value in best.values())
    assert best["open_expected_top_1"] < 0.999


def test_what_cannot_be_made_is_answered_with_what_can(labeled: World, tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match=r"Did you mean tiny\? Known: medium, small, tiny"):
        fungitastic.write(tmp_path / "w", size="tinny")  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match=r"no release '2023'.* 2024, 2025"):
        fungitastic.write(tmp_path / "w", release="2023")  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="already exists"):
        fungitastic.write(labeled.root, size="tiny", seed=SEED)
    assert not (tmp_path / "w").exists()
