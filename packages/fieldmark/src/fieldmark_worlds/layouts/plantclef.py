"""A small world in the layout of PlantCLEF 2020.

```
ROOT/
  herbarium/<ClassId>/<id>.jpg, <id>.xml                     sheets of every species
  photo/<ClassId>/<id>.jpg, <id>.xml                         field photos of some species
  herbarium_photo_associations/<ClassId>/<id>.jpg, <id>.xml  plants that were photographed and pressed
  test/<id>.jpg, <id>.xml                                    field photos of every species
  test/ground_truth.csv                                      ObservationId;ClassId, which only organizers have
  classes.csv                                                ClassId, names, ranks, rare
  traits.parquet                                             file, every trait: the truth behind the pixels
  WORLD.json                                                 what this is, how it was made, and how much there is
```

As in the real release, most species have no field photo to learn from, sheets have a long tail, authors of names are
joined by ampersands that are not escaped, and the associations folder mixes both domains. Rare species are most of
those without field photos; the list of the real release is not public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.work.blocks import Executor
from fieldmark_worlds.layouts.release_files import Size, extent_of, finding_rng, trait_table, world_mark
from fieldmark_worlds.nature.kingdom import Codes
from fieldmark_worlds.nature.nature import Nature, NatureSettings, grow_nature
from fieldmark_worlds.nature.observations import Sightings, observe
from fieldmark_worlds.nature.posterior import log_posterior
from fieldmark_worlds.plants.plant_pictures import PictureJob, paint_pictures
from fieldmark_worlds.plants.plants_kingdom import PLANTS

# Counts up whenever the same size and seed would give other files than before.
GENERATOR_VERSION = 1
CLASS_IDS = (1_000, 150_000)
# Of 997 species, 435 have field photos in the lists of a participant.
PHOTOGRAPHED_SHARE = 0.42
RARE_AMONG_OTHERS = 0.7
AUTHORS = ("L.", "Aubl.", "Ruiz & Pav.", "(Aubl.) Benth.", "Mart. ex Hiern", "(Klotzsch & Garcke) Boiss.", "Willd.")
SHEETS, PHOTOS, PAIRS, TEST = "herbarium", "photo", "herbarium_photo_associations", "test"


@dataclass(frozen=True)
class PlantExtent:
    """How much of a world is written.

    Attributes:
        nature: How rich the nature is.
        sheets: The fewest and the most sheets of a species.
        field: How many observations in the field a photographed species has in train.
        pairs: How many photographed species have a plant that was pressed as well, twice.
        test: How many observations of each species test has.
    """

    nature: NatureSettings
    sheets: tuple[int, int]
    field: int
    pairs: int
    test: int


def _nature(species: int, genera: int, observers: int) -> NatureSettings:
    return NatureSettings(species, genera, PLANTS, zipf=0.1, year_walk=0.05, newcomers=0.0, observers=observers)


EXTENTS: dict[Size, PlantExtent] = {
    "tiny": PlantExtent(_nature(10, 4, 12), sheets=(3, 5), field=3, pairs=2, test=2),
    "small": PlantExtent(_nature(60, 18, 60), sheets=(5, 14), field=5, pairs=8, test=3),
    "medium": PlantExtent(_nature(300, 80, 200), sheets=(8, 60), field=6, pairs=40, test=4),
}
# So many finds of a species are enough for every role, and one that is met less often than the others has them too.
FINDS_PER_SPECIES = 12


def write(
    out: Path, *, size: Size = "tiny", seed: int = 0, overwrite: bool = False, executor: Executor | None = None
) -> dict[str, object]:
    """Writes a world of the given size.

    Args:
        out: The root to be; it appears when complete.
        size: How much: about 100, 1,500 or 14,000 pictures.
        seed: Another seed is another nature.
        overwrite: Whether an existing folder is replaced.
        executor: Who paints; all cores unless given.

    Returns:
        The content of `WORLD.json`.
    """
    extent = extent_of(EXTENTS, size)
    nature, rng = grow_nature(extent.nature, seed), finding_rng(seed)
    classes = name_classes(nature, rng)
    seen, roles = find(nature, extent, classes["photographed"].to_numpy(), rng)
    pictures = picture_table(seen, roles, classes, rng)
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        paint_pictures(root, picture_jobs(seen, pictures, seed), executor)
        _write_xml(root, pictures)
        _write_tables(root, pictures, classes)
        truth = pl.concat([pictures.select("file", "class_id"), trait_table(seen, pictures)], how="horizontal")
        truth.write_parquet(root / "traits.parquet")
        about = {
            "counts": _counts(pictures),
            "rare_species": int(classes["rare"].sum()),
            "best_possible": {"test_mrr": _best_mrr(nature, seen.take(np.flatnonzero(roles == TEST)))},
        }
        mark = world_mark("plantclef-2020", size=size, seed=seed, generator_version=GENERATOR_VERSION, about=about)
        write_json(root / "WORLD.json", mark)
    return mark


def name_classes(nature: Nature, rng: np.random.Generator) -> pl.DataFrame:
    """One row per species: `class_id`, `scientific_name`, ranks, `photographed` and `rare`."""
    number = len(nature)
    ids = np.sort(rng.choice(np.arange(*CLASS_IDS), size=number, replace=False))
    photographed = np.zeros(number, dtype=np.bool_)
    photographed[rng.permutation(number)[: max(2, round(PHOTOGRAPHED_SHARE * number))]] = True
    rare = ~photographed & (rng.random(number) < RARE_AMONG_OTHERS)
    authors = np.resize(rng.permutation(AUTHORS), number)
    names = [f"{name} {author}" for name, author in zip(nature.labels, authors, strict=True)]
    return nature.taxa.select("genus", "family").with_columns(
        pl.Series("class_id", rng.permutation(ids).astype(str)),
        pl.Series("scientific_name", names),
        pl.Series("photographed", photographed),
        pl.Series("rare", rare),
    )


def find(
    nature: Nature, extent: PlantExtent, photographed: np.ndarray, rng: np.random.Generator
) -> tuple[Sightings, Codes]:
    """Finds of every species, and what becomes of each: a sheet, photos, both, or photos of test."""
    low, high = extent.sheets
    sheets = np.round(low + (high - low) * rng.power(0.6, len(nature))).astype(np.int64)
    field = np.where(photographed, extent.field, 0)
    pairs = np.zeros(len(nature), dtype=np.int64)
    pairs[rng.permutation(np.flatnonzero(photographed))[: extent.pairs]] = 2
    wanted = np.stack([sheets, field, pairs, np.full(len(nature), extent.test)], axis=1)
    enough = int(wanted.sum(axis=1).max()) + FINDS_PER_SPECIES
    seen = observe(nature, nature.settings.years, 3 * enough * len(nature), rng)
    row = pl.int_range(pl.len())
    number = seen.table.select(number=row.over("species"))["number"].to_numpy()
    upto = np.cumsum(wanted, axis=1)[seen.species]
    role = np.select([number < upto[:, place] for place in range(4)], [SHEETS, PHOTOS, PAIRS, TEST], "none")
    kept = np.flatnonzero(role != "none")
    return seen.take(kept), role[kept]


def picture_table(seen: Sightings, roles: Codes, classes: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """One row per picture: `file`, `folder`, `domain`, `row` (of the find), `picture`, and what its XML says."""
    rows = []
    for row, (role, photos) in enumerate(zip(roles, seen.table["photos"], strict=True)):
        domains = {SHEETS: ["herbarium"], PAIRS: ["herbarium", *["photo"] * photos]}.get(role, ["photo"] * photos)
        rows += [(row, str(role), domain, number) for number, domain in enumerate(domains, 1)]
    schema = {"row": pl.Int64, "folder": pl.String, "domain": pl.String, "picture": pl.Int64}
    table = pl.DataFrame(rows, schema, orient="row")
    finds = seen.table.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    told = classes.with_row_index("species").with_columns(pl.col("species").cast(pl.Int64))
    table = table.join(finds.drop("label"), on="row", how="left", maintain_order="left")
    table = table.join(told, on="species", how="left", maintain_order="left")
    media = rng.choice(np.arange(1, 20 * len(table)), size=len(table), replace=False)
    table = table.with_columns(pl.Series("media", media).cast(pl.String))
    folder = pl.when(pl.col("folder") == TEST).then(pl.lit(TEST)).otherwise(pl.format("{}/{}", "folder", "class_id"))
    return table.with_columns(pl.format("{}/{}.jpg", folder, "media").alias("file"))


def picture_jobs(seen: Sightings, pictures: pl.DataFrame, seed: int) -> list[PictureJob]:
    """What there is to paint, in the order of the pictures."""
    specimens = [seen.traits.specimen(row) for row in range(len(seen))]
    return [
        PictureJob(file, specimens[row], domain, seed, observation, number)
        for file, row, domain, observation, number in pictures.select(
            "file", "row", "domain", "observation_id", "picture"
        ).iter_rows()
    ]


def _write_xml(root: Path, pictures: pl.DataFrame) -> None:
    for row in pictures.iter_rows(named=True):
        kind = "Herbarium" if row["domain"] == "herbarium" else "Photo"
        said = {"ObservationId": row["observation_id"], "MediaId": row["media"], "PhotoType": kind}
        if row["folder"] != TEST:
            said |= {"ClassId": row["class_id"], "Family": row["family"], "Genus": row["genus"]}
            said |= {"Species": row["scientific_name"]}
        said |= {"Author": row["observer"], "Date": row["date"], "Location": row["habitat"]}
        said |= {"Latitude": row["latitude"], "Longitude": row["longitude"]}
        lines = [f"<{tag}>{value}</{tag}>" for tag, value in said.items()]  # ampersands stay as they are
        text = '<?xml version="1.0" encoding="utf-8"?>\n<Image>\n' + "\n".join(lines) + "\n</Image>\n"
        (root / row["file"]).with_suffix(".xml").write_text(text, encoding="utf-8")


def _write_tables(root: Path, pictures: pl.DataFrame, classes: pl.DataFrame) -> None:
    tested = pictures.filter(pl.col("folder") == TEST).unique("observation_id").sort("observation_id")
    truth = tested.select(ObservationId="observation_id", ClassId="class_id")
    truth.write_csv(root / TEST / "ground_truth.csv", separator=";")
    listed = classes.sort(pl.col("class_id").cast(pl.Int64)).rename({"class_id": "ClassId"})
    listed.select("ClassId", "scientific_name", "genus", "family", "rare").write_csv(root / "classes.csv")


def _counts(pictures: pl.DataFrame) -> Mapping[str, Mapping[str, int]]:
    test = pl.col("folder") == TEST
    parts = {domain: pictures.filter(~test & (pl.col("domain") == domain)) for domain in ("herbarium", "photo")}
    parts |= {"pressed and photographed": pictures.filter(pl.col("folder") == PAIRS), TEST: pictures.filter(test)}
    return {
        part: {
            "observations": rows["observation_id"].n_unique(),
            "photos": len(rows),
            "classes": rows["class_id"].n_unique(),
        }
        for part, rows in parts.items()
    }


def _best_mrr(nature: Nature, test: Sightings) -> float:
    """The mean reciprocal rank that the exact posterior given the traits reaches on test."""
    posterior = log_posterior(nature, test.traits, prior=np.full(len(nature), 1 / len(nature)))
    own = posterior[np.arange(len(test)), test.species]
    return round(float((1 / (1 + (posterior > own[:, None]).sum(axis=1))).mean()), 4)
