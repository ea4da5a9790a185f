"""The plants of a world as PlantCLEF packs them since 2022, and its snakes as FathomNet packs animals.

Photos of plots are put together of photos of single plants, three by three: what stands beside what is drawn, and
plots of one transect share half of their species. Real quadrats are nothing like that: a tile here shows one plant.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from fieldmark_worlds.layouts import plantclef, snakeclef
from fieldmark_worlds.layouts.relaid import Counts, writer

PLOT_SIDE, TILE_PX = 3, 96
TRANSECTS, PLOTS_PER_TRANSECT = 4, 3
SPECIES_PER_PLOT = 4


def _pictures(base: Path) -> pl.DataFrame:
    """The field photos of a world of PlantCLEF 2020 of species that have some to learn from: `file, part, ...`."""
    rows = []
    truth = dict(pl.read_csv(base / "test/ground_truth.csv", separator=";", infer_schema=False).iter_rows())
    for xml in sorted(base.rglob("*.xml")):
        text = xml.read_text(encoding="utf-8")
        said = dict(_tag(line) for line in text.splitlines()[2:-1])
        if said["PhotoType"] == "Photo":
            label = said.get("ClassId") or truth[said["ObservationId"]]
            part = "test" if xml.parent.name == "test" else "train"
            place = (said["Latitude"], said["Longitude"])
            file = str(xml.with_suffix(".jpg").relative_to(base))
            rows.append((file, part, label, said["ObservationId"], *place))
    table = pl.DataFrame(
        rows, ("file", "part", "label", "observation", "latitude", "longitude"), orient="row"
    )  # fmt: skip
    names = pl.read_csv(base / "classes.csv", infer_schema=False).rename({"ClassId": "label"})
    learned = table.filter(pl.col("part") == "train")["label"].unique()
    table = table.filter(pl.col("label").is_in(learned.implode()))
    return table.join(names.drop("rare"), on="label", how="left", maintain_order="left")


def _tag(line: str) -> tuple[str, str]:
    name, _, rest = line.strip().lstrip("<").partition(">")
    return name, rest.rpartition("</")[0]


def pack_plants_2022(base: Path, root: Path) -> Counts:
    """PlantCLEF 2022: trusted photos and photos of the web to learn from."""
    pictures = _pictures(base)
    train = pictures.filter(pl.col("part") == "train")
    on_web = pl.int_range(pl.len()) % 4 == 3
    tables = {"trusted": train.filter(~on_web), "web": train.filter(on_web)}
    for kind, rows in tables.items():
        path = pl.format("{}/{}", "label", pl.col("file").str.extract(r"([^/]+)$")).alias("image_path")
        shown = rows.select(
            pl.col("label").alias("classid"), path, pl.col("observation").alias("gbif_occurrence_id"),
            pl.col("scientific_name").alias("species"), "genus", "family", "file",
        )  # fmt: skip
        _copy_all(base, root, shown["file"], [f"{kind}/images/{one}" for one in shown["image_path"]])
        out = root / kind / f"PlantCLEF2022_{kind}_training_metadata.csv"
        shown.drop("file").write_csv(out, separator=";")
    test = pictures.filter(pl.col("part") == "test")
    names = [Path(file).name for file in test["file"]]
    _copy_all(base, root, test["file"], [f"test/images/{name}" for name in names])
    listed = test.select(pl.col("observation").alias("obsid"), pl.Series("image_name", names), "latitude", "longitude")
    listed.write_csv(root / "test/PlantCLEF2022_test_metadata.csv", separator=";")
    hidden = test.select(obsid="observation", classid="label").unique("obsid", maintain_order=True)
    hidden.write_csv(root / "test_labels.csv", separator=";")
    return {part: {"photos": len(rows)} for part, rows in {**tables, "test": test}.items()}


def pack_plots(base: Path, root: Path) -> Counts:
    """PlantCLEF 2024 to 2026: single plants with `learn_tag`, and photos of plots."""
    pictures = _pictures(base)
    train = pictures.filter(pl.col("part") == "train")
    # Observations of a species in turn: most to learn from, some for val and test.
    turn = pl.col("observation").rank("dense").over("label") % 4
    tag = pl.when(turn == 0).then(pl.lit("val")).when(turn == 3).then(pl.lit("test")).otherwise(pl.lit("train"))
    train = train.with_columns(tag.alias("learn_tag"), pl.col("file").str.extract(r"([^/]+)$").alias("image_name"))
    shown = train.select(
        "image_name", pl.lit("habit").alias("organ"), pl.col("label").alias("species_id"),
        pl.col("observation").alias("obs_id"), "latitude", "longitude", pl.col("scientific_name").alias("species"),
        "genus", "family", "learn_tag",
    )  # fmt: skip
    shown.write_csv(root / "PlantCLEF2024_single_plant_training_metadata.csv", separator=";")
    targets = [f"images_max_side_800/{label}/{name}" for label, name in train.select("label", "image_name").iter_rows()]
    _copy_all(base, root, train["file"], targets)
    seed = int(json.loads((base / "WORLD.json").read_text(encoding="utf-8"))["seed"])
    plots = _write_plots(base, root, pictures.filter(pl.col("part") == "test"), np.random.default_rng(seed))
    return {"single plants": {"photos": len(train)}, "plots": {"photos": plots}}


def _write_plots(base: Path, root: Path, photos: pl.DataFrame, rng: np.random.Generator) -> int:
    files = {label: rows["file"].to_list() for (label,), rows in photos.group_by("label")}
    labels = sorted(files)
    folder = root / "PlantCLEF2025_test_images"
    folder.mkdir(parents=True)
    lines = ["quadrat_id,species_ids,transect"]
    for transect in range(TRANSECTS):
        shared = rng.choice(labels, size=min(SPECIES_PER_PLOT // 2, len(labels)), replace=False)
        for plot in range(PLOTS_PER_TRANSECT):
            more = rng.choice(labels, size=min(SPECIES_PER_PLOT - len(shared), len(labels)), replace=False)
            inside = sorted({str(one) for one in (*shared, *more)})
            shown = [*inside, *(str(rng.choice(inside)) for _ in range(PLOT_SIDE**2 - len(inside)))]
            tiles = [base / str(rng.choice(files[label])) for label in rng.permutation(shown)]
            name = f"T{transect + 1}-A{plot + 1}-20250601"
            _mosaic(tiles).save(folder / f"{name}.jpg", quality=95)
            lines.append(f'{name},"[{", ".join(inside)}]",T{transect + 1}')
    (root / "test_labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return TRANSECTS * PLOTS_PER_TRANSECT


def _mosaic(tiles: Sequence[Path]) -> Image.Image:
    whole = Image.new("RGB", (PLOT_SIDE * TILE_PX, PLOT_SIDE * TILE_PX))
    for place, tile in enumerate(tiles):
        row, column = divmod(place, PLOT_SIDE)
        with Image.open(tile) as photo:
            whole.paste(photo.convert("RGB").resize((TILE_PX, TILE_PX)), (column * TILE_PX, row * TILE_PX))
    return whole


def _copy_all(base: Path, root: Path, files: pl.Series, targets: Sequence[str]) -> None:
    for file, target in zip(files, targets, strict=True):
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        (root / target).write_bytes((base / file).read_bytes())


def pack_fathomnet(base: Path, root: Path) -> Counts:
    """FathomNet 2025: each snake a region of an image; every third genus is known by its own name alone."""
    classes = pl.read_csv(base / "round4_classes.csv", infer_schema=False)["scientific_name"].to_list()
    genera = sorted({slug.split("-")[0].capitalize() for slug in classes})
    coarse = set(genera[::3])
    name_of = {slug: _name(slug, coarse) for slug in classes}
    names = sorted(set(name_of.values()))
    lines = ["label,kingdom,phylum,class,order,family,genus,species"]
    for name in names:
        genus, _, epithet = name.partition(" ")
        family = f"{genera[genera.index(genus) // 2 * 2]}idae"
        lines.append(f"{name},Animalia,Chordata,Reptilia,Squamata,{family},{genus},{name if epithet else ''}")
    (root / "taxonomy.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    counts, first = {}, 1
    for part in ("train", "test"):
        rows = _labeled(base, part)
        _write_regions(root, base, part, [(file, name_of[slug]) for file, slug in rows], names, first)
        counts[part] = {"photos": len(rows)}
        first += len(rows)
    return counts


def _name(slug: str, coarse: set[str]) -> str:
    genus, _, epithet = slug.partition("-")
    return genus.capitalize() if genus.capitalize() in coarse else f"{genus.capitalize()} {epithet}"


def _labeled(base: Path, part: str) -> list[tuple[Path, str]]:
    stems = ("train", "validate") if part == "train" else ("test",)
    return [
        (base / f"{stem}_images/{row['hashed_id']}.jpg", row["scientific_name"])
        for stem in stems
        for row in pl.read_csv(base / f"{stem}_labels.csv", infer_schema=False).iter_rows(named=True)
    ]


def _write_regions(
    root: Path, base: Path, part: str, regions: Sequence[tuple[Path, str]], names: Sequence[str], first: int
) -> None:
    folder = root / part / "rois"
    folder.mkdir(parents=True)
    images: dict[int, dict[str, Any]] = {}
    annotations, hidden = [], ["annotation_id,concept_name"]
    for number, (file, name) in enumerate(regions, first):
        image = 50_000 + number // 2  # two animals in an image
        images[image] = {"id": image, "file_name": f"{image}.png", "width": 640, "height": 480}
        category = names.index(name) + 1 if part == "train" else 0
        annotations.append({"id": number, "image_id": image, "category_id": category, "bbox": [0, 0, 160, 160]})
        hidden.append(f"{number},{name}")
        with Image.open(file) as photo:
            photo.save(folder / f"{image}_{number}.png")
    categories = [{"id": place, "name": name} for place, name in enumerate(names, 1)]
    whole = {"images": list(images.values()), "annotations": annotations, "categories": categories}
    (root / f"dataset_{part}.json").write_text(json.dumps(whole), encoding="utf-8")
    if part == "test":
        (root / "test_labels.csv").write_text("\n".join(hidden) + "\n", encoding="utf-8")


WRITE_PLANTS_2022 = writer("plantclef-2022", pack_plants_2022, plantclef.write)
WRITE_PLOTS = writer("plantclef-2024", pack_plots, plantclef.write)
WRITE_FATHOMNET = writer("fathomnet-2025", pack_fathomnet, snakeclef.write)
