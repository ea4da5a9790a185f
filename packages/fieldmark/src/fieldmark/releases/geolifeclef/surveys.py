"""GeoLifeCLEF 2023 to 2025: surveys of plots, where every plant was looked for, and records of single plants.

```
ROOT/  (2023)                                             fields between semicolons
  Presence_Absence_surveys/Presences_Absences_train.csv   glcID;...;date;dayOfYear;year;lon;lat;...;speciesId;patchID
  Presence_only_occurrences/Presences_only_train.csv      the same columns, one record in each row
  For_submission/test_blind.csv                           Id;...;lon;lat;dayOfYear;patchID;year
  Presence_Absence_surveys/enviroTab_pa_{train,test}.csv  numbers of places, by patchID and dayOfYear, or by Id
ROOT/  (2024, 2025; YY is 24 or 25)                       tables also in PresenceAbsenceSurveys/ and ...
  GLCYY_PA_metadata_train.csv | GLCYY-PA-metadata-train.csv     surveyId,lon,lat,year,region,country,areaInM2,speciesId
  GLCYY_PA_metadata_test.csv | ...                              the same without speciesId
  GLCYY_P0_metadata_train.csv | GLCYY_PO_metadata_train.csv     records of single plants; 0 or O, as it happens
  EnvironmentalRasters/.../GLC24-PA-{train,test}-*.csv, EnvironmentalValues/.../GLC25-PA-*.csv      surveyId and numbers
  test_labels.csv                                               surveyId,speciesId: what only the organizers have
```

Quirks:

- A table of surveys has a row for each species of a survey. In 2023 a survey has no id of its own: it is a place, a
  year and a day, and is called by the smallest glcID of its rows.
- `speciesId` is a float in some tables, `areaInM2` may be inf, dates are ISO or seconds since 1970.
- 2023 learns from records and has about 5,000 surveys for validation; since 2024 surveys are enough to learn from, and
  val is drawn from them in blocks. The subset `surveys` reads no records; in `all` they are the part `records`.
- Patches, time series and cubes are not read: tables of numbers are the environment where there are any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import polars as pl

from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.releases.checks import ReleaseCheck
from fieldmark.releases.citations import preprint, working_note
from fieldmark.releases.environment import ENVIRONMENT, EnvironmentColumns
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.inputs import CONTEXT, MEDIA_INPUTS
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import MEDIA, missing_column, parse_places

SUBSETS = ("all", "surveys")
TEST_LABELS = "test_labels.csv"
INPUTS = (MEDIA_INPUTS["photo"], *(one for one in CONTEXT if one.name != "environment"), ENVIRONMENT)
# What tells the surveys of 2023 apart.
VISIT = ("lat", "lon", "year", "dayOfYear")
KEPT = ("region", "country", "year")


@dataclass(frozen=True)
class SurveyEdition:
    """How one year names its tables.

    Args:
        year: The year.
        surveys, records, test: Where each may lie; the first that is there counts.
        separator: What stands between fields.
        records_are: The part that records are, and
        surveys_are: that surveys with known species are, where there are records.
        environment: Folders whose tables with numbers are read, and
        environment_stem: how their names begin.
    """

    year: int
    surveys: tuple[str, ...]
    records: tuple[str, ...]
    test: tuple[str, ...]
    separator: str
    records_are: str
    surveys_are: str
    environment: tuple[str, ...]
    environment_stem: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"geolifeclef-{self.year}"


def _of_year(year: int) -> SurveyEdition:
    short = f"GLC{year % 100}"

    def names(kind: str, part: str, folder: str) -> tuple[str, ...]:
        plain = (f"{short}_{kind}_metadata_{part}.csv", f"{short}-{kind}-metadata-{part}.csv")
        return (*plain, *(f"{folder}/{name}" for name in plain))

    return SurveyEdition(
        year,
        names("PA", "train", "PresenceAbsenceSurveys"),
        names("P0", "train", "PresenceOnlyOccurrences") + names("PO", "train", "PresenceOnlyOccurrences"),
        names("PA", "test", "PresenceAbsenceSurveys"),
        ",",
        records_are="records",
        surveys_are="train",
        environment=("EnvironmentalRasters", "EnvironmentalValues"),
        environment_stem=(f"{short}-PA-", f"{short}-P0-", f"{short}-PO-", "PA-", "PO-"),
    )


EDITIONS = {
    2023: SurveyEdition(
        2023,
        ("Presence_Absence_surveys/Presences_Absences_train.csv", "Presences_Absences_train.csv"),
        ("Presence_only_occurrences/Presences_only_train.csv", "Presences_only_train.csv"),
        ("For_submission/test_blind.csv", "PA_test_blind.csv", "test_blind.csv"),
        ";",
        records_are="train",
        surveys_are="val",
        environment=("Presence_Absence_surveys", ""),
        environment_stem=("enviroTab_pa_",),
    ),
    2024: _of_year(2024),
    2025: _of_year(2025),
}


def open_surveys(release: Release, subset: str = "all", *, year: int) -> Dataset:
    """Opens the surveys and records of one year.

    Args:
        release: The root.
        subset: `all`, or `surveys` for those alone.
        year: Which edition.

    Raises:
        InputError: When there is no table of surveys, or one cannot be read.
        MisuseError: When there is no such subset.
    """
    edition = EDITIONS[year]
    if subset not in SUBSETS:
        raise MisuseError(f"{edition.name} has no subset called {subset!r}. {did_you_mean(subset, SUBSETS)}")
    paths = {kind: _first(release, getattr(edition, kind)) for kind in ("surveys", "records", "test")}
    if not paths["surveys"]:
        found = f"no {edition.surveys[0]}"
        raise InputError(release.root, found=found, expected=f"the release of {edition.name}")
    with_records = bool(paths["records"]) and subset == "all"
    learned = edition.surveys_are if with_records else "train"
    tables = [_surveys(release, edition, paths["surveys"]).with_columns(parts=pl.lit([learned]))]
    if with_records:
        tables.append(_records(release, edition, paths["records"]).with_columns(parts=pl.lit([edition.records_are])))
    if paths["test"]:
        tables.append(_test(release, edition, paths["test"]).with_columns(parts=pl.lit(["test"])))
    places = pl.concat(tables, how="diagonal_relaxed")
    environment = _environment(release, edition, places)
    layers = {} if environment is None else {"environment": environment}
    labels = places["labels"].explode().drop_nulls().unique()
    taxa = pl.DataFrame({"label": labels}).sort(pl.col("label").cast(pl.Int64, strict=False), "label")
    kept = ["observation_id", "label", "date", "lat", "lon", "labels", "parts"]
    further = [name for name in KEPT if name in places.columns]
    remarks = _remarks(edition, places, paths, with_environment=environment is not None)
    return Dataset(
        edition.name, release, taxa, places.select(*kept, *further), MEDIA.empty(), remarks, layers=layers,
        inputs=INPUTS,
    )  # fmt: skip


def _first(release: Release, paths: tuple[str, ...]) -> str:
    return next((path for path in paths if release.exists(path)), "")


def _read(release: Release, edition: SurveyEdition, path: str, *required: str) -> pl.DataFrame:
    """A table with places as numbers, species as text and dates as dates."""
    where = release.where(path)
    with release.open(path) as file:
        rows = read_csv(file, where, required=("lat", "lon", *required), separator=edition.separator)
    rows = parse_places(rows, where, required=True)
    if "speciesId" in rows.columns:
        rows = rows.with_columns(pl.col("speciesId").str.strip_suffix(".0").replace("", None))
    text = pl.col("date") if "date" in rows.columns else pl.lit(None, pl.String)
    seconds = pl.from_epoch(text.cast(pl.Int64, strict=False), time_unit="s").cast(pl.Date)
    date = pl.coalesce(text.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False), seconds)
    return rows.with_columns(date.alias("date"))


def _refuse_empty(rows: pl.DataFrame, name: str, where: str) -> None:
    empty = rows[name].is_null().arg_true()
    if len(empty):
        raise InputError(where, line=int(empty[0]) + 2, found=f"no {name}", expected="one in each row")


def _surveys(release: Release, edition: SurveyEdition, path: str) -> pl.DataFrame:
    """One row per survey, with the list of its species."""
    where = release.where(path)
    own = edition.year >= 2024
    rows = _read(release, edition, path, "speciesId", *(("surveyId",) if own else ("glcID", *VISIT[2:])))
    _refuse_empty(rows, "surveyId" if own else "glcID", where)
    _refuse_empty(rows, "speciesId", where)
    by = ("surveyId",) if own else VISIT
    named = pl.col("surveyId").first() if own else pl.col("glcID").sort_by(pl.col("glcID").cast(pl.Int64)).first()
    facts = [name for name in ("date", "lat", "lon", "patchID", "dayOfYear", *KEPT) if name in rows.columns]
    table = rows.group_by(by, maintain_order=True).agg(
        named.alias("observation_id"),
        pl.col("speciesId").unique(maintain_order=True).alias("labels"),
        *(pl.col(name).first() for name in facts if name not in by),
    )
    return table.with_columns(label=pl.lit(None, pl.String))


def _records(release: Release, edition: SurveyEdition, path: str) -> pl.DataFrame:
    """One row per record: one species each. Records that share a survey id are told apart by their line."""
    rows = _read(release, edition, path, "speciesId")
    _refuse_empty(rows, "speciesId", release.where(path))
    named = "glcID" if "glcID" in rows.columns else "surveyId"
    if named not in rows.columns:
        raise missing_column(release.where(path), "surveyId", rows.columns)
    numbered = rows.with_row_index("line", offset=2)
    observation = pl.when(pl.col(named).is_duplicated()).then(pl.format("record-{}-{}", named, "line"))
    return numbered.with_columns(
        observation.otherwise(pl.format("record-{}", named)).alias("observation_id"),
        labels=pl.concat_list("speciesId"),
        label="speciesId",
    )


def _test(release: Release, edition: SurveyEdition, path: str) -> pl.DataFrame:
    """One row per survey of test, with its species where somebody has them."""
    named = "surveyId" if edition.year >= 2024 else "Id"
    rows = _read(release, edition, path, named)
    _refuse_empty(rows, named, release.where(path))
    rows = rows.unique(named, keep="first", maintain_order=True).with_columns(observation_id=named)
    rows = rows.with_columns(label=pl.lit(None, pl.String))
    if not release.exists(TEST_LABELS):
        return rows.with_columns(labels=pl.lit(None, pl.List(pl.String)))
    with release.open(TEST_LABELS) as file:
        hidden = read_csv(file, release.where(TEST_LABELS), required=(named, "speciesId"))
    species = pl.col("speciesId").str.strip_suffix(".0").drop_nulls().alias("labels")
    lists = hidden.group_by(named).agg(species).rename({named: "observation_id"})
    return rows.join(lists, on="observation_id", how="left", maintain_order="left")


def _environment(release: Release, edition: SurveyEdition, places: pl.DataFrame) -> EnvironmentColumns | None:
    """The numbers of places, from all tables that hold them; None where there are none."""
    tables = [release_table for path in _number_files(release, edition)
              for release_table in [_numbers(release, edition, path, places)] if release_table is not None]  # fmt: skip
    if not tables:
        return None
    names = list(dict.fromkeys(name for table in tables for name in table.columns if name != "observation_id"))
    together = pl.concat(tables, how="diagonal").group_by("observation_id").agg(pl.col(names).drop_nulls().first())
    return EnvironmentColumns.of(together, names)


def _number_files(release: Release, edition: SurveyEdition) -> Iterator[str]:
    below = [folder for folder in edition.environment if not folder or release.exists(folder)]
    while below:
        folder = below.pop(0)
        inside = f"{folder}/" if folder else ""
        if edition.year >= 2024:
            below += [f"{inside}{name}" for name in release.folders(folder)]
        for name in release.files(folder):
            if name.endswith(".csv") and name.startswith(edition.environment_stem):
                yield f"{inside}{name}"


def _numbers(release: Release, edition: SurveyEdition, path: str, places: pl.DataFrame) -> pl.DataFrame | None:
    """The numbers of one table with `observation_id`; columns that are no numbers are left out."""
    where = release.where(path)
    with release.open(path) as file:
        rows = read_csv(file, where, separator=edition.separator)
    if edition.year >= 2024 or "Id" in rows.columns:
        named = "surveyId" if edition.year >= 2024 else "Id"
        if named not in rows.columns:
            raise missing_column(where, named, rows.columns)
        rows = rows.rename({named: "observation_id"})
        if "-P0-" in path or "-PO-" in path or "/PO-" in path:
            rows = rows.with_columns(pl.format("record-{}", "observation_id").alias("observation_id"))
    else:
        keys = [name for name in ("patchID", "dayOfYear") if name in rows.columns and name in places.columns]
        if not keys:
            return None
        named_places = places.drop_nulls(keys).select("observation_id", *keys)
        rows = rows.join(named_places, on=keys, how="inner")
    passed = {"observation_id", "lat", "lon", "year", "dayOfYear", "patchID", "x_EPSG3035", "y_EPSG3035"}
    numbers = rows.select("observation_id", *(
        pl.col(name).cast(pl.Float64, strict=False).alias(name) for name in rows.columns if name not in passed
    ))  # fmt: skip
    finite = [pl.when(pl.col(name).is_finite()).then(pl.col(name)) for name in numbers.columns[1:]]
    numbers = numbers.with_columns(finite)
    kept = [name for name in numbers.columns[1:] if numbers[name].is_not_null().any()]
    return numbers.select("observation_id", *kept).unique("observation_id", keep="first") if kept else None


def _remarks(
    edition: SurveyEdition, places: pl.DataFrame, paths: dict[str, str], *, with_environment: bool
) -> tuple[str, ...]:
    told = []
    if not with_environment:
        told.append("There are no tables of numbers: nothing describes places but their coordinates.")
    asked = places.filter(pl.col("parts").list.contains("test"))
    hidden = int(asked["labels"].is_null().sum())
    if hidden:
        told.append(f"{hidden:,} surveys of test have no list of species: a run on them can be written, not scored.")
    if edition.year == 2023 and not paths["records"]:
        told.append("There are no records, and the surveys have no val of their own.")
    return tuple(told)


RECORDS = (
    ReleaseRecord(
        name="geolifeclef-2023",
        about="GeoLifeCLEF 2023: surveys of plots, records of single plants",
        open=partial(open_surveys, year=2023),
        check=ReleaseCheck(
            note="published in rounded figures: 5 million records, 5,000 surveys for val, over 20,000 for test"
        ),
        world=World(
            "fieldmark_worlds.layouts.surveys:WRITE_2023",
            "an invented land, surveyed, as GeoLifeCLEF 2023 is released: surveys, records, numbers of places",
        ),
        homepage="https://www.imageclef.org/GeoLifeCLEF2023",
        size=PublishedSize(observations=5_000_000, rounded=True),
        citation=preprint(
            "botella2023geolifeclef",
            "The GeoLifeCLEF 2023 Dataset to evaluate plant species distribution models at high spatial resolution "
            "across Europe",
            "Botella, Christophe and Deneu, Benjamin and Marcos, Diego and Servajean, Maximilien and Estopinan, "
            "Joaquim and Larcher, Théo and Leblanc, César and Bonnet, Pierre and Joly, Alexis",
            2023,
            "2308.05121",
        ),
    ),
    ReleaseRecord(
        name="geolifeclef-2024",
        about="GeoLifeCLEF 2024: surveys of plots, records of single plants",
        open=partial(open_surveys, year=2024),
        check=ReleaseCheck(note="published: 11,255 species ids; how many surveys and records there are is not known"),
        world=World(
            "fieldmark_worlds.layouts.surveys:WRITE_2024",
            "an invented land, surveyed, as GeoLifeCLEF 2024 is released: surveys, records, numbers of places",
        ),
        citation=working_note(
            "picek2024geolifeclef",
            "Overview of GeoLifeCLEF 2024: Species Composition Prediction with High Spatial Resolution at "
            "Continental Scale using Remote Sensing",
            "Picek, Lukas and Botella, Christophe and Servajean, Maximilien and Leblanc, César and Palard, Rémi and "
            "Larcher, Théo and Deneu, Benjamin and Marcos, Diego and others",
            2024,
            paper="paper-186",
        ),
    ),
    ReleaseRecord(
        name="geolifeclef-2025",
        about="GeoLifeCLEF 2025: surveys of plots, records of single plants",
        open=partial(open_surveys, year=2025),
        check=ReleaseCheck(note="how many surveys and records there are is not known from any page that could be read"),
        world=World(
            "fieldmark_worlds.layouts.surveys:WRITE_2025",
            "an invented land, surveyed, as GeoLifeCLEF 2025 is released: surveys, records, numbers of places",
        ),
        citation=working_note(
            "picek2025geolifeclef",
            "Overview of GeoLifeCLEF 2025: Plant Species Presence Prediction with Environmental and High-resolution "
            "Remote Sensing Data",
            "Picek, Lukas and Leblanc, César and Larcher, Théo and Servajean, Maximilien and Bonnet, Pierre and "
            "Joly, Alexis",
            2025,
            paper="paper_234",
        ),
    ),
)
