"""Occurrences: what was seen where and when, from any table, a Darwin Core Archive or an iNaturalist export.

```
ROOT                           a folder, a .zip, or the table itself
  meta.xml, occurrence.txt     a Darwin Core Archive (`darwin_core.py`), with its extension of media ...
  observations-12345.csv       ... or an iNaturalist export, a simple download of GBIF, or any CSV with names of taxa
  occurrences.toml             optional: which column is which, how dates are written (`columns.py`)
  photos/<id>.jpg              optional: photos, called by the id of their record (`photos.py`)
  sites.csv, rasters/*.tif     optional: sites with presence and absence, maps of the environment (`regions.py`)
```

Quirks:

- What the table is, is told by its header. A remark says which it was taken for, and which columns count.
- The label is the species: where the format knows ranks, records of a genus or family alone have none, and are the part
  `unlabeled`; everything else is `train`, from which benchmarks draw. In other tables every name is a label, without
  its author where it is a binomial of a column of scientific names (`scientific_names.py`); a remark lists the names
  that one label joins. A column called or stated as `label` is taken as it is.
- A record without a photo is a place, one without coordinates at most a photo. The subset `places` holds the records
  with coordinates, `photos` those with a photo that is here, `all` every one; each has the labels of its own records.
- Rows that share an id are one record where they agree in name, place and date (tables of photos); otherwise the first
  counts. Records of absence are left out. Coordinates and dates that cannot be are emptied, never repaired.
- A date that is known to the month, or a range, has no `date`, but `year`, `month` and `date_precision`.
- Photos with an address and no file are counted in a remark. Nothing is downloaded.
- The reader keeps the columns that it knows and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.releases.environment import ENVIRONMENT
from fieldmark.releases.occurrences.coordinates import to_degrees
from fieldmark.releases.occurrences.names import taxa_of, with_labels
from fieldmark.releases.occurrences.photos import photos_of
from fieldmark.releases.occurrences.regions import (
    environment_layer,
    has_records,
    open_region,
    read_places,
    region_remarks,
    shared_environment,
)
from fieldmark.releases.occurrences.sources import ENVIRONMENT_ROLE, RecordSource, read_source
from fieldmark.releases.record import ReleaseRecord
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.dates import add_dates
from fieldmark.tables.inputs import CONTEXT, MEDIA_INPUTS, Layer
from fieldmark.tables.known_columns import Format, read_settings
from fieldmark.tables.row_problems import RowProblems
from fieldmark.tables.schema import MEDIA, RANKS, all_different
from fieldmark.tables.values import with_flags, with_ids, with_places, without_absences, without_placeholders

SUBSETS: Final = ("all", "photos", "places", "presence")
TRAIN, UNLABELED = "train", "unlabeled"
# What methods may read of records and places.
INPUTS: Final = (MEDIA_INPUTS["photo"], *CONTEXT, ENVIRONMENT)
# What makes two rows with one id the same record.
SAME: Final = ("label", "lat", "lon", "event_date")
FIRST_COLUMNS: Final = (
    *("observation_id", "label", "date", "lat", "lon", "coordinate_uncertainty_m", "country", "license", "observer"),
    *("basis_of_record", "scientific_name", "rank", "event_date", "year", "month", "date_precision"),
)


@dataclass(frozen=True)
class Records:
    """A release of occurrences, read and cleaned.

    Args:
        source: What was read, without its rows.
        rows: One row per record, in the order of the table.
        photos: One row per photo that is here.
        taxa: One row per label.
        problems: What is wrong with rows.
        without_file: How many photos have an address and no file.
    """

    source: RecordSource
    rows: pl.DataFrame
    photos: pl.DataFrame
    taxa: pl.DataFrame
    problems: RowProblems
    without_file: int


def open_occurrences(release: Release, subset: str = "all") -> Dataset:
    """Opens a table of occurrences.

    Args:
        release: A folder, a zip, or the folder of the table that was named.
        subset: `all`, the records with `photos`, those with coordinates (`places`), or these together with sites and
            background (`presence`).

    Raises:
        InputError: When there is no table, its columns cannot be told, or no record is left.
        MisuseError: When there is no such subset.
    """
    if subset not in SUBSETS:
        raise MisuseError(f"Occurrences have no subset called {subset!r}. {did_you_mean(subset, SUBSETS)}")
    if subset == "presence":
        return _open_presence(release)
    records = read_records(release)
    rows = records.rows
    if subset == "photos":
        rows = rows.filter(pl.col("observation_id").is_in(records.photos["observation_id"].implode()))
    elif subset == "places":
        rows = rows.filter(pl.col("lat").is_not_null())
    if rows.is_empty():
        missing = {"all": "no record", "photos": "no record with a photo", "places": "no record with coordinates"}[
            subset
        ]
        raise InputError(records.source.where, found=missing, expected="at least one", hint=_why_empty(records, subset))
    part = pl.when(pl.col("label").is_null()).then(pl.lit([UNLABELED])).otherwise(pl.lit([TRAIN])).alias("parts")
    of_record = rows.select("observation_id", part)
    media = records.photos.join(of_record, on="observation_id", how="inner", maintain_order="left")
    media = media.select("media_id", "observation_id", "path", "parts", "license", "rights_holder")
    taxa = records.taxa.join(rows.select(pl.col("label").unique()), on="label", how="semi", maintain_order="left")
    observations = _observations(rows)
    layers: dict[str, Layer] = {}
    if subset == "places":  # what has no media says itself which part it is in
        observations = observations.with_columns(of_record["parts"])
        layers, _ = environment_layer(release, observations, (), records.source.folder)
    return Dataset(
        "occurrences", release, taxa, observations, media, tuple(remarks(records)), layers=layers, inputs=INPUTS
    )


def _open_presence(release: Release) -> Dataset:
    """Records, sites and background of a region as places."""
    settings, folder = read_settings(release), ""
    told: list[str] = []
    known_taxa: pl.DataFrame | None = None
    known_region = open_region(release)
    if known_region is not None:
        places, environment, told = known_region
    else:
        rows = pl.DataFrame(schema={"observation_id": pl.String, "label": pl.String})
        if has_records(release, settings):
            records = read_records(release, shared_environment(release, settings))
            folder, told, known_taxa = records.source.folder, remarks(records), records.taxa
            rows = _observations(records.rows, with_environment=True).filter(pl.col("lat").is_not_null())
        places, environment = read_places(release, settings, rows)
    places = places.filter(pl.col("lat").is_not_null() & pl.col("lon").is_not_null())
    taxa = pl.DataFrame({"label": places["labels"].explode().drop_nulls().unique().sort()})
    if known_taxa is not None:
        taxa = taxa.join(known_taxa, on="label", how="left", maintain_order="left")
    if taxa.is_empty():
        raise InputError(release.root, found="no place with a species", expected="at least one")
    layers, places = environment_layer(release, places, environment, folder)
    told += region_remarks(places, layers.get("environment"))
    return Dataset("occurrences", release, taxa, places, MEDIA.empty(), tuple(told), layers=layers, inputs=INPUTS)


def read_records(release: Release, environment: Sequence[str] = ()) -> Records:
    """Reads and cleans the table of a release; what is wrong with rows is noted.

    Args:
        release: The root, or the folder of the table that was named.
        environment: Columns of numbers to read as well (`sources.read_source`).
    """
    problems, source = RowProblems(), read_source(release, environment)
    rows, source = source.rows, replace(source, rows=pl.DataFrame())  # one copy of the text is enough
    rows = without_absences(without_placeholders(rows), problems)
    rows = with_flags(with_places(_in_degrees(rows, source), problems))
    rows = add_dates(rows, problems, date_format=source.settings.date_format)
    as_stated = "label" in (source.settings.columns if source.kind.has_terms else rows.columns)
    by_rank = source.kind.has_terms or "rank" in rows.columns
    declared = source.kind.has_terms
    rows = with_labels(rows, problems, as_stated=as_stated, by_rank=by_rank, declared=declared)
    rows = with_ids(rows, problems)
    repeated = not all_different(rows["observation_id"])
    if repeated:
        rows = _one_record_per_id(rows, problems)
    photos, without_file = photos_of(release, source, rows, problems)
    if repeated:
        rows = rows.unique("observation_id", keep="first", maintain_order=True)
    taxa = taxa_of(rows, problems, declared=declared)
    return Records(replace(source, media=None), rows, photos, taxa, problems, without_file)


def _in_degrees(rows: pl.DataFrame, source: RecordSource) -> pl.DataFrame:
    """The rows with latitudes and longitudes, as text, where a coordinate system is stated."""
    if not source.settings.crs or "lat" not in rows.columns:
        return rows
    x, y = (rows[name].cast(pl.Float64, strict=False).to_numpy() for name in ("lon", "lat"))
    lat, lon = to_degrees(x, y, source.settings.crs, source.where)
    degrees = pl.DataFrame({"lat": lat, "lon": lon}, nan_to_null=True)
    return rows.with_columns(degrees["lat"].cast(pl.String), degrees["lon"].cast(pl.String))


def _one_record_per_id(rows: pl.DataFrame, problems: RowProblems) -> pl.DataFrame:
    """Leaves out rows whose id an earlier row has with another name, place or date."""
    again = rows.filter(pl.col("observation_id").is_duplicated())
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).first().over("observation_id")) for name in SAME)
    marked = again.with_columns(differs=differs)
    other, same = marked.filter("differs"), marked.filter(~pl.col("differs"))
    shown = pl.col("observation_id")
    what = "has the id of an earlier row and another name, place or date, and is left out"
    problems.add("error", what, other, shown)
    if "image_path" not in rows.columns:
        repeated = same.filter(~pl.col("observation_id").is_first_distinct())
        problems.add("warning", "repeats an earlier row and counts once", repeated, shown)
    return rows.join(other.select("file", "line"), on=["file", "line"], how="anti", maintain_order="left")


def _observations(rows: pl.DataFrame, *, with_environment: bool = False) -> pl.DataFrame:
    """The records, the usual columns first. Ranks stand with the taxa; records without a label keep their own."""
    if not with_environment:
        rows = rows.drop([name for name in rows.columns if name.startswith(ENVIRONMENT_ROLE)])
    passed_over = {"file", "line", "image_path", "image_license", "common_name", "iso"}
    ranks = [name for name in rows.columns if name in RANKS]
    coarse = [pl.when(pl.col("label").is_null()).then(pl.col(name)).alias(name) for name in ranks]
    first = [name for name in FIRST_COLUMNS if name in rows.columns]
    further = [name for name in rows.columns if name not in {*first, *passed_over, *ranks}]
    kept_ranks = [name for name in ranks if rows[name].filter(rows["label"].is_null()).is_not_null().any()]
    return rows.with_columns(coarse).select(*first, *further, *kept_ranks)


def remarks(records: Records) -> list[str]:
    """What a reader of the numbers should know, one sentence each."""
    rows, source = records.rows, records.source

    def count(condition: pl.Expr) -> int:
        return int(rows.select(condition.fill_null(False).sum()).item())

    told = [f"The table was read as {source.kind.value}: {source.columns}.", *records.problems.remarks()]
    numbers = {
        f"record(s) of {len(rows):,} have no label (part {UNLABELED})": count(pl.col("label").is_null()),
        "date(s) are known to the month or year only: year and month are kept, date is empty": count(
            pl.col("date_precision").is_in(["month", "year"])
        ),
        "photo(s) have an address and no file here; nothing was downloaded": records.without_file,
    }
    if "captive" in rows.columns:
        numbers["record(s) are of captive or cultivated organisms, and are kept"] = count(pl.col("captive"))
    if source.kind is Format.INATURALIST and "quality_grade" in rows.columns:
        numbers["record(s) are not of research grade, and are kept"] = count(pl.col("quality_grade") != "research")
    if "coordinates_obscured" in rows.columns:
        numbers["record(s) have obscured coordinates, off by up to some 30 km"] = count(pl.col("coordinates_obscured"))
    return told + [f"{number:,} {what}." for what, number in numbers.items() if number]


def _why_empty(records: Records, subset: str) -> str:
    if subset == "photos" and records.without_file:
        return f"{records.without_file:,} photos have an address only: save them as photos/<id>.jpg beside the table."
    return " ".join(records.problems.remarks()[:2])


RECORDS = (
    ReleaseRecord(
        name="occurrences",
        about="any table of occurrences: CSV, Darwin Core Archive, GBIF download, iNaturalist export",
        open=open_occurrences,
        check="fieldmark.releases.occurrences.check:check_occurrences",
        single_file=True,
    ),
)
