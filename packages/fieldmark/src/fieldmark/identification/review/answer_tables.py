"""Answers in the formats of others: CSV, Parquet, a Darwin Core Archive, a Camtrap DP package.

Where a person has checked answers, what they said stands in place of what the machine said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from fieldmark.exporting.darwin_core import About, export_darwin_core
from fieldmark.exporting.identifications import MACHINE, UNVERIFIED, Identifications
from fieldmark.identification.danger_notices import IMPROBABLE_WORDS
from fieldmark.identification.darwin_core_rows import COARSE_DEGREES, COARSE_M, WITHHELD
from fieldmark.identification.label_facts import THREATENED
from fieldmark.identification.review.answer_folders import SCHEMA, AnswerFolder
from fieldmark.identification.review.camera_traps import PackageAbout, write_camtrap
from fieldmark.identification.review.session import ReviewLook
from fieldmark.storage.files import appearing_file
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.schema import RANKS
from fieldmark.version import __version__

Looks = Mapping[str, ReviewLook]
CSV, PARQUET, DARWIN_CORE, CAMTRAP = "csv", "parquet", "darwin-core", "camtrap"
# What each form is called in the folder of the answers.
FILES: Final = {CSV: "answers.csv", PARQUET: "list.parquet", DARWIN_CORE: "darwin-core.zip", CAMTRAP: "camtrap"}
VERIFIED: Final = "verified by human"


def write_form(
    answers: AnswerFolder, form: str, out: Path, looks: Looks | None = None, about: PackageAbout | None = None
) -> None:
    """Writes answers in one of the forms; an earlier one is replaced.

    Args:
        answers: The answers.
        form: csv, parquet, darwin-core or camtrap.
        out: The file, or the folder of a package.
        looks: What a person said, by observation.
        about: What a package or an archive says about itself.
    """
    about = about or PackageAbout()
    writers: dict[str, Callable[[], object]] = {
        CSV: lambda: _write(out, lambda path: _flat(as_list(answers, looks)).write_csv(path)),
        PARQUET: lambda: _write(out, lambda path: as_list(answers, looks).write_parquet(path)),
        DARWIN_CORE: lambda: _write_archive(answers, looks or {}, out, about),
        CAMTRAP: lambda: write_camtrap(answers, out, looks=looks, about=about, overwrite=True),
    }
    writers[form]()


def as_list(answers: AnswerFolder, looks: Looks | None = None) -> pl.DataFrame:
    """The list: one row per observation, what it is, who said so, and what the machine had said."""
    said = _said(looks or {})
    rows = answers.table.select(list(SCHEMA)).join(said, on="observation_id", how="left", maintain_order="left")
    rows = rows.with_columns(_recorded(answers, looks or {}))
    person = pl.col("said").is_not_null()
    threatened = [str(taxon["label"]) for taxon in answers.taxa if taxon.get("red_list") in THREATENED]
    return rows.select(
        "observation_id",
        "files",
        pl.coalesce("said", "name").alias("name"),
        "scientific_name",
        "rank",
        pl.when(person).then(pl.lit("person")).otherwise(pl.lit("machine")).alias("by"),
        pl.when(~person).then("probability").alias("probability"),
        pl.when(~person).then("verdict").alias("verdict"),
        "danger",
        "dangerous",
        (pl.col("threatened") | pl.col("said").is_in(threatened).fill_null(False)).alias("threatened"),
        pl.col("name").alias("machine"),
        "names",
        *("date", "time", "lat", "lon", "site", "start_s", "end_s", "problem"),
        pl.lit(answers.simulated).alias("simulated"),
    )


def dangers_in(answers: AnswerFolder) -> dict[str, Any]:
    """The dangers among answers.

    Returns:
        `observations`: with how many to be careful; `improbable`: of how many one line says that danger is improbable;
        `names`: the dangerous species that they could be, each with how many, most often first.
    """
    warned = answers.table.filter(pl.col("danger").is_not_null())
    # Answers of an earlier version say "improbable".
    whole = warned.filter(~pl.col("danger").str.contains_any([IMPROBABLE_WORDS, "are improbable"]))
    names = whole["dangerous"].explode().drop_nulls().value_counts(sort=True).rows()
    return {"observations": len(whole), "improbable": len(warned) - len(whole), "names": dict(names)}


def _recorded(answers: AnswerFolder, looks: Looks) -> list[pl.Series]:
    """The scientific name and the rank of each entry."""
    records = [answers.record(entry, _name_said(looks, entry.observation_id)) for entry in answers.entries()]
    return [
        pl.Series("scientific_name", [None if one is None else one.name for one in records], pl.String),
        pl.Series("rank", [None if one is None else one.rank for one in records], pl.String),
    ]


def _name_said(looks: Looks, observation: str) -> str | None:
    look = looks.get(observation)
    return None if look is None else look.name


def _said(looks: Looks) -> pl.DataFrame:
    schema = {"observation_id": pl.String, "said": pl.String}
    return pl.DataFrame({"observation_id": list(looks), "said": [look.name for look in looks.values()]}, schema=schema)


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("files", "names", "dangerous").list.join(";"))


def _write(out: Path, write: Callable[[Path], object]) -> None:
    with appearing_file(out) as partial:
        write(partial)


def _write_archive(answers: AnswerFolder, looks: Looks, out: Path, about: PackageAbout) -> None:
    """The observations as occurrences, each with the identification of the machine or of the person."""
    dataset = _dataset(answers, looks)
    rows = _identifications(answers, looks)
    title = f"{about.title} (simulated)" if answers.simulated else about.title
    export_darwin_core(
        dataset, out, answers=Identifications(rows, str(answers.root)), about=About(title, about.contributor)
    )


def _dataset(answers: AnswerFolder, looks: Looks) -> Dataset:
    listed = as_list(answers, looks)
    name = pl.when(pl.col("name") != "").then("name")
    coarse = pl.col("threatened") & pl.col("lat").is_not_null()
    place = [
        pl.when(coarse).then(pl.col(one).round(COARSE_DEGREES)).otherwise(one).alias(one) for one in ("lat", "lon")
    ]
    lineages = [answers.records.of(*pair).lineage for pair in listed.select("name", "rank").iter_rows()]
    lineage = pl.DataFrame(lineages, schema=dict.fromkeys(RANKS, pl.String))
    observations = pl.concat([listed, lineage], how="horizontal").select(
        "observation_id",
        name.alias("label"),
        "scientific_name",
        "date",
        *place,
        "site",
        "rank",
        *RANKS,
        coordinate_uncertainty_m=pl.when(coarse).then(pl.lit(float(COARSE_M))),
        information_withheld=pl.when(coarse).then(pl.lit(WITHHELD)),
    )
    media = (
        listed.select("observation_id", path="files")
        .explode("path")
        .with_columns(
            media_id=pl.concat_str("observation_id", pl.lit("/"), "path"), parts=pl.lit([], pl.List(pl.String))
        )
    )
    names = observations["label"].drop_nulls().unique().sort()
    commons = [answers.records.of(name).common_name for name in names]
    taxa = pl.DataFrame({"label": names, "common_name": pl.Series(commons, dtype=pl.String)})
    return Dataset("answers", Release(answers.root), taxa, observations, media, medium=answers.medium)


def _identifications(answers: AnswerFolder, looks: Looks) -> pl.DataFrame:
    """Who named what, when and how sure; one row per observation that has a name."""
    model = f"Fieldmark {__version__}, {answers.about.get('model', 'a model')}"
    created = str(answers.about.get("created", ""))
    rows = []
    for entry in answers.entries():
        look = looks.get(entry.observation_id)
        record = answers.record(entry, _name_said(looks, entry.observation_id))
        if record is None:
            continue
        sure = "" if entry.probability is None else f" Probability {entry.probability:.4f}."
        simulated = " Simulated data." if answers.simulated else ""
        unsure = " Possibly none of the names the model knows." if entry.verdict == "possibly unknown" else ""
        when = created if look is None else look.when
        rows.append(
            {
                "id": entry.observation_id,
                "identificationID": f"{entry.observation_id} {when}",
                "identifiedBy": model if look is None else "reviewer",
                "dateIdentified": when[:10],
                "scientificName": record.name,
                "taxonID": entry.name if look is None else look.name,
                "identificationVerificationStatus": UNVERIFIED if look is None else VERIFIED,
                "identificationRemarks": f"{MACHINE}{simulated}{sure}{unsure}" if look is None else simulated.strip(),
            }
        )
    columns = ("id", "identificationID", "identifiedBy", "dateIdentified", "scientificName", "taxonID")
    schema = dict.fromkeys((*columns, "identificationVerificationStatus", "identificationRemarks"), pl.String)
    return pl.DataFrame(rows, schema=schema)
