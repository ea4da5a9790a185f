"""Worlds of later editions: an earlier world, its photos and tables packed as a later year packs them.

Each `pack` below reads the root of a world that is there and writes another layout; `writer` makes a world of both
steps. Pictures are copied and never painted anew, so that a session with an earlier world at hand has the later ones
for little. What the organizers keep back is `test_labels.csv` everywhere.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.work.blocks import Executor
from fieldmark_worlds.layouts import fungitastic, plantclef, snakeclef
from fieldmark_worlds.layouts.release_files import Size

WORLD_FILE = "WORLD.json"
Counts = Mapping[str, Mapping[str, int]]
# Reads the root of a world and writes another; returns how much there is in each part.
Packer = Callable[[Path, Path], Counts]
BaseWriter = Callable[..., dict[str, object]]


def pack(dataset: str, packer: Packer, base: Path, out: Path, *, overwrite: bool = False) -> dict[str, object]:
    """Writes a world that is there in the layout of another dataset.

    Args:
        dataset: The dataset whose layout is written.
        packer: How.
        base: The root of the world that is there.
        out: The root to be; it appears when complete.
        overwrite: Whether an existing folder is replaced.

    Returns:
        The content of `WORLD.json`.
    """
    mark: dict[str, Any] = json.loads((base / WORLD_FILE).read_text(encoding="utf-8"))
    kept = {name: mark[name] for name in ("fieldmark_world", "simulated", "size", "seed", "generator_version", "note")}
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        counts = packer(base, root)
        mark = {**kept, "dataset": dataset, "packed_from": mark["dataset"], "counts": counts}
        write_json(root / WORLD_FILE, mark)
    return mark


def writer(dataset: str, packer: Packer, write_base: BaseWriter) -> BaseWriter:
    """The writer of a world that is packed from another."""

    def write(
        out: Path, *, size: Size = "tiny", seed: int = 0, overwrite: bool = False, executor: Executor | None = None
    ) -> dict[str, object]:
        """Writes a world of the given size: the nature and the pictures of the earlier world with this seed.

        Args:
            out: The root to be; it appears when complete.
            size: How much.
            seed: Another seed is another nature.
            overwrite: Whether an existing folder is replaced.
            executor: Who paints; all cores unless given.

        Returns:
            The content of `WORLD.json`.
        """
        with tempfile.TemporaryDirectory(prefix="fieldmark-") as folder:
            base = Path(folder) / "base"
            write_base(base, size=size, seed=seed, executor=executor)
            return pack(dataset, packer, base, out, overwrite=overwrite)

    return write


def _copy(photos: pl.DataFrame, base: Path, root: Path) -> None:
    """Copies photos from `file` of the base to `to`."""
    for source, target in photos.select("file", "to").iter_rows():
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(base / source, root / target)


def _counts(tables: Mapping[str, pl.DataFrame], label: str) -> Counts:
    return {
        part: {"photos": rows.height, "classes": rows[label].n_unique() if label in rows.columns else 0}
        for part, rows in tables.items()
    }


# Fungi. Columns of FungiTastic by what the tables of DF20 and DF21 call them.
_FUNGI = {
    "eventDate": "eventDate", "habitat": "Habitat", "substrate": "Substrate", "metaSubstrate": "MetaSubstrate",
    "latitude": "Latitude", "longitude": "Longitude", "countryCode": "countryCode", "region": "level1Name",
    "district": "level2Name", "scientificName": "scientificName", "kingdom": "kingdom", "phylum": "phylum",
    "class": "class", "order": "order", "family": "family", "genus": "genus", "species": "species",
    "category_id": "class_id",
}  # fmt: skip
_TEST_2022 = {"countryCode": "countryCode", "level1Name": "Location_lvl2", "level2Name": "Location_lvl1",
              "Substrate": "Substrate", "Habitat": "Habitat"}  # fmt: skip


def _fungi(base: Path, part: str, folder: str) -> pl.DataFrame:
    stem = "metadata/FungiTastic/FungiTastic"
    rows = pl.read_csv(base / f"{stem}-{part}.csv", infer_schema=False)
    file = pl.format("FungiTastic/{}/300p/{}", pl.lit(folder), "filename").alias("file")
    return rows.select(file, "observationID", "filename", "poisonous", *(pl.col(a).alias(b) for a, b in _FUNGI.items()))


def _write_poisonous(root: Path, train: pl.DataFrame) -> None:
    listed = train.select("class_id", pl.col("poisonous").str.strip_suffix(".0")).unique("class_id").sort("class_id")
    listed.write_csv(root / "poison_status_list.csv")


def pack_fungi_2022(base: Path, root: Path) -> Counts:
    """FungiCLEF 2022: known species in train and val, also unknown ones in test; photos are called by their find."""
    tables = {"train": _fungi(base, "Train", "train"), "val": _fungi(base, "ClosedSet-Val", "val")}
    test = _fungi(base, "OpenSet-Test", "test")
    for part, rows in tables.items():
        name = pl.format("{}-{}.jpg", "observationID", pl.int_range(pl.len()) + 1)
        named = rows.with_columns(name.alias("image_path")).with_columns(pl.format("DF20/{}", "image_path").alias("to"))
        _copy(named, base, root)
        named.drop("file", "to", "observationID", "filename", "poisonous").write_csv(root / f"DF20-{part}_metadata.csv")
    _copy(test.with_columns(pl.format("DF21/{}", "filename").alias("to")), base, root)
    shown = [pl.col("observationID").alias("ObservationId"), *(pl.col(a).alias(b) for a, b in _TEST_2022.items())]
    test.select(*shown, "filename").write_csv(root / "FungiCLEF2022_test_metadata.csv")
    hidden = test.select("observationID", "class_id").unique("observationID", maintain_order=True)
    hidden.rename({"observationID": "ObservationId"}).write_csv(root / "test_labels.csv")
    _write_poisonous(root, tables["train"])
    return _counts({**tables, "test": test}, "class_id")


def pack_fungi_2023(base: Path, root: Path) -> Counts:
    """FungiCLEF 2023: unknown species in val and in test."""
    tables = {
        "train": _fungi(base, "Train", "train"),
        "val": _fungi(base, "OpenSet-Val", "val"),
        "public_test": _fungi(base, "OpenSet-Test", "test"),
    }
    told = ("scientificName", "kingdom", "phylum", "class", "order", "family", "genus", "species", "class_id")
    for part, rows in tables.items():
        folder = "DF20" if part == "train" else "DF21"
        _copy(rows.with_columns(pl.format("{}/{}", pl.lit(folder), "filename").alias("to")), base, root)
        shown = rows.drop("file", "poisonous", *(told if part == "public_test" else ()))
        path = f"FungiCLEF2023_{part}_metadata_PRODUCTION.csv"
        shown.rename({"filename": "image_path"}).write_csv(root / path)
    hidden = tables["public_test"].select("observationID", "class_id").unique("observationID", maintain_order=True)
    hidden.write_csv(root / "test_labels.csv")
    _write_poisonous(root, tables["train"])
    return _counts(tables, "class_id")


def _snakes(base: Path, part: str) -> pl.DataFrame:
    """The photos of a part with the columns of 2022 and later."""
    stem = {"train": "train", "val": "validate", "test": "test"}[part]
    rows = pl.read_csv(base / f"{stem}_{'metadata' if part == 'test' else 'labels'}.csv", infer_schema=False)
    if part == "test":
        rows = rows.join(
            pl.read_csv(base / "test_labels.csv", infer_schema=False), on="hashed_id", maintain_order="left"
        )
    classes = pl.read_csv(base / "round4_classes.csv", infer_schema=False)["scientific_name"].to_list()
    number = {slug: str(place) for place, slug in enumerate(classes)}
    name = pl.col("scientific_name").str.replace("-", " ").str.slice(0, 1).str.to_uppercase() + pl.col(
        "scientific_name"
    ).str.replace("-", " ").str.slice(1)
    rows = rows.with_row_index("observation_id", offset=10_000 * (1 + ["train", "val", "test"].index(part)))
    return rows.select(
        pl.format("{}_images/{}.jpg", pl.lit(stem), "hashed_id").alias("file"),
        pl.col("observation_id").cast(pl.String),
        pl.lit("False").alias("endemic"),
        name.alias("binomial_name"),
        pl.col("country").str.to_lowercase(),
        pl.col("country").str.slice(0, 2).str.to_uppercase().alias("code"),
        pl.col("scientific_name").replace_strict(number).alias("class_id"),
        pl.format("2020/{}/{}.jpg", name.str.replace(" ", "_"), "hashed_id").alias("path"),
    )


def _write_venomous(base: Path, root: Path) -> None:
    listed = pl.read_csv(base / "venomous.csv", infer_schema=False).sort("scientific_name")
    rows = listed.with_row_index("class_id").select("class_id", MIVS="venomous")
    rows.write_csv(root / "venomous_status_list.csv")


def pack_snakes_2021(base: Path, root: Path) -> Counts:
    """SnakeCLEF 2021: species by `binomial`, photos by `UUID`; the table of test is the organizers' own."""
    tables = {part: _snakes(base, part) for part in ("train", "val", "test")}
    for part, rows in tables.items():
        name = pl.col("file").str.extract(r"([^/]+)\.jpg$")
        _copy(rows.with_columns(pl.format("images/{}.jpg", name).alias("to")), base, root)
        shown = rows.select(
            binomial="binomial_name", country="country", UUID=name, source=pl.lit("inaturalist"), subset=pl.lit(part)
        )
        tables[part] = shown
    train = pl.concat([tables["train"], tables["val"]])
    train.write_csv(root / "SnakeCLEF2021_train_metadata_PROD.csv")
    tables["test"].write_csv(root / "SnakeCLEF2021_test_metadata_PROD.csv")
    shutil.copyfile(base / "species_to_country.csv", root / "species_to_country.csv")
    return _counts(tables, "binomial")


def pack_snakes_2022(base: Path, root: Path) -> Counts:
    """SnakeCLEF 2022: no val, and paths in `file_path`."""
    train = pl.concat([_snakes(base, "train"), _snakes(base, "val")])
    tables, folder = {"train": train, "test": _snakes(base, "test")}, "SnakeCLEF2022-small_size"
    for part, rows in tables.items():
        _copy(rows.with_columns(pl.format("{}/{}", pl.lit(folder), "path").alias("to")), base, root)
        shown = rows.drop("file", *(("binomial_name", "class_id") if part == "test" else ()))
        shown.rename({"path": "file_path"}).write_csv(root / f"SnakeCLEF2022-{part.capitalize()}Metadata.csv")
    tables["test"].select("observation_id", "class_id").write_csv(root / "test_labels.csv")
    _write_venomous(base, root)
    return _counts(tables, "class_id")


def pack_snakes_2023(base: Path, root: Path, *, test: str = "SnakeCLEF2023-PubTestMetadata") -> Counts:
    """SnakeCLEF 2023: train from two sources, those of HerpMapper below the root."""
    train = _snakes(base, "train")
    from_herpmapper = pl.int_range(pl.len()) % 5 == 4
    herpmapper = train.filter(from_herpmapper).with_columns(pl.format("HMP/{}", "path").alias("path"))
    tables = {
        "SnakeCLEF2023-TrainMetadata-iNat": train.filter(~from_herpmapper),
        "SnakeCLEF2023-TrainMetadata-HM": herpmapper,
        "SnakeCLEF2023-ValMetadata": _snakes(base, "val"),
        test: _snakes(base, "test"),
    }
    for name, rows in tables.items():
        folder = "" if name.endswith("HM") else f"{name.partition('-')[0]}-small_size/"
        _copy(rows.with_columns(pl.format("{}{}", pl.lit(folder), "path").alias("to")), base, root)
        hidden = ("binomial_name", "class_id") if name == test else ()
        rows.drop("file", *hidden).rename({"path": "image_path"}).write_csv(root / f"{name}.csv")
    tables[test].select("observation_id", "class_id").write_csv(root / "test_labels.csv")
    _write_venomous(base, root)
    return _counts(tables, "class_id")


def pack_snakes_2024(base: Path, root: Path) -> Counts:
    """SnakeCLEF 2024: the data of 2023, and a test of its own."""
    return pack_snakes_2023(base, root, test="SnakeCLEF2024-TestMetadata")


def pack_plants_2021(base: Path, root: Path) -> Counts:
    """PlantCLEF 2021: the pictures of 2020 as they are."""
    shutil.copytree(base, root, dirs_exist_ok=True)
    counts: Counts = json.loads((base / WORLD_FILE).read_text(encoding="utf-8"))["counts"]
    return counts


WRITE_FUNGI_2022 = writer("fungiclef-2022", pack_fungi_2022, fungitastic.write)
WRITE_FUNGI_2023 = writer("fungiclef-2023", pack_fungi_2023, fungitastic.write)
WRITE_SNAKES_2021 = writer("snakeclef-2021", pack_snakes_2021, snakeclef.write)
WRITE_SNAKES_2022 = writer("snakeclef-2022", pack_snakes_2022, snakeclef.write)
WRITE_SNAKES_2023 = writer("snakeclef-2023", pack_snakes_2023, snakeclef.write)
WRITE_SNAKES_2024 = writer("snakeclef-2024", pack_snakes_2024, snakeclef.write)
WRITE_PLANTS_2021 = writer("plantclef-2021", pack_plants_2021, plantclef.write)
