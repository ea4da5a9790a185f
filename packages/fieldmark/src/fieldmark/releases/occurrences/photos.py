"""Photos of occurrences: those that are files beside the table. Nothing is downloaded.

A photo belongs to a record

- whose column of paths (`image_path`, `file`, ...) names it, from the folder of the table or in `photos/`;
- whose row in the archive's extension of media names it, if that is a path and no address;
- or whose id it is called by: `photos/<id>.jpg`, `photos/<id>_2.jpg`, `photos/<id>-3.png`, `photos/<id>/any.jpg`. For
  an id that is an address, its last part counts.

The folder is `photos`, `images` or `media`, or the one that is stated. The license of a photo is the one that its row
of media or its column `image_license` states. The license of a record covers the record alone; only in a table of one's
own that lists photos by their paths does a column `license` speak of the photo.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

import polars as pl

from fieldmark.releases.folder import media_ids
from fieldmark.releases.occurrences.sources import RecordSource
from fieldmark.storage.release import Release
from fieldmark.tables.known_columns import Format
from fieldmark.tables.row_problems import RowProblems

SUFFIXES: Final = frozenset({".jpg", ".jpeg", ".png", ".webp"})
FOLDERS: Final = ("photos", "images", "media")
_NUMBERED: Final = re.compile(r"^(.+?)[_-](\d{1,3})$")
_SCHEMA: Final = {
    "observation_id": pl.String,
    "path": pl.String,
    "license": pl.String,
    "rights_holder": pl.String,
}
_NO_FILES: Final = pl.DataFrame(schema={"called": pl.String, "number": pl.Int64, "path": pl.String})


def photos_of(
    release: Release, source: RecordSource, rows: pl.DataFrame, problems: RowProblems
) -> tuple[pl.DataFrame, int]:
    """Finds the photos of the records.

    Args:
        release: The root.
        source: What was read.
        rows: The records that are kept, with `observation_id`, and with `image_path`, `image_url` and `image_license`
            where the table has them.
        problems: Where photos that are not there are noted.

    Returns:
        One row per photo with `media_id`, `observation_id`, `path`, `license` and `rights_holder`; and how many
        listed photos are no files here.
    """
    listed = _listed_media(source, rows)
    named = pl.concat([_named_in_table(release, source, rows, problems), _named_in_archive(release, source, listed)])
    # What a table says about a photo counts more than what the photo is called.
    called = _called_by_id(release, source, rows, listed).join(named, on="path", how="anti", maintain_order="left")
    photos = pl.concat([named, called])
    shared = photos.group_by("path", maintain_order=True).agg(pl.col("observation_id").n_unique())
    twice = shared.filter(pl.col("observation_id") > 1).select(file="path", line=pl.lit(None, pl.Int64))
    problems.add("error", "a photo is named by two records, of which the first keeps it", twice)
    photos = photos.unique("path", keep="first", maintain_order=True)
    without_file = _without_file(_addresses(rows, listed), photos)
    return photos.with_columns(media_id=media_ids(photos["path"])), without_file


def _without_file(addresses: pl.DataFrame, photos: pl.DataFrame) -> int:
    """How many photos are listed beyond those that are files, record by record."""
    files = photos.group_by("observation_id").agg(pl.len().alias("files"))
    counts = (
        addresses.group_by("observation_id").agg(pl.len().alias("listed")).join(files, on="observation_id", how="left")
    )
    missing = pl.col("listed").cast(pl.Int64) - pl.col("files").fill_null(0).cast(pl.Int64)
    return int(counts.select(missing.clip(lower_bound=0).sum()).item())


def _listed_media(source: RecordSource, rows: pl.DataFrame) -> pl.DataFrame:
    """The photos that an archive lists: `observation_id`, `number`, `address`, `license`, `rights_holder`."""
    names = {"observation_id": pl.String, "address": pl.String, "license": pl.String, "rights_holder": pl.String}
    if source.media is None:
        return pl.DataFrame(schema={**names, "number": pl.Int64})

    def first_of(*terms: str) -> pl.Expr:
        there = [pl.col(term) for term in terms if source.media is not None and term in source.media.columns]
        return pl.coalesce(there) if there else pl.lit(None, pl.String)

    kind = pl.concat_str(first_of("type").fill_null(""), first_of("format").fill_null("")).str.to_lowercase()
    other = kind.str.contains("sound|audio|video|movingimage|text")
    media = source.media.filter(~other).select(
        pl.col("id").alias("observation_id"),
        # In Audubon Core the identifier only names the photo; the address stands elsewhere.
        first_of("accessURI", "goodQualityAccessURI", "identifier").alias("address"),
        first_of("license", "licence", "UsageTerms", "WebStatement", "rights").alias("license"),
        first_of("rightsHolder", "Owner", "owner", "creator").alias("rights_holder"),
    )
    media = media.filter(pl.col("observation_id").is_in(rows["observation_id"].unique().implode()))
    return media.with_columns(number=pl.int_range(1, pl.len() + 1).over("observation_id"))


def _named_in_table(release: Release, source: RecordSource, rows: pl.DataFrame, problems: RowProblems) -> pl.DataFrame:
    if "image_path" not in rows.columns:
        return pl.DataFrame(schema=_SCHEMA)
    named = rows.filter(pl.col("image_path").is_not_null() & ~pl.col("image_path").str.contains("://"))
    if not named["image_path"].str.contains(r"\.[A-Za-z]{3,4}$").any():  # numbers of photos, not names of files
        return pl.DataFrame(schema=_SCHEMA)
    folders = ["", *_photo_folders(release, source)]
    path_of = _existing(release, source.folder, named["image_path"].unique().to_list(), folders)
    path = pl.col("image_path").replace_strict(path_of, default=None, return_dtype=pl.String)
    named = named.with_columns(path=path)
    gone = named.filter(pl.col("path").is_null())
    problems.add("warning", "names a photo that is not there", gone, pl.col("image_path"))
    own_table = source.kind in (Format.ANY, Format.DARWIN_CORE)
    licenses = [
        name for name in ("image_license", "license") if name in rows.columns and (name != "license" or own_table)
    ]
    license_ = pl.coalesce(licenses) if licenses else pl.lit(None, pl.String)
    return named.drop_nulls("path").select(
        "observation_id", "path", license_.alias("license"), pl.lit(None, pl.String).alias("rights_holder")
    )


def _named_in_archive(release: Release, source: RecordSource, listed: pl.DataFrame) -> pl.DataFrame:
    local = listed.filter(pl.col("address").is_not_null() & ~pl.col("address").str.contains("://"))
    folders = ["", *_photo_folders(release, source)]
    path_of = _existing(release, source.folder, local["address"].unique().to_list(), folders)
    path = pl.col("address").replace_strict(path_of, default=None, return_dtype=pl.String)
    return local.with_columns(path=path).drop_nulls("path").select(list(_SCHEMA))


def _called_by_id(release: Release, source: RecordSource, rows: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Photos called by the id of their record; the n-th has the license of the n-th row of media."""
    files = pl.concat([_names_in(release, folder) for folder in _photo_folders(release, source)] or [_NO_FILES])
    if files.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    # A photo may be called by the last part of an id that is an address, where no two records share it.
    last_part = pl.col("observation_id").str.strip_chars_end("/").str.extract("([^/]+)$", 1)
    records = rows.select(pl.col("observation_id").unique(maintain_order=True)).with_columns(called=last_part)
    records = records.filter(~pl.col("called").is_duplicated())
    photos = files.join(records, on="called", how="inner", maintain_order="left")
    photos = photos.unique("path", keep="first", maintain_order=True)
    about = listed.select("observation_id", "number", "license", "rights_holder")
    photos = photos.join(about, on=["observation_id", "number"], how="left", maintain_order="left")
    if "image_license" in rows.columns:
        own = rows.unique("observation_id", keep="first").select("observation_id", "image_license")
        photos = photos.join(own, on="observation_id", how="left", maintain_order="left")
        photos = photos.with_columns(license=pl.coalesce("license", "image_license"))
    return photos.select(list(_SCHEMA))


def _names_in(release: Release, folder: str) -> pl.DataFrame:
    """The photos of a folder with the ids that they may be called by (`called`), and their `number`, best fit first."""
    rows: list[tuple[str, int, str]] = []
    for name in _photos_in(release, folder):
        stem = PurePosixPath(name).stem
        numbered = _NUMBERED.match(stem)
        rows.append((stem, 1, f"{folder}/{name}"))
        if numbered:
            rows.append((numbered.group(1), int(numbered.group(2)), f"{folder}/{name}"))
    for inner in release.folders(folder):
        names = _photos_in(release, f"{folder}/{inner}")
        rows += [(inner, place, f"{folder}/{inner}/{name}") for place, name in enumerate(names, 1)]
    return pl.DataFrame(rows, schema=_NO_FILES.schema, orient="row")


def _photos_in(release: Release, folder: str) -> list[str]:
    return [name for name in release.files(folder) if PurePosixPath(name).suffix.lower() in SUFFIXES]


def _photo_folders(release: Release, source: RecordSource) -> list[str]:
    names = FOLDERS if source.settings.photos is None else (source.settings.photos.rstrip("/"),)
    prefix = f"{source.folder}/" if source.folder else ""
    present = set(release.folders(source.folder))
    return [f"{prefix}{name}" for name in names if name in present or ("/" in name and release.exists(prefix + name))]


def _existing(release: Release, folder: str, names: Sequence[str], folders: Sequence[str]) -> Mapping[str, str]:
    """The path of each named photo that is there: from the folder of the table, or in one of the folders of photos."""
    candidates = {
        name: [path for inside in folders if (path := _joined(inside or folder, name)) is not None] for name in names
    }
    sizes = release.sizes(path for paths in candidates.values() for path in paths)
    return {
        name: there for name, paths in candidates.items() if (there := next((p for p in paths if p in sizes), None))
    }


def _joined(folder: str, name: str) -> str | None:
    """A path below a folder; None for what lies outside, is hidden or is no photo."""
    inner = PurePosixPath(name.replace("\\", "/"))
    if inner.is_absolute() or ".." in inner.parts or inner.suffix.lower() not in SUFFIXES:
        return None
    return f"{folder}/{inner}" if folder else str(inner)


def _addresses(rows: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Photos that are listed by an address or a path: one row each with `observation_id`."""
    addresses = [listed.drop_nulls("address").select("observation_id")]
    if "image_path" in rows.columns:
        addresses.append(rows.filter(pl.col("image_path").str.contains("://")).select("observation_id"))
    if "image_url" in rows.columns:
        named = rows.drop_nulls("image_url").select("observation_id", pl.col("image_url").str.split("|"))
        addresses.append(named.explode("image_url").select("observation_id"))
    return pl.concat(addresses)
