"""SnakeCLEF 2020 as its participants had it, and the tables of 2021.

```
ROOT/
  round4_classes.csv          scientific_name: the 783 species as slugs, in the order of a run's columns
  train_labels.csv            scientific_name,country,hashed_id and, in later copies, continent
  train_images/<hashed_id>.jpg
  validate_labels.csv, validate_images/      the same for validation; ..._small for a sample of it
  test_metadata.csv, test_images/            hashed_id,country,continent: what a submission was given
  test_labels.csv             the species of test, which only the organizers have
  venomous.csv                scientific_name,venomous: which species are dangerous to people, where somebody noted it
  boxes.csv                   photo,x,y,width,height in pixels, where somebody drew boxes
  <any name>.csv              species in the first column and countries in the others, 0 and 1: where species live
```

Quirks:

- A class is a slug (`crotalus-atrox`). The overview says 783 species, and 973 where it speaks of the test set; the list
  of classes has 783.
- A place that nobody knows is `UNKNOWN` (2021: `unknown`), and becomes a missing value here.
- `train_labels.csv` as first released has no continent. Where it is there it does not always fit the country: Costa
  Rica is filed under South America.
- Nothing tells which photos show the same snake: each is an observation of its own.
- The 2021 tables call a species by `binomial` and a photo by `UUID`; some have the family, the source (iNaturalist,
  HerpMapper, Flickr), whether the species is venomous, and a box by its center as shares of the photo. Tables overlap:
  one photo may be listed twice, and is one row here. Their photos are looked for in `images/`.
- The table of presence of 2021 lists 779 of the 783 species; four stand under newer names there.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.citations import working_note
from fieldmark.releases.photo_boxes import BOXES, SHARE_COLUMNS, MediaBoxes, ShareBoxes, has_boxes, with_boxes
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World
from fieldmark.releases.snakeclef.metadata import (
    CLASSES_FILE,
    MetadataTable,
    binomial_of,
    metadata_tables,
    read_table,
    slug_of,
)
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.inputs import CONTEXT, PHOTO_INPUT, Input, Layer
from fieldmark.tables.schema import missing_column, parse_column

NAME_2020, NAME_2021 = "snakeclef-2020", "snakeclef-2021"
VENOM_FILE = "venomous.csv"
# Where the photos of a part may lie, the first that is there.
FOLDERS = {
    "train": ("train_images", "images"),
    "val": ("validate_images", "validate_images_small", "images"),
    "test": ("test_images", "images"),
}
_NOWHERE = (
    pl.lit(None, pl.Date).alias("date"),
    pl.lit(None, pl.Float64).alias("lat"),
    pl.lit(None, pl.Float64).alias("lon"),
)
# What two tables may each know of a photo.
_KEPT = ("label", "country", "continent", "family", "source", "class_id", "poisonous", *SHARE_COLUMNS)


def open_snakeclef_2020(release: Release, subset: str = "all") -> Dataset:
    """Opens what there is of the release; there are no subsets.

    Raises:
        InputError: When neither metadata nor the list of classes are there, or when they contradict themselves.
    """
    return _open(release, subset, NAME_2020, edition=2020)


def open_snakeclef_2021(release: Release, subset: str = "all") -> Dataset:
    """Opens tables of 2021; there are no subsets.

    Raises:
        InputError: When there are none, or when they contradict themselves.
    """
    return _open(release, subset, NAME_2021, edition=2021)


def _open(release: Release, subset: str, name: str, *, edition: int) -> Dataset:
    if subset != "all":
        raise MisuseError(f"{name} has no subset called {subset!r}.")
    tables = list(metadata_tables(release))
    own = [table for table in tables if table.edition == edition]
    listed = listed_classes(release) if edition == 2020 or not own else None
    if not own and not (edition == 2020 and (listed or tables)):
        hint = "2020 has train_labels.csv with scientific_name and hashed_id; 2021 has tables with binomial and UUID."
        found = "no table of photos" if not tables else f"tables of {tables[0].edition}"
        raise InputError(release.root, found=found, expected=f"the metadata of {name}", hint=hint)
    remarks = []
    if not own and tables:
        remarks.append("There is no metadata of 2020; the rows are those of the 2021 tables that lie here.")
    photos = merged_photos(release, own or tables, listed if own else None)
    media = photos.select(
        "media_id", pl.col("media_id").alias("observation_id"), "path", "parts", "source", *SHARE_COLUMNS
    )
    media, told_boxes = with_boxes(release, media)
    layers, inputs = _boxes(release, media)
    return Dataset(
        name,
        release,
        _taxa(release, photos, listed or []),
        photos.select(pl.col("media_id").alias("observation_id"), "label", *_NOWHERE, "country", "continent"),
        media,
        (*remarks, *_remarks(release, photos, listed, own), *told_boxes),
        layers=layers,
        inputs=(PHOTO_INPUT, *CONTEXT, *inputs),
    )


def listed_classes(release: Release) -> list[str] | None:
    """The slugs of `round4_classes.csv` in their order; None where there is no such file.

    Raises:
        InputError: For a line without a slug, or one that is there already.
    """
    if not release.exists(CLASSES_FILE):
        return None
    frame, where = read_table(release, CLASSES_FILE), release.where(CLASSES_FILE)
    if "scientific_name" not in frame.columns:
        raise missing_column(where, "scientific_name", frame.columns)
    names = [slug_of(name or "") for name in frame["scientific_name"]]
    for number, name in enumerate(names):
        if not name or names.index(name) != number:
            found = f"{name!r} again" if name else "no name"
            raise InputError(where, line=number + 2, found=found, expected="each species once")
    return names


def merged_photos(release: Release, tables: Sequence[MetadataTable], listed: list[str] | None) -> pl.DataFrame:
    """One row per photo: what all tables together say of it, its parts and its path.

    Raises:
        InputError: For a species that is not listed, or two of them for one photo.
    """
    if not tables:
        texts = dict.fromkeys(("media_id", "path", *_KEPT), pl.String)
        empty = pl.DataFrame(schema=texts).cast({"poisonous": pl.Boolean, **dict.fromkeys(SHARE_COLUMNS, pl.Float64)})
        return empty.with_columns(parts=pl.lit([], pl.List(pl.String)))
    frames = []
    for table in tables:
        where = release.where(table.path)
        if listed is not None:
            strange = table.rows.filter(pl.col("label").is_not_null() & ~pl.col("label").is_in(listed))
            if len(strange):
                found = f"the species {strange['label'][0]!r}"
                expected = f"one of the {len(listed):,} of {CLASSES_FILE}"
                raise InputError(where, line=int(strange["line"][0]), found=found, expected=expected)
        part = pl.coalesce(pl.col("subset").replace({"validate": "val", "validation": "val"}), pl.lit(table.part))
        place = pl.format("{}, line {}", pl.lit(table.path), "line")
        frames.append(table.rows.with_columns(part.alias("part"), place.alias("written_in")))
    rows = pl.concat(frames)
    _refuse_two_species(release, rows)
    facts = (pl.col(name).drop_nulls().first() for name in _KEPT)
    parts = pl.col("part").unique(maintain_order=True).alias("parts")
    photos = rows.group_by("media_id", maintain_order=True).agg(parts, *facts)
    folder_of = {part: _folder(release, part) for part in rows["part"].unique()}
    first = pl.col("parts").list.first()
    folder = first.replace_strict(folder_of, return_dtype=pl.String)
    return photos.with_columns(pl.format("{}/{}.jpg", folder, "media_id").alias("path"))


def _refuse_two_species(release: Release, rows: pl.DataFrame) -> None:
    several = rows.drop_nulls("label").filter(pl.col("label").n_unique().over("media_id") > 1)
    if several.is_empty():
        return
    (_, first, one), (_, second, other) = (
        several.filter(pl.col("media_id") == several["media_id"][0]).unique("label", maintain_order=True)
        .select("media_id", "written_in", "label").head(2).iter_rows()
    )  # fmt: skip
    found = f"the photo {several['media_id'][0]} as {one}, and as {other} in {second}"
    raise InputError(release.where(first), found=found, expected="one species for each photo")


def _folder(release: Release, part: str) -> str:
    candidates = FOLDERS.get(part, ("images",))
    return next((folder for folder in candidates if release.exists(folder)), candidates[0])


def _taxa(release: Release, photos: pl.DataFrame, listed: Sequence[str]) -> pl.DataFrame:
    """One row per species: those of the list in its order, then others that photos show."""
    seen = photos["label"].drop_nulls().unique().to_list()
    slugs = [*listed, *sorted(set(seen) - set(listed))]
    by_species = (
        photos.drop_nulls("label").group_by("label").agg(pl.col("family", "class_id", "poisonous").drop_nulls().first())
    )
    names = [binomial_of(slug) for slug in slugs]
    taxa = pl.DataFrame(
        {"label": slugs, "genus": [name.split(" ")[0] for name in names], "species": names},
        schema=dict.fromkeys(("label", "genus", "species"), pl.String),
    )
    taxa = taxa.join(by_species, on="label", how="left", maintain_order="left").with_columns(scientific_name="species")
    noted = _venomous(release)
    if noted:
        flags = pl.col("label").replace_strict(noted, default=None, return_dtype=pl.Boolean)
        taxa = taxa.with_columns(pl.coalesce(flags, "poisonous").alias("poisonous"))
    further = [name for name in ("family", "class_id") if taxa[name].is_not_null().any()]
    return taxa.select("label", "poisonous", *further, "genus", "species", "scientific_name")


def _venomous(release: Release) -> dict[str, bool]:
    """Which species are venomous, as `venomous.csv` has it."""
    if not release.exists(VENOM_FILE):
        return {}
    where = release.where(VENOM_FILE)
    frame = read_table(release, VENOM_FILE)
    for name in ("scientific_name", "venomous"):
        if name not in frame.columns:
            raise missing_column(where, name, frame.columns)
    frame = parse_column(frame, "venomous", bool, where)
    return {slug_of(name or ""): flag for name, flag in frame.select("scientific_name", "venomous").iter_rows()}


def _boxes(release: Release, media: pl.DataFrame) -> tuple[dict[str, Layer], tuple[Input, ...]]:
    if has_boxes(media):
        return {"boxes": MediaBoxes(media, release.where("boxes.csv"))}, (BOXES,)
    if media.drop_nulls(list(SHARE_COLUMNS)).height:
        return {"boxes": ShareBoxes(media)}, (BOXES,)
    return {}, ()


def _remarks(
    release: Release, photos: pl.DataFrame, listed: Sequence[str] | None, own: Sequence[MetadataTable]
) -> list[str]:
    """What is missing, one sentence each."""
    remarks = []
    if photos.is_empty():
        return ["There is no table of photos: only the list of classes opens."]
    if own and own[0].edition == 2020 and listed is None:
        remarks.append(f"{CLASSES_FILE} is not there: the classes are the species of the labels.")
    absent = sorted({path.partition("/")[0] for path in photos["path"]} - set(release.folders()))
    if absent:
        remarks.append(f"No folder {', '.join(f'{name}/' for name in absent)}: the tables open, the photos do not.")
    hidden = photos.filter(pl.col("parts").list.contains("test") & pl.col("label").is_null()).height
    if hidden:
        remarks.append("Labels are not published for test; val is scored in their place.")
    return remarks


RECORDS = (
    ReleaseRecord(
        name="snakeclef-2020",
        about="SnakeCLEF 2020: photos of snakes, by country",
        open=open_snakeclef_2020,
        check="fieldmark.releases.snakeclef.check:check_snakeclef",
        download="fieldmark.releases.download.manifests.lifeclef_2020:SNAKECLEF_2020",
        world=World(
            "fieldmark_worlds.layouts.snakeclef:write",
            "invented snakes as SnakeCLEF 2020 is released, with mimics, countries, boxes and the species of test",
        ),
        terms="no license is stated; files are given to those who agree to the rules of the challenge",
        homepage="https://www.lifeclef.org/",
        size=PublishedSize(photos=287_632),
        citation=working_note(
            "picek2020snakeclef",
            "Overview of the SnakeCLEF 2020: Automatic Snake Species Identification Challenge",
            "Picek, Lukáš and Bolon, Isabelle and Durso, Andrew M. and Ruiz de Castañeda, Rafael",
            2020,
            paper="paper_258",
        ),
    ),
    ReleaseRecord(
        name="snakeclef-2021",
        about="tables of SnakeCLEF 2021: species, country, source, venomous, boxes",
        open=open_snakeclef_2021,
        check="fieldmark.releases.snakeclef.check:check_snakeclef",
        world=World(
            "fieldmark_worlds.layouts.relaid:WRITE_SNAKES_2021",
            "the snakes of the world of SnakeCLEF 2020 as SnakeCLEF 2021 is released",
        ),
        homepage="https://www.imageclef.org/LifeCLEF2021",
        size=PublishedSize(photos=386_006),
        citation=working_note(
            "picek2021snakeclef",
            "Overview of SnakeCLEF 2021: Automatic Snake Species Identification with Country-Level Focus",
            "Picek, Lukáš and Durso, Andrew M. and Bolon, Isabelle and Ruiz de Castañeda, Rafael",
            2021,
            paper="paper-125",
        ),
    ),
)
