"""AnimalCLEF 2025 and 2026 as they lie on disk.

```
ROOT/
  metadata.csv        image_id,identity,path,date,orientation,species,split,dataset
  images/...          as `path` says
```

Quirks:

- `split` is `database` or `query` in 2025, `train` or `test` in 2026. Photos to be answered have no identity, unless
  somebody has added it: then the release can be scored.
- What is recognized is the individual: `identity` is the label, and one individual stands in one dataset.
- Photos of one individual on one day are one observation: nearly the same picture must not lie in train and in val.
- 2026 has a dataset (lizards) without any photo to learn from.
"""

from __future__ import annotations

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.checks import ORGANIZERS_CODE, Count, ReleaseCheck
from fieldmark.releases.citations import working_note
from fieldmark.releases.record import PublishedSize, ReleaseRecord
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.inputs import CONTEXT, PHOTO_INPUT, Input
from fieldmark.tables.reader import read_csv

TABLE = "metadata.csv"
COLUMNS = ("image_id", "identity", "path", "split", "dataset")
PARTS = {"animalclef-2025": ("database", "query"), "animalclef-2026": ("train", "test")}

# Individuals are compared inside one dataset only, so that methods must know it.
DATASET = Input("dataset", ("dataset",))


def open_animalclef_2025(release: Release, subset: str = "all") -> Dataset:
    """Opens the release of 2025; `subset` is "all" or the name of one dataset.

    Raises:
        InputError: When the table is missing or contradicts itself.
    """
    return _open("animalclef-2025", release, subset)


def open_animalclef_2026(release: Release, subset: str = "all") -> Dataset:
    """Opens the release of 2026; `subset` is "all" or the name of one dataset.

    Raises:
        InputError: When the table is missing or contradicts itself.
    """
    return _open("animalclef-2026", release, subset)


def _open(name: str, release: Release, subset: str) -> Dataset:
    rows = _photos(name, release)
    if subset != "all":
        known = rows["dataset"].unique().sort().to_list()
        if subset not in known:
            raise MisuseError(f"{name} has no dataset called {subset!r}: {', '.join(known)}.")
        rows = rows.filter(pl.col("dataset") == subset)
    labeled = rows.drop_nulls("identity")
    taxa = labeled.select(label="identity", species="species", dataset="dataset").unique("label", maintain_order=True)
    observations = rows.group_by("observation_id", maintain_order=True).agg(
        pl.col("identity").first().alias("label"), pl.col("date", "dataset", "species").first()
    )
    observations = observations.with_columns(identity=pl.coalesce("label", "observation_id"))
    media = rows.select("media_id", "observation_id", "path", pl.concat_list("split").alias("parts"), "orientation")
    asked = int(rows["identity"].is_null().sum())
    remarks = (f"{asked:,} photos have no identity: a run on them can be written, not scored.",) if asked else ()
    inputs = (PHOTO_INPUT, DATASET, *(one for one in CONTEXT if one.name == "date"))
    return Dataset(name, release, taxa, observations, media, remarks, inputs=inputs)


def _photos(name: str, release: Release) -> pl.DataFrame:
    """One row per photo, checked."""
    if not release.exists(TABLE):
        hint = "Unpack the download of the challenge, and name the folder that holds it."
        raise InputError(release.root, found=f"no {TABLE}", expected=f"the release of {name}", hint=hint)
    where = release.where(TABLE)
    with release.open(TABLE) as file:
        rows = read_csv(file, where, required=COLUMNS)
    for column in ("date", "orientation", "species"):
        if column not in rows.columns:
            rows = rows.with_columns(pl.lit(None, pl.String).alias(column))
    rows = rows.with_columns(pl.col("date").str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False))
    learned, asked = PARTS[name]
    problems = (
        ("a part that is not known", ~rows["split"].is_in([learned, asked]), f"{learned} or {asked} in `split`"),
        ("no identity", (rows["split"] == learned) & rows["identity"].is_null(), f"one for each photo of {learned}"),
        ("no dataset", rows["dataset"].is_null(), "one in each row"),
        ("an image_id again", ~rows["image_id"].is_first_distinct(), "each once"),
    )
    for found, wrong, expected in problems:
        lines = wrong.fill_null(True).arg_true()
        if len(lines):
            raise InputError(where, line=int(lines[0]) + 2, found=found, expected=expected)
    named = rows.with_row_index("line", offset=2).drop_nulls("identity")
    strays = named.filter(pl.col("dataset") != pl.col("dataset").first().over("identity"))
    if len(strays):
        stray = strays.row(0, named=True)
        first = named.filter(pl.col("identity") == stray["identity"])["line"][0]
        found = f"the individual {stray['identity']!r} in another dataset than in line {first}"
        raise InputError(where, line=stray["line"], found=found, expected="one for each")
    day = pl.col("date").dt.strftime("%Y-%m-%d")
    encounter = pl.format("{} on {}", "identity", day)
    return rows.with_columns(media_id="image_id", observation_id=pl.coalesce(encounter, pl.col("image_id")))


RECORDS = (
    ReleaseRecord(
        name="animalclef-2025",
        about="AnimalCLEF 2025: photos of known individuals and of new ones",
        open=open_animalclef_2025,
        check=ReleaseCheck(published={"query": {ORGANIZERS_CODE: Count(photos=2_135)}}),
        homepage="https://www.imageclef.org/AnimalCLEF2025",
        citation=working_note(
            "animalclef2025", "Overview of AnimalCLEF 2025: Recognizing Individual Animals in Images", "", 2025
        ),
    ),
    ReleaseRecord(
        name="animalclef-2026",
        about="AnimalCLEF 2026: photos of individuals to be put together",
        open=open_animalclef_2026,
        check=ReleaseCheck(published={"test": {ORGANIZERS_CODE: Count(photos=2_409)}}),
        size=PublishedSize(photos=15_483),
    ),
)
