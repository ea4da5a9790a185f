"""Any dataset as a Darwin Core Archive, with the answers of a run as identifications.

```
meta.xml             which file holds what
occurrence.txt       the core: one row per observation
multimedia.txt       one row per photo or recording: type, format, identifier, license, rightsHolder
identification.txt   with a run: one row per answer, by whom and how sure (`identifications.py`)
eml.xml              title, creator, abstract, rights and contact of the dataset
photos/              the photos themselves, where they are asked for
occurrences.toml     where labels are not the names of species: that they stand under taxonID. For Fieldmark alone
WORLD.json           the mark of simulated data, where they are
```

- `basisOfRecord` is what the dataset says; where it says nothing it is `Occurrence`, which claims nothing. A machine
  that names an organism does not make the record a MachineObservation: that word is for records that a machine made.
- `taxonID` is the label; `species` of GBIF's terms is written where the label is a binomial.
- `eventDate` is ISO 8601, as exact as it is known. What was emptied on reading (dates and places that cannot be) is not
  written.
- The identifier of a photo is its path in the archive, or where the photos stay behind, its path in the release.

The same dataset gives the same bytes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from xml.sax.saxutils import escape, quoteattr

import polars as pl

from fieldmark.errors import MisuseError
from fieldmark.exporting.identifications import IDENTIFICATION_TERMS, Identifications
from fieldmark.releases import Dataset
from fieldmark.releases.occurrences.darwin_core import TEXT_NAMESPACE
from fieldmark.releases.occurrences.names import species_name
from fieldmark.storage.files import appearing_file
from fieldmark.storage.release import WORLD_FILE
from fieldmark.tables.known_columns import SETTINGS_FILE
from fieldmark.tables.labels import UNKNOWN_NAME
from fieldmark.tables.schema import RANKS
from fieldmark.version import __version__
from fieldmark.work.progress import progress

DWC, DC, GBIF = "http://rs.tdwg.org/dwc/terms/", "http://purl.org/dc/terms/", "http://rs.gbif.org/terms/1.0/"
NOT_STATED: Final = "Occurrence"
# The date that every file in the archive bears, so that the same dataset gives the same bytes.
ZIP_DATE: Final = (1980, 1, 1, 0, 0, 0)
ROWS_AT_ONCE: Final = 100_000
FORMATS: Final = {
    **{".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"},
    **{".wav": "audio/wav", ".flac": "audio/flac", ".ogg": "audio/ogg", ".mp3": "audio/mpeg"},
}
# Columns of observations by the term that they are written as.
TERMS: Final = {
    "scientific_name": f"{DWC}scientificName",
    "rank": f"{DWC}taxonRank",
    "coordinate_uncertainty_m": f"{DWC}coordinateUncertaintyInMeters",
    "observer": f"{DWC}recordedBy",
    "habitat": f"{DWC}habitat",
    "site": f"{DWC}locationID",
    "license": f"{DC}license",
    "image_url": f"{DWC}associatedMedia",
    "information_withheld": f"{DWC}informationWithheld",
}


@dataclass(frozen=True)
class ArchiveExport:
    """What was written: how many observations, photos or recordings, and identifications; how many files lie inside."""

    observations: int
    media: int
    identifications: int
    files: int


@dataclass(frozen=True)
class About:
    """What the archive says about itself.

    Args:
        title: Of the dataset; its name if empty.
        creator: The person or organization that answers for it.
    """

    title: str = ""
    creator: str = "not stated"


def export_darwin_core(
    dataset: Dataset,
    out: Path,
    *,
    answers: Identifications | None = None,
    photos: bool = False,
    about: About | None = None,
) -> ArchiveExport:
    """Writes a dataset as a Darwin Core Archive.

    Args:
        dataset: What to write.
        out: The `.zip` to be; it appears when complete.
        answers: The answers of a run, written as identifications.
        photos: Whether the files themselves go into the archive.
        about: What the archive says about itself.

    Raises:
        MisuseError: When `out` is no `.zip`, or an answer is about no observation of the dataset.
    """
    if out.suffix.lower() != ".zip":
        raise MisuseError(f"{out} is no name for an archive: call it {out.name}.zip.")
    if answers is not None:
        answers.refuse_others(dataset)
    tables = [_ArchiveTable("core", f"{DWC}Occurrence", "occurrence.txt", core_table(dataset))]
    if len(dataset.media):
        tables.append(
            _ArchiveTable("extension", f"{GBIF}Multimedia", "multimedia.txt", _media_table(dataset, photos=photos))
        )
    if answers is not None:
        rows = answers.table.rename(IDENTIFICATION_TERMS)
        tables.append(_ArchiveTable("extension", f"{DWC}Identification", "identification.txt", rows))
    with appearing_file(out) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        _write_text(archive, "meta.xml", _descriptor(tables))
        _write_text(archive, "eml.xml", _metadata(dataset, about or About(), answers))
        if not _labels_are_species(dataset):
            _write_text(archive, SETTINGS_FILE, '[columns]\nlabel = "taxonID"\n')
        if dataset.release.world is not None:
            mark = {**dataset.release.world, "dataset": "occurrences", "exported_from": dataset.name}
            _write_text(archive, WORLD_FILE, json.dumps(mark, indent=2))
        for table in tables:
            _write_table(archive, table)
        inside = _write_media(archive, dataset) if photos else 0
    written = 0 if answers is None else len(answers.table)
    return ArchiveExport(len(dataset.observations), len(dataset.media), written, inside)


@dataclass(frozen=True)
class _ArchiveTable:
    """One table of the archive; the first column is the id of the observation, the others are called by their terms."""

    element: str
    row_type: str
    file: str
    rows: pl.DataFrame


def core_table(dataset: Dataset) -> pl.DataFrame:
    """The observations: `id` first, then a column of text for each term that has a value."""
    taxa = dataset.taxa
    ranks = [rank for rank in RANKS[:-1] if rank in {*taxa.columns, *dataset.observations.columns}]
    names = [name for name in ("scientific_name", "name", "species", "common_name") if name in taxa.columns]
    of_label = taxa.select(
        "label", pl.col(*names, *(rank for rank in ranks if rank in taxa.columns)).name.prefix("of ")
    )
    rows = dataset.observations.join(of_label, on="label", how="left", maintain_order="left")

    def either(name: str, *others: str) -> pl.Expr:
        there = [pl.col(one).cast(pl.String) for one in (name, *others) if one in rows.columns]
        return pl.coalesce(there) if there else pl.lit(None, pl.String)

    label = pl.when(pl.col("label") != UNKNOWN_NAME).then(pl.col("label"))
    columns = {
        "id": pl.col("observation_id"),
        f"{DWC}occurrenceID": pl.col("observation_id"),
        f"{DWC}basisOfRecord": either("basis_of_record").fill_null(NOT_STATED),
        f"{DWC}occurrenceStatus": pl.lit("present"),
        f"{DWC}taxonID": label,
        f"{GBIF}species": pl.when(_is_species(rows["label"])).then(label),
        **{term: either(name) for name, term in TERMS.items()},
        f"{DWC}scientificName": pl.coalesce(
            either("scientific_name", "of scientific_name", "of name", "of species"), label
        ),
        **{f"{DWC}{rank}": either(rank, f"of {rank}") for rank in ranks},
        f"{DWC}vernacularName": either("of common_name"),
        f"{DWC}eventDate": _event_date(rows),
        f"{DWC}decimalLatitude": pl.col("lat").cast(pl.String),
        f"{DWC}decimalLongitude": pl.col("lon").cast(pl.String),
        **_country(rows),
        f"{DWC}minimumElevationInMeters": either("elevation_m"),
        f"{DWC}maximumElevationInMeters": either("elevation_m"),
        **_circumstances(rows),
    }
    table = rows.select(column.cast(pl.String).alias(term) for term, column in columns.items())
    always = {"id", f"{DWC}occurrenceID", f"{DWC}basisOfRecord", f"{DWC}scientificName"}
    return table.select(term for term in table.columns if term in always or table[term].null_count() < len(table))


def _event_date(rows: pl.DataFrame) -> pl.Expr:
    """The date in ISO 8601: the text as it was where it is that, else as much as is known."""
    day = pl.col("date").dt.strftime("%Y-%m-%d")
    if "event_date" not in rows.columns:
        return day
    year, month = pl.col("year").cast(pl.String), pl.col("month").cast(pl.String).str.zfill(2)
    exact = pl.coalesce(day, pl.concat_str(year, month, separator="-"), year)
    iso = pl.col("event_date").str.contains(r"^\d{4}(-\d{2}){0,2}(T[^/]*)?(/.*)?$")
    range_of_years = pl.col("event_date").str.contains(r"^\d{4}[^/]*/\d{4}") & pl.col("year").is_null()
    return pl.when(iso & (exact.is_not_null() | range_of_years)).then(pl.col("event_date")).otherwise(exact)


def _country(rows: pl.DataFrame) -> dict[str, pl.Expr]:
    if "country" not in rows.columns:
        return {}
    codes = rows["country"].drop_nulls().str.contains("^[A-Z]{2}$").all()
    return {f"{DWC}countryCode" if codes else f"{DWC}country": pl.col("country")}


def _circumstances(rows: pl.DataFrame) -> dict[str, pl.Expr]:
    """What a reader must know about how a record came about, in Darwin Core's own words."""
    columns: dict[str, pl.Expr] = {}
    if "captive" in rows.columns:
        columns[f"{DWC}degreeOfEstablishment"] = pl.when(pl.col("captive")).then(pl.lit("captive"))
    if "coordinates_obscured" in rows.columns:
        withheld = pl.when(pl.col("coordinates_obscured")).then(pl.lit("coordinates obscured"))
        columns[f"{DWC}informationWithheld"] = withheld
    return columns


def _is_species(labels: pl.Series) -> pl.Series:
    """Whether each label is a binomial, so that a reader of names gives it back."""
    fits = [name for name in labels.drop_nulls().unique() if species_name(name, keep_others=False) == name]
    return labels.is_in(fits).fill_null(False)


def _labels_are_species(dataset: Dataset) -> bool:
    labels = dataset.observations["label"].drop_nulls()
    return bool(_is_species(labels.filter(labels != UNKNOWN_NAME)).all())


def _media_table(dataset: Dataset, *, photos: bool) -> pl.DataFrame:
    media = dataset.media
    suffix = pl.col("path").str.extract(r"(\.[^./]+)$", 1).str.to_lowercase()
    path = pl.lit("photos/") + pl.col("media_id") if photos else pl.col("path")
    further = {
        f"{DC}{term}": pl.col(name)
        for name, term in (("license", "license"), ("rights_holder", "rightsHolder"))
        if name in media.columns and media[name].null_count() < len(media)
    }
    return media.select(
        pl.col("observation_id").alias("id"),
        pl.lit(dataset.medium.dcmi_type).alias(f"{DC}type"),
        suffix.replace_strict(FORMATS, default=None, return_dtype=pl.String).alias(f"{DC}format"),
        path.alias(f"{DC}identifier"),
        **further,
    )


def _descriptor(tables: Sequence[_ArchiveTable]) -> str:
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<archive xmlns="{TEXT_NAMESPACE}" metadata="eml.xml">']
    for table in tables:
        lines += [
            f'  <{table.element} encoding="UTF-8" fieldsTerminatedBy="\\t" linesTerminatedBy="\\n" '
            f'fieldsEnclosedBy="&quot;" ignoreHeaderLines="1" rowType="{table.row_type}">',
            f"    <files><location>{table.file}</location></files>",
            f'    <{"id" if table.element == "core" else "coreid"} index="0"/>',
            *(
                f"    <field index={quoteattr(str(place))} term={quoteattr(term)}/>"
                for place, term in enumerate(table.rows.columns)
                if place
            ),
            f"  </{table.element}>",
        ]
    return "\n".join([*lines, "</archive>", ""])


def _metadata(dataset: Dataset, about: About, answers: Identifications | None) -> str:
    """The least that EML 2.2.0 and GBIF's profile of it ask for."""
    title = about.title or f"{dataset.name}: {Path(dataset.release.root).name}"
    simulated = "These data are simulated. " if dataset.simulated else ""
    abstract = f"{simulated}{len(dataset.observations):,} observations of {len(dataset.taxa):,} taxa."
    if answers is not None:
        abstract += f" {len(answers.table):,} identifications were made by a machine and verified by nobody."
    party = f"<organizationName>{escape(about.creator)}</organizationName>"
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<eml:eml xmlns:eml="https://eml.ecoinformatics.org/eml-2.2.0" packageId={quoteattr(dataset.digest)} \
system="Fieldmark {__version__}" xml:lang="en">
  <dataset>
    <title xml:lang="en">{escape(title)}</title>
    <creator>{party}</creator>
    <metadataProvider>{party}</metadataProvider>
    <language>en</language>
    <abstract><para>{escape(abstract)}</para></abstract>
    <intellectualRights><para>Licenses stand with each record and each photo.</para></intellectualRights>
    <contact>{party}</contact>
  </dataset>
</eml:eml>
"""


def _entry(name: str, compression: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, ZIP_DATE)
    entry.compress_type, entry.external_attr = compression, 0o644 << 16
    return entry


def _write_text(archive: zipfile.ZipFile, name: str, text: str) -> None:
    archive.writestr(_entry(name), text)


def _write_table(archive: zipfile.ZipFile, table: _ArchiveTable) -> None:
    names = {term: PurePosixPath(term).name for term in table.rows.columns}
    header = table.rows.head(0).rename(names).write_csv(separator="\t")
    with archive.open(_entry(table.file), "w", force_zip64=True) as file:
        file.write(header.encode())
        for start in range(0, len(table.rows), ROWS_AT_ONCE):
            text = io.BytesIO()
            table.rows.slice(start, ROWS_AT_ONCE).write_csv(text, separator="\t", include_header=False)
            file.write(text.getvalue())


def _write_media(archive: zipfile.ZipFile, dataset: Dataset) -> int:
    with progress("writing photos", len(dataset.media)) as tick:
        ids = dataset.media["media_id"].to_list()
        for media_id, data in zip(ids, dataset.media_files.read.many(ids), strict=True):
            # Photos and recordings are compressed already.
            archive.writestr(_entry(f"photos/{media_id}", zipfile.ZIP_STORED), data)
            tick(1)
    return len(dataset.media)
