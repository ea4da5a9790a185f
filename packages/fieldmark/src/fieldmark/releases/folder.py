"""A researcher's own photos or recordings, one folder per class.

```
ROOT/                        a folder, or a .zip; also one that holds nothing but this folder
  train/<class>/*.jpg        either the parts are folders (val and test may be missing) ...
  val/<class>/*.jpg          ... also called valid, validation, Training, testing, ... (`folder_layout.PART_NAMES`)
  test/<class>/*.jpg         or test/*.jpg, without labels
  <class>/*.jpg              ... or there are only classes, and the parts are drawn with a seed
  train/<domain>/<class>/    a part may be sorted by domain first (herbarium, photo), or by genus
  observations.csv           optional: file[,observation,domain,date,latitude,longitude,label,part,...]
  taxa.csv                   optional: label[,kingdom,...,species,scientific_name,poisonous,red_list]
  boxes.csv                  optional: photo,x,y,width,height (see `photo_boxes`)
  rasters/*.tif              optional: maps (climate, elevation); what they say at the place of an observation
```

Quirks:

- A photo is any `.jpg`, `.jpeg`, `.png`, `.webp`, `.tif`, `.avif` or `.heic`, a recording any `.wav`, `.flac`, `.ogg`,
  `.mp3` or `.m4a`, in any case. Other files are skipped, and a remark names them; hidden files are skipped
  without one. A folder holds photos or recordings; "photo" below means either.
- How folders are read is told in `folder_layout`, how tables are found and read in `own_tables` and `folder_tables`.
- A photo without a line in the table, and any photo where there is no table, is an observation of its own. Columns
  beyond the named ones (habitat, substrate, ...) become columns of the observation.
- The table of photos may also be called `plants`, `labels` or `metadata`, that of classes `species`. Genus, species
  and, for plants, the family are taken from a `scientific_name` where the table does not have them.
- A column `domain` wins over folders. An observation may be in several domains: a plant photographed and pressed.
- A column `label` tells the class of photos that lie in no folder of a class; where both tell it they must agree.
- Without a table, a class called like a binomial ("Amanita muscaria" or "Amanita_muscaria") tells its genus.
- The id of a photo is its file name, without the class folder, which would give the answer away. Where two photos
  share a file name, a few digits that stand for the folder are put in front.
- The label set is every class of every part, so that a class that cannot be learned still counts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from operator import attrgetter

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.environment import ENVIRONMENT
from fieldmark.releases.folder_labels import BY_TABLE, settle_labels, settle_parts
from fieldmark.releases.folder_layout import BINOMIAL, Listing, list_media, named, unwrapped
from fieldmark.releases.folder_tables import (
    OFFERED,
    PHOTO_TABLES,
    TAXA_COLUMNS,
    TAXA_TABLES,
    PhotoLines,
    read_photo_table,
    read_taxa_table,
)
from fieldmark.releases.gridded import RASTERS_FOLDER, Rasters
from fieldmark.releases.own_tables import find_table, unread_tables
from fieldmark.releases.photo_boxes import BOXES, BOXES_TABLES, MediaBoxes, has_boxes, with_boxes
from fieldmark.releases.plant_families import family_of
from fieldmark.releases.record import ReleaseRecord, World
from fieldmark.storage.release import Release
from fieldmark.tables.codes import all_different
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.inputs import CONTEXT, MEDIA_INPUTS, Input, Layer
from fieldmark.tables.media import MEDIA, PHOTO, Medium, medium_of
from fieldmark.tables.scientific_names import parse_name


@dataclass(frozen=True)
class FolderReading:
    """A folder as a dataset, and what was found on the way.

    Args:
        dataset: The tables.
        listing: Where the files lie.
        remarks: How folders and tables were read; the dataset has more to say, about classes and files.
    """

    dataset: Dataset
    listing: Listing
    remarks: tuple[str, ...]


def open_folder(release: Release, subset: str = "all") -> Dataset:
    """Opens a folder of photos as a dataset; there are no subsets."""
    if subset != "all":
        raise MisuseError(f"A folder of photos has no subset called {subset!r}.")
    return read_folder(release).dataset


def read_folder(release: Release) -> FolderReading:
    """Reads a folder of photos.

    Raises:
        InputError: For what cannot be read, or could be read in two ways.
    """
    refuse_single_file(release)
    release, remarks = unwrapped(release)
    photos, listing, table = _list_photos(release)
    remarks = (*remarks, *listing.remarks)
    medium = _medium(release, photos)
    observations, photos = _observations(photos, table)
    parts = pl.when(pl.col("part").is_null()).then(pl.lit([], pl.List(pl.String))).otherwise(pl.concat_list("part"))
    domain = () if photos["domain"].is_null().all() else ("domain",)
    media, boxes_remarks = with_boxes(
        release, photos.select("media_id", "observation_id", "path", parts.alias("parts"), *domain)
    )
    taxa, taxa_remarks = _taxa(release, photos)
    tables = {names: find_table(release, names) for names in (PHOTO_TABLES, TAXA_TABLES, BOXES_TABLES)}
    unread = unread_tables(release, list(tables.values()), OFFERED)
    remarks = (*remarks, *(table.remarks() if table else ()), *taxa_remarks, *boxes_remarks, *unread)
    layers: dict[str, Layer] = _rasters_layer(release, observations)
    inputs: tuple[Input, ...] = (MEDIA_INPUTS[medium.name], *CONTEXT, ENVIRONMENT)
    if has_boxes(media):
        where = release.where(tables[BOXES_TABLES] or "")
        layers["boxes"], inputs = MediaBoxes(media, where), (*inputs, BOXES)
    dataset = Dataset(
        "folder",
        release,
        taxa,
        observations,
        media,
        (*remarks, *_remarks(photos, listing)),
        layers=layers,
        inputs=inputs,
        medium=medium,
        tells_observations=table is not None,
    )
    return FolderReading(dataset, listing, remarks)


def refuse_single_file(release: Release) -> None:
    """Refuses a root that is a file and no zip."""
    if release.file:
        place = f"{release.root}/{release.file}"
        raise InputError(place, found="a file", expected="the folder of a release, or a .zip of it")


def _rasters_layer(release: Release, observations: pl.DataFrame) -> dict[str, Layer]:
    paths = tuple(f"{RASTERS_FOLDER}/{name}" for name in _rasters(release))
    return {"environment": Rasters.of(release, paths, observations)} if paths else {}


def _rasters(release: Release) -> list[str]:
    return [name for name in release.files(RASTERS_FOLDER) if name.lower().endswith((".tif", ".tiff"))]


def _medium(release: Release, photos: pl.DataFrame) -> Medium:
    """Whether the folder holds photos or recordings; both at once cannot be learned together."""
    first = {medium_of(path): path for path in reversed(photos["path"].to_list())}
    held = [medium for medium in MEDIA.values() if medium in first]
    if len(held) > 1:
        found = " and ".join(f"{medium.plural} ({first[medium]})" for medium in held)
        raise InputError(release.root, found=found, expected="one or the other", hint="Keep them in two folders.")
    return held[0] if held else PHOTO


def _list_photos(release: Release) -> tuple[pl.DataFrame, Listing, PhotoLines | None]:
    """One row per photo with `path`, `part`, `domain`, `label` and `media_id`; and what the table says of them."""
    listing = list_media(release, not_classes=[RASTERS_FOLDER] if _rasters(release) else [])
    table = read_photo_table(release, [one.path for one in listing.found])
    listing.found = settle_parts(listing, table)
    listing.found = settle_labels(release, listing, table)
    _refuse_empty(release, listing)
    columns = ("path", "part", "domain", "label")
    photos = pl.DataFrame([pl.Series(name, map(attrgetter(name), listing.found), pl.String) for name in columns])
    listing.found = []  # the table holds the same in less memory
    return photos.with_columns(media_id=media_ids(photos["path"])), listing, table


def _refuse_empty(release: Release, listing: Listing) -> None:
    if not listing.found:
        place, hint = release.root, "One folder per class, photos directly in it."
        raise InputError(place, found="no photos", expected="photos in <class>/ or train/<class>/", hint=hint)
    present = {one.part for one in listing.found}
    for part, name in listing.parts.items():
        if part not in present:
            hint = "Put photos there, or remove the folder."
            layout = f"photos in {name}/<class>/"
            raise InputError(release.where(name), found="no photos", expected=layout, hint=hint)


def media_ids(paths: pl.Series) -> pl.Series:
    """An id for each photo: its file name, with a few digits in front where two photos share it."""
    names = paths.str.extract("([^/]*)$").alias("media_id")
    if all_different(names):
        return names
    shared = names.is_duplicated()
    ids = [
        f"{hashlib.blake2b(path.encode(), digest_size=4).hexdigest()}-{name}"
        for path, name in zip(paths.filter(shared), names.filter(shared), strict=True)
    ]
    return names.scatter(shared.arg_true(), pl.Series(ids, dtype=pl.String))


def _remarks(photos: pl.DataFrame, listing: Listing) -> tuple[str, ...]:
    """What a reader should know about classes and files."""
    remarks, empty = [], listing.empty
    if empty:
        remarks.append(f"{len(empty)} class folder(s) hold no photos and are skipped: {', '.join(empty[:3])}.")
    learned = photos.filter(pl.col("part").is_null() | (pl.col("part") == "train"))["label"]
    unlearned = sorted(set(photos["label"].drop_nulls()) - set(learned))
    if unlearned:
        remarks.append(f"{len(unlearned)} class(es) have no training photos and count all the same: {unlearned[0]}.")
    if listing.no_parts:
        remarks.append(f"Folders that are no part (train, val, test) are not read: {named(listing.no_parts)}.")
    if listing.loose:
        remark = f"{len(listing.loose):,} photo(s) lie beside the folders of classes and are not read"
        hint = f"Put them into a folder of their class, or write {BY_TABLE}."
        remarks.append(f"{remark}: {named(listing.loose)}. {hint}")
    if listing.passed_over:
        files = listing.passed_over
        remarks.append(f"{len(files):,} file(s) are no photos or recordings and are not read: {named(files)}.")
    return tuple(remarks)


def _observations(photos: pl.DataFrame, told: PhotoLines | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The observations, and the photos with the observation each belongs to."""
    if told is None:
        photos = photos.with_columns(observation_id="media_id")
        return photos.select("observation_id", "label", *_nulls()), photos
    rows = told.table.rows.drop("label", "part", strict=False)
    if "observation_id" not in rows.columns:
        rows = rows.with_columns(observation_id=pl.lit(None, dtype=pl.String))
    if "domain" in rows.columns:
        rows = rows.rename({"domain": "told_domain"})
    photos = photos.join(rows, left_on="path", right_on="file", how="left", maintain_order="left")
    if "told_domain" in rows.columns:
        photos = photos.with_columns(pl.coalesce("told_domain", "domain").alias("domain"))
    photos = photos.with_columns(pl.coalesce("observation_id", "media_id").alias("observation_id"))
    _check_one_label_each(photos, told.table.where)
    context = [name for name in told.context if name in rows.columns]
    observations = photos.group_by("observation_id", maintain_order=True).agg(pl.col("label", *context).first())
    return observations, photos


def _nulls() -> list[pl.Expr]:
    kinds = {"date": pl.Date, "lat": pl.Float64, "lon": pl.Float64}
    return [pl.lit(None, dtype=kind).alias(name) for name, kind in kinds.items()]


def _check_one_label_each(photos: pl.DataFrame, where: str) -> None:
    mixed = photos.group_by("observation_id").agg(
        pl.col("label").n_unique().alias("labels"), pl.col("part").n_unique().alias("parts")
    )
    for column, what in (("labels", "classes"), ("parts", "parts (train, val, test)")):
        wrong = mixed.filter(pl.col(column) > 1).sort("observation_id")
        if len(wrong):
            name = wrong["observation_id"][0]
            raise InputError(
                where,
                found=f"observation {name!r} with photos in {wrong[column][0]} {what}",
                expected="all photos of an observation in one",
                hint="Photos of one specimen in train and test inflate the score.",
            )


def _taxa(release: Release, photos: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    labels = photos.select(pl.col("label").drop_nulls().unique().sort())
    rows, remarks = read_taxa_table(release, labels["label"].to_list())
    if rows is not None:
        rows = _with_ranks_of_names(rows)
        columns = [name for name in TAXA_COLUMNS if name in rows.columns]
        return labels.join(rows.select("label", *columns), on="label", how="left", maintain_order="left"), remarks
    matches = [BINOMIAL.match(label) for label in labels["label"]]
    genus = [match.group(1) if match else None for match in matches]
    return labels.with_columns(genus=pl.Series(genus, dtype=pl.String), poisonous=pl.lit(None, dtype=pl.Boolean)), []


def _with_ranks_of_names(taxa: pl.DataFrame) -> pl.DataFrame:
    """The table with genus, species and family where only a scientific name tells them."""
    if "scientific_name" not in taxa.columns or "genus" in taxa.columns:
        return taxa
    names = [parse_name(name or "") for name in taxa["scientific_name"]]
    columns = {"family": [family_of(name.genus) for name in names], "genus": [name.genus for name in names]}
    columns["species"] = [name.species for name in names]
    new = [pl.Series(rank, values, dtype=pl.String) for rank, values in columns.items() if rank not in taxa.columns]
    return taxa.with_columns(one for one in new if one.is_not_null().any())


RECORDS = (
    ReleaseRecord(
        name="folder",
        about="your own photos or recordings, one folder per class",
        open=open_folder,
        check="fieldmark.releases.folder_check:check_folder",
        world=World(
            "fieldmark_worlds.layouts.folder:write",
            "photos of invented fungi in folders by species, as a researcher's own photos are kept",
        ),
        single_file=True,
    ),
)
