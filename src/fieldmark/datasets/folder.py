"""A researcher's own photos or recordings, one folder per class.

```
ROOT/
  train/<class>/*.jpg        either the parts are folders (val and test may be missing) ...
  val/<class>/*.jpg
  test/<class>/*.jpg
  <class>/*.jpg              ... or there are only classes, and the parts are drawn with a seed
  train/<domain>/<class>/    a part may be sorted by domain first (herbarium, photo)
  observations.csv           optional: file[,observation,domain,date,latitude,longitude,...]; plants.csv: file,plant
  taxa.csv                   optional: label[,kingdom,...,species,scientific_name,poisonous,red_list]; or species.csv
  boxes.csv                  optional: photo,x,y,width,height (see `photo_boxes`)
  rasters/*.tif              optional: maps (climate, elevation); what they say at the place of an observation
```

Quirks:

- A photo is any `.jpg`, `.jpeg`, `.png` or `.webp`, a recording any `.wav`, `.flac`, `.ogg` or `.mp3`, in any case.
  Hidden files and other files are passed over. A folder holds one or the other; "photo" below means either.
- `file` in `observations.csv` is the path below ROOT. A photo without a row, and any photo where there is no table, is
  an observation of its own. Columns beyond the named ones (habitat, substrate, ...) become columns of the observation.
- `plants.csv` is read where there is no `observations.csv`, and tells which photos show one plant; `species.csv` is
  read where there is no `taxa.csv`. Genus, species and, for plants, the family are taken from a `scientific_name`
  where the table does not have them.
- A part is sorted by domain where none of its folders holds photos and those in them do. A column `domain` wins.
  An observation may be in several domains: a plant that was photographed and pressed.
- `label` in `taxa.csv` is the name of the class folder. Without a table, a class called like a binomial
  ("Amanita muscaria" or "Amanita_muscaria") tells its genus.
- The id of a photo is its file name, without the class folder, which would give the answer away. Where two photos
  share a file name, a few digits that stand for the folder are put in front.
- The label set is every class of every part, so that a class that cannot be learned still counts.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from typing import NamedTuple

import polars as pl

from fieldmark.datasets.base import Dataset
from fieldmark.datasets.environment import ENVIRONMENT
from fieldmark.datasets.gridded import RASTERS_FOLDER, Rasters
from fieldmark.datasets.inputs import CONTEXT, MEDIA_INPUTS, Input, Layer, MediaKind
from fieldmark.datasets.photo_boxes import BOXES, BOXES_FILE, MediaBoxes, has_boxes, with_boxes
from fieldmark.datasets.plant_families import family_of
from fieldmark.datasets.scientific_names import parse_name
from fieldmark.errors import InputError, MisuseError
from fieldmark.foundation.media_files import is_photo, is_recording
from fieldmark.release import Release
from fieldmark.splits import Official, Seeded
from fieldmark.tables import RANKS, missing_column, parse_column, read_csv

PART_FOLDERS = ("train", "val", "test")
# How a folder is cut: into its own parts, or by a draw over observations.
SPLIT = Official(train="train", val="val", test="test", otherwise=Seeded(val=0.15, test=0.25))
OBSERVATIONS_FILES, TAXA_FILES = ("observations.csv", "plants.csv"), ("taxa.csv", "species.csv")
RENAMED = {"observation": "observation_id", "plant": "observation_id", "latitude": "lat", "longitude": "lon"}
BINOMIAL = re.compile(r"^([A-Z][a-z]+)[ _]([a-z][a-z-]+)$")


def open_folder(release: Release, subset: str = "all") -> Dataset:
    """Opens a folder of photos as a dataset; there are no subsets."""
    if subset != "all":
        raise MisuseError(f"A folder of photos has no subset called {subset!r}.")
    photos, remarks = _list_photos(release)
    kind = _kind(release, photos)
    observations, photos = _observations(release, photos)
    parts = pl.when(pl.col("part").is_null()).then(pl.lit([], pl.List(pl.String))).otherwise(pl.concat_list("part"))
    domain = () if photos["domain"].is_null().all() else ("domain",)
    media = with_boxes(release, photos.select("media_id", "observation_id", "path", parts.alias("parts"), *domain))
    taxa = _taxa(release, photos)
    layers: dict[str, Layer] = _rasters_layer(release, observations)
    inputs: tuple[Input, ...] = (MEDIA_INPUTS[kind], *CONTEXT, ENVIRONMENT)
    if has_boxes(media):
        layers["boxes"], inputs = MediaBoxes(media, release.where(BOXES_FILE)), (*inputs, BOXES)
    return Dataset(
        "folder",
        release,
        taxa,
        observations,
        media,
        remarks,
        layers=layers,
        inputs=inputs,
        media_kind=kind,
        tells_observations=_table_of_observations(release) is not None,
    )


def _rasters_layer(release: Release, observations: pl.DataFrame) -> dict[str, Layer]:
    paths = tuple(f"{RASTERS_FOLDER}/{name}" for name in _rasters(release))
    return {"environment": Rasters.of(release, paths, observations)} if paths else {}


def _rasters(release: Release) -> list[str]:
    return [name for name in release.files(RASTERS_FOLDER) if name.lower().endswith((".tif", ".tiff"))]


def _kind(release: Release, photos: pl.DataFrame) -> MediaKind:
    """Whether the folder holds photos or recordings; both at once cannot be learned together."""
    sound = pl.Series([is_recording(path) for path in photos["path"]], dtype=pl.Boolean)
    if sound.any() and not sound.all():
        photo, recording = photos["path"].filter(~sound)[0], photos["path"].filter(sound)[0]
        found = f"photos ({photo}) and recordings ({recording})"
        raise InputError(release.root, found=found, expected="one or the other", hint="Keep them in two folders.")
    return "recording" if sound.any() else "photo"


class ClassFolder(NamedTuple):
    """The folder of one class: where it lies, in which domain, and whose it is."""

    path: str
    domain: str | None
    label: str


def class_folders(release: Release, part: str | None) -> list[ClassFolder]:
    """The folders of the classes of a part, which may be sorted by domain first; of the root without a part."""
    base = f"{part}/" if part else ""
    plain = [ClassFolder(f"{base}{name}", None, name) for name in release.folders(part or "")]
    if part is None or any(_media_in(release, one.path) for one in plain):
        return plain
    sorted_by_domain = [
        ClassFolder(f"{one.path}/{name}", one.label, name) for one in plain for name in release.folders(one.path)
    ]
    return sorted_by_domain if any(_media_in(release, one.path) for one in sorted_by_domain) else plain


def _media_in(release: Release, folder: str) -> list[str]:
    return [name for name in release.files(folder) if is_photo(name) or is_recording(name)]


def _list_photos(release: Release) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """One row per photo with `path`, `part`, `domain`, `label` and `media_id`."""
    parts = [part for part in PART_FOLDERS if part in release.folders()]
    if parts and "train" not in parts:
        raise InputError(release.root, found=f"{' and '.join(parts)} but no train", expected="a folder train/<class>/")
    rows: list[tuple[str, str | None, str | None, str]] = []
    empty: list[str] = []
    where_to_look: list[str | None] = [*parts] or [None]
    for part in where_to_look:
        before = len(rows)
        for folder in class_folders(release, part):
            if not part and folder.label == RASTERS_FOLDER and _rasters(release):
                continue
            media = _media_in(release, folder.path)
            rows += [(f"{folder.path}/{name}", part, folder.domain, folder.label) for name in media]
            empty += [] if media else [folder.path]
        if len(rows) == before:
            place = release.where(part) if part else release.root
            layout = f"photos in {part}/<class>/" if part else "photos in <class>/ or train/<class>/"
            hint = "Put photos there, or remove the folder." if part else "One folder per class, photos directly in it."
            raise InputError(place, found="no photos", expected=layout, hint=hint)
    photos = pl.DataFrame(rows, dict.fromkeys(("path", "part", "domain", "label"), pl.String), orient="row")
    return photos.with_columns(media_id=media_ids(photos["path"])), _remarks(photos, empty)


def media_ids(paths: pl.Series) -> pl.Series:
    """An id for each photo: its file name, with a few digits in front where two photos share it."""
    names = pl.Series([path.rpartition("/")[2] for path in paths], dtype=pl.String)
    shared = names.is_duplicated()
    return pl.Series(
        "media_id",
        [
            f"{hashlib.blake2b(path.encode(), digest_size=4).hexdigest()}-{name}" if twice else name
            for path, name, twice in zip(paths, names, shared, strict=True)
        ],
        dtype=pl.String,
    )


def _remarks(photos: pl.DataFrame, empty: list[str]) -> tuple[str, ...]:
    remarks = []
    if empty:
        remarks.append(f"{len(empty)} class folder(s) hold no photos and are passed over: {', '.join(empty[:3])}.")
    unlearned = sorted(
        set(photos["label"]) - set(photos.filter(pl.col("part").is_null() | (pl.col("part") == "train"))["label"])
    )
    if unlearned:
        remarks.append(f"{len(unlearned)} class(es) have no training photos and count all the same: {unlearned[0]}.")
    return tuple(remarks)


def _observations(release: Release, photos: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The observations, and the photos with the observation each belongs to."""
    table = _table_of_observations(release)
    if table is None:
        photos = photos.with_columns(observation_id="media_id")
        return photos.select("observation_id", "label", *_nulls()), photos
    where = release.where(table)
    with release.open(table) as file:
        rows = read_csv(file, where, required=("file",))
    rows = rows.rename({old: new for old, new in RENAMED.items() if old in rows.columns})
    for name, kind in (("date", datetime.date), ("lat", float), ("lon", float)):
        rows = parse_column(rows, name, kind, where)
    _check_files(rows, photos, where)
    if "observation_id" not in rows.columns:
        rows = rows.with_columns(observation_id=pl.lit(None, dtype=pl.String))
    if "domain" in rows.columns:
        rows = rows.rename({"domain": "told_domain"})
    photos = photos.join(rows, left_on="path", right_on="file", how="left", maintain_order="left")
    if "told_domain" in rows.columns:
        photos = photos.with_columns(pl.coalesce("told_domain", "domain").alias("domain"))
    photos = photos.with_columns(pl.coalesce("observation_id", "media_id").alias("observation_id"))
    _check_one_label_each(photos, where)
    context = [name for name in rows.columns if name not in ("file", "observation_id", "label", "part", "told_domain")]
    observations = photos.group_by("observation_id", maintain_order=True).agg(pl.col("label", *context).first())
    return observations, photos


def _table_of_observations(release: Release) -> str | None:
    """The file that tells which photos belong together, when and where; None where there is none."""
    return next((name for name in OBSERVATIONS_FILES if release.exists(name)), None)


def _nulls() -> list[pl.Expr]:
    kinds = {"date": pl.Date, "lat": pl.Float64, "lon": pl.Float64}
    return [pl.lit(None, dtype=kind).alias(name) for name, kind in kinds.items()]


def _check_files(rows: pl.DataFrame, photos: pl.DataFrame, where: str) -> None:
    twice = rows["file"].is_duplicated().arg_true()
    if len(twice) > 1:
        line = int(twice[1]) + 2
        raise InputError(where, line=line, found=f"{rows['file'][line - 2]!r} again", expected="one line per photo")
    absent = (~rows["file"].is_in(photos["path"].implode())).fill_null(True).arg_true()
    if len(absent):
        line = int(absent[0]) + 2
        more = f" ({len(absent) - 1} more such lines.)" if len(absent) > 1 else ""
        raise InputError(
            where,
            line=line,
            found=f"{rows['file'][line - 2]!r}, which is not there",
            expected="the path of a photo below the folder",
            hint=f"Restore the photo, or remove the line.{more}",
        )


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
                hint="Photos of one specimen on both sides of a split inflate the score.",
            )


def _taxa(release: Release, photos: pl.DataFrame) -> pl.DataFrame:
    labels = photos.select(pl.col("label").unique().sort())
    table = next((name for name in TAXA_FILES if release.exists(name)), None)
    if table is not None:
        where = release.where(table)
        with release.open(table) as file:
            rows = read_csv(file, where)
        if "label" not in rows.columns:
            raise missing_column(where, "label", rows.columns)
        rows = _with_ranks_of_names(parse_column(rows, "poisonous", bool, where))
        columns = [rank for rank in RANKS if rank in rows.columns]
        columns += [name for name in ("common_name", "scientific_name", "red_list") if name in rows.columns]
        return labels.join(rows.select("label", *columns, "poisonous"), on="label", how="left", maintain_order="left")
    matches = [BINOMIAL.match(label) for label in labels["label"]]
    genus = [match.group(1) if match else None for match in matches]
    return labels.with_columns(genus=pl.Series(genus, dtype=pl.String), poisonous=pl.lit(None, dtype=pl.Boolean))


def _with_ranks_of_names(taxa: pl.DataFrame) -> pl.DataFrame:
    """The table with genus, species and family where only a scientific name tells them."""
    if "scientific_name" not in taxa.columns or "genus" in taxa.columns:
        return taxa
    names = [parse_name(name or "") for name in taxa["scientific_name"]]
    columns = {"family": [family_of(name.genus) for name in names], "genus": [name.genus for name in names]}
    columns["species"] = [name.species for name in names]
    new = [pl.Series(rank, values, dtype=pl.String) for rank, values in columns.items() if rank not in taxa.columns]
    return taxa.with_columns(one for one in new if one.is_not_null().any())
