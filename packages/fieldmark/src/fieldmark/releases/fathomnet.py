"""FathomNet 2025: animals of the deep sea, cut out of the photos they were found in.

```
ROOT/
  dataset_train.json, dataset_test.json            COCO; also in data/
  train/rois/<image_id>_<annotation_id>.png        the animal of each annotation; also rois/
  test/rois/<image_id>_<annotation_id>.png
  taxonomy.csv                                     [rank,]label,kingdom,...,species: the tree, which the release does
                                                   not have, as the organizers' lookup of names gives it
  test_labels.csv                                  annotation_id,concept_name: what only the organizers have
```

Quirks:

- A category is a name of any rank. The release has no taxonomy: without `taxonomy.csv` names open, and the distance
  between two of them cannot be computed.
- Ranks of the taxonomy are blank where the lookup knew none: in the middle (the class of Sebastes), or all of them (the
  rank is then `Unknown`). A blank rank is an absent one (null): the path goes on with the next rank that is given.
- A name need not stand in its own path: Elpidia, a genus, has the kingdom alone, and Pandalus amplus the species
  Pandalus ampla. Remarks list such names, and names with the same path, which the tree does not tell apart.
- Test has annotations without categories, or with one that stands for nothing: those of test are never read.
- Regions of one image are not independent: the image is the unit, and val is drawn by image.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.checks import CHALLENGE_PAGE, Count, ReleaseCheck
from fieldmark.releases.citations import bibtex
from fieldmark.releases.coco import read_coco
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import RANKS

NAME = "fathomnet-2025"
TAXONOMY, TEST_LABELS = "taxonomy.csv", "test_labels.csv"
PARTS = ("train", "test")
# What stands in the column `rank` of a name that the lookup did not find.
NO_RANK = "unknown"


def open_fathomnet(release: Release, subset: str = "all") -> Dataset:
    """Opens the release; there are no subsets.

    Raises:
        InputError: When there are no annotations of train, or they contradict themselves.
    """
    if subset != "all":
        raise MisuseError(f"{NAME} has no subset called {subset!r}.")
    paths = {part: _path(release, part) for part in PARTS}
    if not paths["train"]:
        hint = "Unpack the download of the competition, and cut out the regions with the organizers' download.py."
        raise InputError(release.root, found="no dataset_train.json", expected=f"the release of {NAME}", hint=hint)
    regions = pl.concat([_regions(release, part, path) for part, path in paths.items() if path])
    hidden = _hidden(release)
    regions = regions.join(hidden, on="media_id", how="left", maintain_order="left")
    regions = regions.with_columns(pl.coalesce("label", "hidden").alias("label"))
    remarks = []
    unlabeled = int(regions["label"].is_null().sum())
    if unlabeled:
        remarks.append(f"{unlabeled:,} regions have no name: a run on them can be written, not scored.")
    taxa, told = _taxa(release, regions)
    observations = regions.select(pl.col("media_id").alias("observation_id"), "label", "image")
    media = regions.select("media_id", pl.col("media_id").alias("observation_id"), "path", "parts")
    return Dataset(NAME, release, taxa, observations, media, (*remarks, *told))


def _path(release: Release, part: str) -> str:
    return next((one for one in (f"dataset_{part}.json", f"data/dataset_{part}.json") if release.exists(one)), "")


def _regions(release: Release, part: str, path: str) -> pl.DataFrame:
    """One row per annotation of a part: `media_id, image, label, path, parts`."""
    file = read_coco(release, path, named=part == "train")
    rows = file.annotations
    if rows["id"].is_null().any():
        raise InputError(release.where(path), found="an annotation without id", expected="one for each")
    twice = rows["id"].is_duplicated().arg_true()
    if len(twice):
        found = f"the annotation {rows['id'][int(twice[0])]} more than once"
        raise InputError(release.where(path), found=found, expected="each once")
    names = dict(file.categories.select("id", "name").iter_rows())
    if part == "train":
        label = pl.col("category_id").replace_strict(names, default=None, return_dtype=pl.String)
        strange = rows.select(label.is_null()).to_series().arg_true()
        if len(strange):
            found = f"the category {rows['category_id'][int(strange[0])]} of an annotation"
            raise InputError(release.where(path), found=found, expected="one of 'categories'")
    else:
        label = pl.lit(None, pl.String)
    folder = next((one for one in (f"{part}/rois", f"{part}_rois", "rois") if release.exists(one)), f"{part}/rois")
    return rows.select(
        pl.col("id").cast(pl.String).alias("media_id"),
        pl.col("image_id").cast(pl.String).alias("image"),
        label.alias("label"),
        pl.format("{}/{}_{}.png", pl.lit(folder), "image_id", "id").alias("path"),
        pl.lit([part], pl.List(pl.String)).alias("parts"),
    )


def _hidden(release: Release) -> pl.DataFrame:
    if not release.exists(TEST_LABELS):
        return pl.DataFrame(schema={"media_id": pl.String, "hidden": pl.String})
    with release.open(TEST_LABELS) as file:
        rows = read_csv(file, release.where(TEST_LABELS), required=("annotation_id", "concept_name"))
    return rows.select(media_id="annotation_id", hidden="concept_name").unique("media_id", maintain_order=True)


def _taxa(release: Release, regions: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The names that may be answered, with their ranks where a taxonomy is there; and what is missing."""
    learned = regions.filter(pl.col("parts").list.contains("train"))["label"].unique().sort()
    if not release.exists(TAXONOMY):
        told = f"There is no {TAXONOMY}: how far two names lie apart cannot be computed."
        return pl.DataFrame({"label": learned}), (told,)
    table = _taxonomy(release)
    absent = learned.filter(~learned.is_in(table["label"].implode()))
    if len(absent):
        expected = "every name of dataset_train.json"
        raise InputError(release.where(TAXONOMY), found=f"no row for {absent[0]!r}", expected=expected)
    return table, tuple(_told(table))


def _taxonomy(release: Release) -> pl.DataFrame:
    """One row per name: `label`, its ranks with null for blank ones, and `rank` where the table states it.

    Raises:
        InputError: For a row without a name, or two rows of one name that differ.
    """
    where = release.where(TAXONOMY)
    with release.open(TAXONOMY) as file:
        table = read_csv(file, where, required=("label",))
    columns = [name for name in ("label", "rank", *RANKS) if name in table.columns]
    table = table.select(pl.col(columns).str.strip_chars().replace("", None)).with_row_index("line", 2)
    nameless = table.filter(pl.col("label").is_null())["line"]
    if len(nameless):
        raise InputError(where, line=int(nameless[0]), found="no label", expected="a name in each row")
    table = table.unique(columns, keep="first", maintain_order=True)
    twice = table.filter(pl.col("label").is_duplicated()).sort("label", "line")
    if len(twice):
        found = f"{twice['label'][0]!r} with other ranks than in line {twice['line'][0]}"
        raise InputError(where, line=int(twice["line"][1]), found=found, expected="one row for each name")
    if "rank" in columns:
        rank = pl.col("rank").str.to_lowercase()
        table = table.with_columns(rank=pl.when(rank != NO_RANK).then(rank))
    return table.drop("line")


def _told(table: pl.DataFrame) -> Iterator[str]:
    """What a reader of distances should know about the tree, one sentence each."""
    ranks = [rank for rank in RANKS if rank in table.columns]
    paths = {row["label"]: {rank: row[rank] for rank in ranks if row[rank]} for row in table.iter_rows(named=True)}
    bare = [name for name, path in paths.items() if not path]
    lowest = {name: [*path][-1] for name, path in paths.items() if path}
    gaps = {name: [rank for rank in ranks[: ranks.index(lowest[name])] if rank not in paths[name]] for name in lowest}
    apart = [
        f"{name} ({lowest[name]} {paths[name][lowest[name]]})" for name in lowest if name not in paths[name].values()
    ]
    same: dict[tuple[str, ...], list[str]] = {}
    for name, path in paths.items():
        same.setdefault(tuple(path.values()), []).append(name)
    alike = [" = ".join(names) for path, names in same.items() if path and len(names) > 1]
    blank = [f"{name} ({', '.join(missing)})" for name, missing in gaps.items() if missing]
    if blank:
        yield f"{len(blank)} names have blank ranks above their own, which their paths leave out: {'; '.join(blank)}."
    if bare:
        yield f"{len(bare)} names have no rank at all, so that no distance to them is known: {', '.join(bare)}."
    if apart:
        yield f"{len(apart)} names do not stand at the lowest rank of their own path: {'; '.join(apart)}."
    if alike:
        yield f"Names with the same path, which the tree does not tell apart: {'; '.join(alike)}."


RECORDS = (
    ReleaseRecord(
        name="fathomnet-2025",
        about="FathomNet 2025: animals of the deep sea, cut out of photos",
        open=open_fathomnet,
        check=ReleaseCheck(
            published={"train": {CHALLENGE_PAGE: Count(photos=23_700, classes=79)}},
            note="published in rounded figures: about 10 regions of each of 79 names in test",
        ),
        world=World(
            "fieldmark_worlds.layouts.relaid_plots:WRITE_FATHOMNET",
            "the snakes of the world of SnakeCLEF 2020 as FathomNet 2025 is released, names of two ranks",
        ),
        license="annotations CC BY-ND 4.0, photos CC BY-NC-ND 4.0; training of models is allowed for any purpose",
        terms="FathomNet's data use policy (terms in the README)",
        homepage="https://github.com/fathomnet/fgvc-comp-2025",
        size=PublishedSize(photos=24_500, rounded=True),
        citation=bibtex(
            "article",
            "katija2022fathomnet",
            title="FathomNet: A global image database for enabling artificial intelligence in the ocean",
            author="Katija, Kakani and Orenstein, Eric and Schlining, Brian and Lundsten, Lonny and Barnard, Kevin "
            "and Sainz, Giovanna and Boulais, Oceane and Cromwell, Megan and Butler, Erin and Woodward, "
            "Benjamin and others",
            journal="Scientific Reports",
            volume="12",
            number="1",
            pages="15914",
            year="2022",
            doi="10.1038/s41598-022-19939-2",
        ),
    ),
)
