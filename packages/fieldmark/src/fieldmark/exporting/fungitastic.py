"""One's own records as a benchmark like FungiTastic: cut by its rules, and written in its layout.

```
metadata/FungiTastic/           Train, {Closed,Open}Set-{Val,Test}: species with enough observations in train; the
                                open sets hold unknown species as well
metadata/FungiTastic-FewShot/   Train, Val, Test: species with fewer
metadata/rules.json             the days of each part, and what it was drawn from
FungiTastic[-FewShot]/{train,val,test}/fullsize/<index>-<observation>.jpg
WORLD.json                      the mark of simulated data, where they are
```

- Only records with a species and a day count, and where there are photos at all, only those with a photo. A table
  without any photo gives one row per record, for methods that look at dates and places alone.
- Photos are hard links where the disk allows it, else copies.
- Observations keep their ids where these can stand in file names; otherwise they are numbered, and `occurrenceID` says
  which is which.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from fieldmark.errors import InputError
from fieldmark.releases import Dataset, open_dataset
from fieldmark.releases.fungitastic import LABEL_COLUMNS, OPEN_COLUMNS, RENAMED, SUBSETS
from fieldmark.releases.fungitastic_rules import MARK, RULES_FILE
from fieldmark.splits.by_date import FEW_SHOT, KNOWN, DateCut
from fieldmark.splits.division import UNUSED
from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.storage.release import WORLD_FILE, Release
from fieldmark.tables.schema import RANKS
from fieldmark.version import __version__
from fieldmark.work.progress import progress

SIZE = "fullsize"
PLAIN_ID = r"^[\w.-]{1,100}$"
# What the rows say besides the columns of the release.
FURTHER = ("occurrenceID", "license")
# The files of each subset: which part each holds, and of which kinds of species.
FILES: Mapping[str, Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "all": {
        "Train": ("train", (KNOWN,)),
        "ClosedSet-Val": ("val", (KNOWN,)),
        "OpenSet-Val": ("val", (KNOWN, "unknown")),
        "ClosedSet-Test": ("test", (KNOWN,)),
        "OpenSet-Test": ("test", (KNOWN, "unknown")),
    },
    "FewShot": {"Train": ("train", (FEW_SHOT,)), "Val": ("val", (FEW_SHOT,)), "Test": ("test", (FEW_SHOT,))},
}


@dataclass(frozen=True)
class DrawnBenchmark:
    """A benchmark that was drawn from records.

    Args:
        root: Where it lies.
        cut: The rules.
        counts: Observations, photos and species of each file.
        species: How many species are known, few-shot and unknown.
        left_out: How many records are in no file, by the reason.
    """

    root: Path
    cut: DateCut
    counts: Mapping[str, Mapping[str, int]]
    species: Mapping[str, int]
    left_out: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The result as plain data."""
        about = {"counts": self.counts, "species": self.species, "left_out": self.left_out}
        return {"root": str(self.root), "rules": self.cut.to_data(), **about}


def draw_fungitastic(
    records: str | Path, out: str | Path, cut: DateCut | None = None, *, overwrite: bool = False
) -> DrawnBenchmark:
    """Cuts records by the rules of FungiTastic and writes them as a release that its benchmarks open.

    Args:
        records: A table of occurrences, a Darwin Core Archive, or a folder with one of them.
        out: The root to be; it appears when complete.
        cut: The days of each part and how many observations are few; FungiTastic's if not given.
        overwrite: Whether an existing folder is replaced.

    Raises:
        InputError: When the records cannot be read, or no species is known, or val or test would be empty.
    """
    cut = cut or DateCut()
    dataset = open_dataset("occurrences", records)
    observations, left_out = _usable(dataset, cut)
    _refuse_empty(observations, dataset, cut)
    rows = _photo_rows(dataset, observations)
    counts = {}
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        for subset, files in FILES.items():
            name = SUBSETS[subset]
            classes = _classes(rows, KNOWN if subset == "all" else FEW_SHOT)
            for part, (split, kinds) in files.items():
                here = rows.filter((pl.col("part") == split) & pl.col("kind").is_in(kinds))
                if here.is_empty() and subset == "FewShot":
                    continue
                counts[f"{name}-{part}"] = _count(here)
                _write_table(root / f"metadata/{name}/{name}-{part}.csv", here, classes)
        _write_photos(dataset.release, rows, root)
        about = {"records": Path(records).name, "records_digest": dataset.digest, "code_version": __version__}
        write_json(root / RULES_FILE, {MARK: 1, **cut.to_data(), **about})
        if dataset.release.world is not None:
            mark = {**dataset.release.world, "dataset": "fungitastic", "drawn_from": dataset.name}
            write_json(root / WORLD_FILE, mark)
    species = dict(observations.group_by("kind").agg(pl.col("label").n_unique()).sort("kind").iter_rows())
    return DrawnBenchmark(Path(out), cut, counts, species, left_out)


def _usable(dataset: Dataset, cut: DateCut) -> tuple[pl.DataFrame, dict[str, int]]:
    """The observations with their part and the kind of their species, and how many are left out, by the reason."""
    rows, left_out = dataset.observations, dict[str, int]()

    def keep(rows: pl.DataFrame, condition: pl.Expr, reason: str) -> pl.DataFrame:
        kept = rows.filter(condition)
        if len(kept) < len(rows):
            left_out[reason] = len(rows) - len(kept)
        return kept

    rows = keep(rows, pl.col("label").is_not_null(), "without a species")
    rows = keep(rows, pl.col("date").is_not_null(), "without a day")
    if len(dataset.media):
        shown = dataset.media["observation_id"].unique().implode()
        rows = keep(rows, pl.col("observation_id").is_in(shown), "without a photo")
    rows = rows.with_columns(cut.parts(rows["date"]))
    rows = keep(rows, pl.col("part") != UNUSED, f"after {cut.until}")
    return rows.with_columns(cut.kinds(rows["label"], rows["part"])), left_out


def _refuse_empty(observations: pl.DataFrame, dataset: Dataset, cut: DateCut) -> None:
    known = observations.filter(pl.col("kind") == KNOWN)
    where = dataset.release.root
    dates = observations["date"].sort()
    years = f"The records are from {dates[0]} to {dates[-1]}." if len(dates) else "No record has species and day."
    if known.is_empty():
        found = f"no species with {cut.few} or more observations {cut.span('train')}"
        hint = f"{years} Set --val-from and --test-from to years of your own, or --few to a smaller number."
        raise InputError(where, found=found, expected="at least one", hint=hint)
    for part in ("val", "test"):
        if part not in known["part"]:
            hint = f"{years} Set --val-from, --test-from and --until to years of your own."
            found = f"no observation of a known species {cut.span(part)}"
            raise InputError(where, found=found, expected=f"at least one for {part}", hint=hint)


def _photo_rows(dataset: Dataset, observations: pl.DataFrame) -> pl.DataFrame:
    """One row per photo (or per record, where there are none), by the names of the release."""
    ranks = [name for name in (*RANKS, "poisonous") if name in dataset.taxa.columns]
    rows = observations.drop([name for name in ranks if name in observations.columns])
    rows = rows.join(dataset.taxa.select("label", *ranks), on="label", how="left", maintain_order="left")
    plain = observations["observation_id"].str.contains(PLAIN_ID).all()
    number = pl.col("observation_id") if plain else pl.int_range(1, pl.len() + 1).cast(pl.String)
    rows = rows.with_columns(number.alias("named"), occurrenceID="observation_id")
    rows = rows.drop([name for name in ("license", "path") if name in rows.columns])
    if len(dataset.media):
        photos = dataset.media.select("observation_id", "path", *_there(dataset.media, "license"))
        rows = photos.join(rows, on="observation_id", how="inner", maintain_order="left")
    else:
        rows = rows.with_columns(path=pl.lit(None, dtype=pl.String))
    index = pl.int_range(pl.len()).over("observation_id")
    suffix = pl.col("path").str.extract(r"(\.\w+)$").fill_null(".JPG")
    rows = rows.with_columns(filename=pl.concat_str(index.cast(pl.String), pl.lit("-"), "named", suffix))
    epithet = pl.col("label").str.split(" ").list.get(1, null_on_oob=True)
    place = pl.col("lat").is_not_null() & pl.col("lon").is_not_null()
    day = pl.col("date")
    return rows.with_columns(
        observation_id="named", scientific_name="label", species="label", specificEpithet=epithet,
        hasCoordinate=place.cast(pl.String), year=day.dt.year(), month=day.dt.month(), day=day.dt.day(),
    )  # fmt: skip


def _there(table: pl.DataFrame, *names: str) -> list[str]:
    return [name for name in names if name in table.columns]


def _classes(rows: pl.DataFrame, kind: str) -> dict[str, int]:
    """The number of every class of a subset, in the order of the alphabet."""
    names = rows.filter(pl.col("kind") == kind)["label"].unique().sort()
    return {name: number for number, name in enumerate(names)}


def _write_table(path: Path, rows: pl.DataFrame, classes: Mapping[str, int]) -> None:
    category = pl.col("label").replace_strict(classes, default=-1, return_dtype=pl.Int64)
    rows = rows.with_columns(label=category.cast(pl.String))
    columns = []
    for name in (*OPEN_COLUMNS, *LABEL_COLUMNS, *FURTHER):
        ours = RENAMED.get(name, name)
        ours = "filename" if name == "filename" else ours
        columns.append((pl.col(ours) if ours in rows.columns else pl.lit(None, dtype=pl.String)).alias(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    rows.select(columns).with_columns(pl.col("poisonous").cast(pl.Int8, strict=False)).write_csv(path)


def _count(rows: pl.DataFrame) -> dict[str, int]:
    numbers = {"observations": "observation_id", "photos": "filename", "species": "label"}
    return {name: rows[column].n_unique() for name, column in numbers.items()}


def _write_photos(release: Release, rows: pl.DataFrame, root: Path) -> None:
    """Links every photo into the folder of its part, or copies it where it cannot be linked."""
    there = rows.drop_nulls("path").select("path", "filename", "part", "kind")
    with progress("placing photos", len(there)) as tick:
        for path, name, part, kind in there.iter_rows():
            subset = SUBSETS["FewShot" if kind == FEW_SHOT else "all"]
            target = root / PurePosixPath(subset, part, SIZE, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            local = release.local(path)
            try:
                if local is None:
                    raise OSError("not on this machine")
                os.link(local.resolve(), target)
            except OSError:
                with release.open(path) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
            tick(1)
