"""FungiTastic as it is released.

```
ROOT/
  metadata/FungiTastic/          FungiTastic-{Train,ClosedSet-Val,ClosedSet-Test,OpenSet-Val,OpenSet-Test,DNA-Test}.csv
  metadata/FungiTastic-Mini/     FungiTastic-Mini-{Train,DNA-Test}.csv and
                                 either FungiTastic-Mini-{ClosedSet,OpenSet}-{Val,Test}.csv
                                 or     FungiTastic-Mini-{Val,Test}.csv
  metadata/FungiTastic-FewShot/  FungiTastic-FewShot-{Train,Val,Test}.csv
  FungiTastic[-Mini|-FewShot]/{train,val,test,dna-test}/{300p,500p,720p,fullsize}/<filename>
                                 also in images/, as FungiCLEF 2025 is packed
  metadata/rules.json            only where it was drawn from other records by the same rules (`fungitastic_rules`)
  masks/, captions/, climaticData/, satellite_RGB/, satellite_NIR/     see `fungitastic_layers`
```

Quirks:

- One row per photo. `filename` is `<image index>-<observationID>.JPG`, indices have gaps. A photo of the closed set is
  listed again in the open set, and a DNA-sequenced one in DNA-Test.
- The class is `scientificName`, not `species`: varieties share a species. `category_id` counts from 0 within each
  subset and is not shared between subsets. Unknown species have -1, only in the open sets.
- Test files come with 31 columns, or with 19 that tell nothing about the label. Where the organizers' private label
  file (`FungiTastic-test-DEV.csv`, `FungiTastic-Mini-test-RAW.csv`) lies beside them, its labels are used.
- Whole numbers are written as floats in some files (`2.0`); any cell may be empty or `NaN`.
- `metaSubstrate` says `jord` for `soil`.
- Parts go by the names of the full set: `Val` and `Test` of Mini and FewShot are `ClosedSet-Val` and `ClosedSet-Test`.
"""

from __future__ import annotations

import datetime

import polars as pl

from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.releases.citations import preprint
from fieldmark.releases.exif import EXIF
from fieldmark.releases.fungitastic_layers import layers
from fieldmark.releases.fungitastic_rules import remark_on_rules
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World
from fieldmark.storage.release import Release
from fieldmark.tables import inputs
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import RANKS, parse_column, parse_places

SUBSETS = {"all": "FungiTastic", "Mini": "FungiTastic-Mini", "FewShot": "FungiTastic-FewShot"}
SIZES = ("300p", "500p", "720p", "fullsize")

# Each part with the names its file may have, and the folder of its photos.
FILES_OF_PART = {
    "Train": (("Train",), "train"),
    "ClosedSet-Val": (("ClosedSet-Val", "Val"), "val"),
    "OpenSet-Val": (("OpenSet-Val",), "val"),
    "ClosedSet-Test": (("ClosedSet-Test", "Test"), "test"),
    "OpenSet-Test": (("OpenSet-Test",), "test"),
    "DNA-Test": (("DNA-Test",), "dna-test"),
}
PRIVATE_LABELS = {"all": "FungiTastic-test-DEV.csv", "Mini": "FungiTastic-Mini-test-RAW.csv"}

# The 19 columns of a test file without labels, and the twelve that a labeled file has besides.
OPEN_COLUMNS = (
    "eventDate",
    "year",
    "month",
    "day",
    "habitat",
    "countryCode",
    "hasCoordinate",
    "substrate",
    "latitude",
    "longitude",
    "coorUncert",
    "observationID",
    "region",
    "district",
    "filename",
    "metaSubstrate",
    "elevation",
    "landcover",
    "biogeographicalRegion",
)
RED_LIST = "iucnRedListCategory"
LABEL_COLUMNS = (
    "scientificName",
    *RANKS,
    "specificEpithet",
    RED_LIST,
    "category_id",
    "poisonous",
)
WHOLE = ("year", "month", "day", "landcover", "category_id", "poisonous")
DECIMAL = ("coorUncert", "elevation")
RENAMED = {
    "eventDate": "date",
    "latitude": "lat",
    "longitude": "lon",
    "observationID": "observation_id",
    "filename": "media_id",
    "category_id": "label",
    "metaSubstrate": "meta_substrate",
    "scientificName": "scientific_name",
    "coorUncert": "coordinate_uncertainty_m",
    "elevation": "elevation_m",
    "countryCode": "country",
    "biogeographicalRegion": "biogeographical_region",
}
# What is known about an observation besides when, where and what.
CONTEXT = (
    "habitat",
    "substrate",
    "meta_substrate",
    "landcover",
    "elevation_m",
    "country",
    "region",
    "district",
    "biogeographical_region",
    "coordinate_uncertainty_m",
    "year",
    "month",
    "day",
)
INPUTS = (
    inputs.PHOTO_INPUT,
    *inputs.CONTEXT,
    inputs.Input("caption", extractor="words"),
    inputs.Input("climate", extractor="numbers"),
    inputs.Input("climate_series", extractor="series"),
    EXIF,
    inputs.Input("satellite", extractor="efficientnet_lite0"),
    inputs.Input("masks"),
)


def open_fungitastic(release: Release, subset: str = "all", *, photos: str | None = None) -> Dataset:
    """Opens one subset of FungiTastic.

    Args:
        release: The root of the release.
        subset: "all", "Mini" or "FewShot".
        photos: Which size of the photos; the smallest that is there, if not given.
    """
    if subset not in SUBSETS:
        raise MisuseError(f"FungiTastic has no subset called {subset!r}. {did_you_mean(subset, SUBSETS)}")
    files = metadata_files(release, subset)
    if "Train" not in files:
        name = SUBSETS[subset]
        raise InputError(
            release.where(f"metadata/{name}"),
            found="no training file",
            expected=f"{name}-Train.csv",
            hint="The root is the folder that holds `metadata`; `fieldmark get fungitastic ROOT` fetches it.",
        )
    parts = {part: read_part(release, path) for part, path in files.items()}
    rows = _merge(parts)
    rows = _with_private_labels(release, subset, rows)
    media = _media(release, subset, rows, photos)
    observations = rows.group_by("observation_id", maintain_order=True).agg(
        pl.col("label").drop_nulls().first(), pl.col("scientific_name").drop_nulls().first(),
        pl.col("date", "lat", "lon", *CONTEXT).first(),
        # Of unknown species as well, which are no taxa of the release.
        pl.col("poisonous").drop_nulls().first().cast(pl.Boolean).alias("species_poisonous"),
    )  # fmt: skip
    unlabeled = () if rows["label"].is_not_null().all() else (_unlabeled(rows),)
    return Dataset(
        "fungitastic",
        release,
        _taxa(parts["Train"]),
        observations,
        media,
        (*remark_on_rules(release), *unlabeled),
        layers=layers(release, subset, _captions(rows), dict(media.select("media_id", "path").iter_rows())),
        inputs=INPUTS,
    )


def metadata_files(release: Release, subset: str) -> dict[str, str]:
    """The parts of a subset that are there, each with the path of its file."""
    name = SUBSETS[subset]
    there = set(release.files(f"metadata/{name}"))
    file_of = {}
    for part, (namings, _) in FILES_OF_PART.items():
        for naming in namings:
            if f"{name}-{naming}.csv" in there:
                file_of[part] = f"metadata/{name}/{name}-{naming}.csv"
                break
    return file_of


def read_part(release: Release, path: str) -> pl.DataFrame:
    """Reads one metadata file: one row per photo, numbers as numbers, NaN as null, columns by our names.

    Columns that tell about the label are null where the file does not have them.
    """
    where = release.where(path)
    with release.open(path) as file:
        rows = read_csv(file, where, required=("observationID", "filename"))
    nothing = ["", "NaN", "nan", "NA", "None"]
    rows = rows.with_columns(pl.when(pl.all().is_in(nothing)).then(None).otherwise(pl.all()).name.keep())
    absent = [name for name in (*OPEN_COLUMNS, *LABEL_COLUMNS) if name not in rows.columns]
    rows = rows.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in absent)
    rows = parse_column(rows, "eventDate", datetime.date, where)
    rows = parse_places(rows, where, lat="latitude", lon="longitude")
    for name in DECIMAL:
        rows = parse_column(rows, name, float, where)
    for name in WHOLE:
        rows = _parse_whole(rows, name, where)
    observation = pl.col("observationID").str.strip_suffix(".0")
    substrate = pl.col("metaSubstrate").replace("jord", "soil")
    rows = rows.with_columns(observation, substrate, pl.col("category_id").cast(pl.String))
    empty = (rows["filename"].is_null() | rows["observationID"].is_null()).arg_true()
    if len(empty):
        raise InputError(where, line=int(empty[0]) + 2, found="no filename or no observationID", expected="both")
    return rows.rename(RENAMED)


def _parse_whole(rows: pl.DataFrame, name: str, where: str) -> pl.DataFrame:
    """Whole numbers, which some files write as floats."""
    rows = parse_column(rows, name, float, where)
    broken = (rows[name] != rows[name].round()).fill_null(False).arg_true()
    if len(broken):
        line = int(broken[0]) + 2
        raise InputError(where, line=line, found=f"{rows[name][line - 2]} as {name}", expected="a whole number")
    return rows.with_columns(pl.col(name).cast(pl.Int64))


def _merge(parts: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """One row per photo with the list of parts it is in; what one file leaves open may stand in another."""
    rows = pl.concat([table.with_columns(part=pl.lit(part)) for part, table in parts.items()], how="diagonal_relaxed")
    rest = [name for name in rows.columns if name not in ("media_id", "part")]
    return rows.group_by("media_id", maintain_order=True).agg(
        pl.col("part").unique(maintain_order=True).alias("parts"), *(pl.col(name).drop_nulls().first() for name in rest)
    )


def _with_private_labels(release: Release, subset: str, rows: pl.DataFrame) -> pl.DataFrame:
    path = f"metadata/{SUBSETS[subset]}/{PRIVATE_LABELS.get(subset)}"
    if subset not in PRIVATE_LABELS or not release.exists(path):
        return rows
    private = read_part(release, path).select("media_id", pl.col("label").alias("private"))
    joined = rows.join(private.unique("media_id"), on="media_id", how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce("label", "private").alias("label")).drop("private")


def _media(release: Release, subset: str, rows: pl.DataFrame, photos: str | None) -> pl.DataFrame:
    name = SUBSETS[subset]
    name = f"images/{name}" if not release.exists(name) and release.exists(f"images/{name}") else name
    folders = {
        part: f"{name}/{folder}/{_size(release, f'{name}/{folder}', photos)}"
        for part, (_, folder) in FILES_OF_PART.items()
    }
    folder = pl.col("parts").list.first().replace_strict(folders, return_dtype=pl.String)
    return rows.select(
        "media_id", "observation_id", pl.concat_str(folder, "media_id", separator="/").alias("path"), "parts"
    )


def _size(release: Release, folder: str, wanted: str | None) -> str:
    """The size to read photos at: the one asked for, or the smallest that is there."""
    if wanted is not None:
        if wanted not in SIZES:
            raise MisuseError(f"There are no photos of size {wanted!r}. {did_you_mean(wanted, SIZES)}")
        return wanted
    there = release.folders(folder)
    return next((size for size in SIZES if size in there), SIZES[0])


def _taxa(train: pl.DataFrame) -> pl.DataFrame:
    """The classes in the order of their ids, from the training file."""
    named = train.drop_nulls("label").with_columns(red_list=RED_LIST)
    first = pl.col("scientific_name", *RANKS, "poisonous", "red_list").drop_nulls().first()
    taxa = named.group_by("label").agg(first)
    return taxa.sort(pl.col("label").cast(pl.Int64)).with_columns(pl.col("poisonous").cast(pl.Boolean))


def _captions(rows: pl.DataFrame) -> dict[str, str]:
    if "captions" not in rows.columns:
        return {}
    return dict(rows.select("media_id", "captions").drop_nulls().iter_rows())


def _unlabeled(rows: pl.DataFrame) -> str:
    missing = rows.filter(pl.col("label").is_null()).explode("parts")["parts"].unique().sort()
    return f"Labels are not published for all photos of {', '.join(missing)}; val is scored in their place."


RECORDS = (
    ReleaseRecord(
        name="fungitastic",
        about="FungiTastic: full, Mini and FewShot",
        open=open_fungitastic,
        check="fieldmark.releases.fungitastic_check:check_fungitastic",
        download="fieldmark.releases.download.manifests.fungitastic:FUNGITASTIC",
        world=World(
            "fieldmark_worlds.layouts.fungitastic:write",
            "invented fungi as FungiTastic is released: full, Mini and few-shot, with every layer",
        ),
        license="the makers' statements differ: CC BY-NC-SA 4.0 (Kaggle page), CC BY 4.0 (page of the paper); follow "
        "the stricter one",
        homepage="https://bohemianvra.github.io/FungiTastic/",
        size=PublishedSize(observations=350_000, photos=650_000, rounded=True),
        citation=preprint(
            "picek2024fungitastic",
            "FungiTastic: A Multi-Modal Dataset and Benchmark for Image Categorization",
            "Picek, Lukas and Janoušková, Klára and Cermak, Vojtech and Matas, Jiri",
            2024,
            "2408.13632",
        ),
    ),
)
