"""A check of SnakeCLEF: counts beside those of the overview, species by country, places, photos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from fieldmark.releases.checks import CheckRun, Count, PartCount, Problems
from fieldmark.releases.photo_checks import FileWords
from fieldmark.releases.snakeclef.metadata import (
    CLASSES_FILE,
    MetadataTable,
    csv_files,
    metadata_tables,
    read_table,
    slug_of,
)
from fieldmark.releases.snakeclef.photos import NAME_2020, listed_classes, merged_photos
from fieldmark.storage.release import Release

# What the first column is called, where it has a name at all.
NAMES = ("", "species", "scientific_name", "binomial", "label", "Species/Country")
# Fewer columns of 0 and 1 are no table of countries.
LEAST_COUNTRIES = 3
OVERVIEW, OVERVIEW_2021 = "LifeCLEF 2020, section 5", "SnakeCLEF 2021"
SPECIES, SPECIES_OF_TEST, COUNTRIES = 783, 973, 145
PUBLISHED: Mapping[int, Mapping[str, Count]] = {
    2020: {
        "classes": Count(classes=SPECIES, countries=COUNTRIES),
        "train": Count(photos=245_185, classes=SPECIES),
        "val": Count(photos=14_029, classes=SPECIES),
    },
    2021: {"all": Count(photos=386_006, classes=772, countries=188)},
}
# The most and the least frequent species of the overview, and the share of photos with a place.
MOST, MOST_PHOTOS = "thamnophis-sirtalis", 12_201
LEAST, LEAST_PHOTOS = "naja-pallida", 17
LOCATED = 0.8
# How far from 80 % the share of located photos may be before it is worth a word.
LOCATED_SLACK = 0.1
FILES = FileWords(
    "an id has no photo", ("warning", "a folder of photos is missing"), stray="a photo has no line in any table"
)


def check_snakeclef(check: CheckRun) -> list[PartCount]:
    """Checks what is there against the overview of 2020, or tables of 2021 against what is known of those."""
    release, problems, edition = check.release, check.problems, 2020 if check.name == NAME_2020 else 2021
    tables = list(metadata_tables(release))
    own = [table for table in tables if table.edition == edition]
    listed = listed_classes(release)
    if edition == 2020 and not own:
        problems.add("warning", "there is no metadata of 2020 (train_labels.csv, validate_labels.csv)")
        places = [f"{table.path}: {len(table.rows):,} rows" for table in tables]
        problems.at("note", "there are tables of 2021, which are counted instead", places)
    photos = merged_photos(release, own or tables, None)
    labels = sorted(photos["label"].drop_nulls().unique())
    if edition == 2020:
        _check_classes(listed, own, problems, real=check.real)
        _check_extremes(photos if own else photos.clear(), problems, real=check.real)
        labels = listed or labels
    _check_places(photos, edition, problems, real=check.real)
    _check_presence(release, labels, problems)
    _check_overlaps(photos, problems)
    check.check_files(photos, FILES)
    return _counts(photos, listed if edition == 2020 else None, edition, borrowed=not own)


def _counts(photos: pl.DataFrame, listed: Sequence[str] | None, edition: int, *, borrowed: bool) -> list[PartCount]:
    """Counts by part beside the published ones; parts of another edition say so in their names."""
    published, source = PUBLISHED[edition], OVERVIEW if edition == 2020 else OVERVIEW_2021
    counts = []
    if listed is not None:
        countries = photos["country"].drop_nulls().n_unique() if len(photos) and not borrowed else None
        counts.append(
            PartCount("classes", Count(classes=len(listed), countries=countries), {source: published["classes"]})
        )
    if borrowed:
        counts += [PartCount(part, Count(photos=0), {source: published[part]}) for part in ("train", "val")]
    parts = photos.explode("parts")
    for part in parts["parts"].unique(maintain_order=True).to_list():
        count = _count(parts.filter(pl.col("parts") == part))
        stated = {source: published[part]} if part in published and not borrowed else {}
        counts.append(PartCount(f"{part} of 2021" if borrowed else part, count, stated))
    if edition == 2021:
        counts.append(PartCount("all", _count(photos), {source: published["all"]}))
    return counts


def _count(rows: pl.DataFrame) -> Count:
    labels, countries = rows["label"].drop_nulls(), rows["country"].drop_nulls()
    return Count(photos=len(rows), classes=labels.n_unique() or None, countries=countries.n_unique())


def _check_classes(
    listed: Sequence[str] | None, own: Sequence[MetadataTable], problems: Problems, *, real: bool
) -> None:
    if listed is None:
        problems.add("warning", f"{CLASSES_FILE} is missing: the classes are the species of the labels")
    elif real:
        here = f"{CLASSES_FILE} lists {len(listed):,}"
        contradiction = f"the overview says {SPECIES} species in the data and {SPECIES_OF_TEST} in the test set"
        agrees = "which agrees with the first" if len(listed) == SPECIES else "which agrees with neither"
        problems.add("note" if len(listed) == SPECIES else "warning", f"{contradiction}; {here}, {agrees}")
    for table in own:
        strange = table.rows.filter(pl.col("label").is_not_null() & ~pl.col("label").is_in(list(listed or [])))
        if listed is not None and len(strange):
            places = [f"{table.path}, line {line}: {label}" for line, label in strange.select("line", "label").rows()]
            problems.add("error", "a species is not listed among the classes", places)


def _check_extremes(photos: pl.DataFrame, problems: Problems, *, real: bool) -> None:
    """The most and the least frequent species of train, beside those of the overview."""
    train = photos.filter(pl.col("parts").list.contains("train") & pl.col("label").is_not_null())
    extremes = f"{MOST_PHOTOS:,} photos of the most frequent species ({MOST}), {LEAST_PHOTOS} of the least ({LEAST})"
    stated = f"published: {extremes}"
    if train.is_empty():
        if real:
            problems.add("note", f"{stated}; here are no labels of train of 2020")
        return
    counts = train.group_by("label").len().sort("len", "label", descending=[True, False])
    most, least = counts.row(0), counts.row(-1)
    here = f"here {most[0]} has {most[1]:,} and {least[0]} {least[1]:,}"
    if not real:
        problems.add("note", here)
        return
    photos_of = dict(counts.iter_rows())
    agrees = most == (MOST, MOST_PHOTOS) and least[1] == LEAST_PHOTOS and photos_of.get(LEAST) == LEAST_PHOTOS
    problems.add("note" if agrees else "warning", f"{stated}; {here}")


def _check_places(photos: pl.DataFrame, edition: int, problems: Problems, *, real: bool) -> None:
    if photos.is_empty():
        if real and edition == 2020:
            problems.add("note", f"published: about {LOCATED:.0%} of the photos have a country; here are none")
        return
    share = photos["country"].is_not_null().mean()
    assert isinstance(share, float)
    here = f"{share:.1%} of {len(photos):,} photos have a country"
    if real and edition == 2020:
        near = abs(share - LOCATED) <= LOCATED_SLACK
        problems.add("note" if near else "warning", f"published: about {LOCATED:.0%} have a country; here {here}")
    else:
        problems.add("note", here)
    if photos["continent"].is_not_null().any():
        several = (
            photos.drop_nulls(["country", "continent"]).group_by("country").agg(pl.col("continent").unique().sort())
        )
        torn = several.filter(pl.col("continent").list.len() > 1).sort("country")
        places = [f"{country}: {', '.join(continents)}" for country, continents in torn.iter_rows()]
        problems.at("warning", "a country lies in several continents", places)


def _check_presence(release: Release, labels: Sequence[str], problems: Problems) -> None:
    """How many species the table of presence has, and which are missing."""
    presence = find_presence(release)
    if presence is None:
        problems.add("note", "there is no table of species by country")
        return
    missing = presence.missing(list(labels))
    size = f"{presence.path}: {len(presence.slugs):,} species by {len(presence.countries)} countries"
    problems.add("note", f"the table of presence has {len(labels) - len(missing)} of {len(labels)} species", [size])
    if missing:
        # All of them in one place: each may have another name in the table.
        what = f"the table of presence lacks {len(missing)} species, maybe under another name"
        problems.add("warning", what, [", ".join(missing)])
    homeless = [name for name, number in presence.countries_of().items() if not number and name in set(labels)]
    problems.at("warning", "a species lives in no country of the table of presence", homeless)
    if presence.empty_countries:
        problems.add("note", "a country of the table of presence has no species", presence.empty_countries)


def _check_overlaps(photos: pl.DataFrame, problems: Problems) -> None:
    both = photos.filter(pl.col("parts").list.len() > 1)
    leaking = both.filter(pl.col("parts").list.set_intersection(["train", "val", "test"]).list.len() > 1)
    places = [f"{name}: {' and '.join(parts)}" for name, parts in leaking.select("media_id", "parts").iter_rows()]
    problems.at("error", "a photo is in two parts", places)
    others = both.filter(~pl.col("media_id").is_in(leaking["media_id"].implode()))
    places = [f"{name}: {' and '.join(parts)}" for name, parts in others.select("media_id", "parts").iter_rows()]
    problems.at("note", "a photo is in two tables", places)


@dataclass(frozen=True)
class CountryPresence:
    """Which species lives where.

    Args:
        path: The file.
        frame: Species in the first column, one column of 0 and 1 for each country, all as text.
    """

    path: str
    frame: pl.DataFrame

    @cached_property
    def slugs(self) -> list[str]:
        """The species, one for each row."""
        return [slug_of(name or "") for name in self.frame.to_series(0)]

    @property
    def countries(self) -> list[str]:
        return self.frame.columns[1:]

    def missing(self, labels: list[str]) -> list[str]:
        """Those labels that the table does not list."""
        listed = set(self.slugs)
        return [label for label in labels if label not in listed]

    @cached_property
    def empty_countries(self) -> list[str]:
        """Countries where no species of the table lives."""
        return [name for name in self.countries if not (self.frame[name].str.strip_chars() == "1").any()]

    def countries_of(self) -> dict[str, int]:
        """In how many countries each species lives."""
        cells = self.frame.select((pl.col(self.countries).str.strip_chars() == "1").cast(pl.Int32))
        per_row = cells.to_numpy().sum(axis=1)
        counts: dict[str, int] = {}
        for slug, number in zip(self.slugs, np.asarray(per_row).tolist(), strict=True):
            counts[slug] = max(counts.get(slug, 0), int(number))
        return counts


def find_presence(release: Release) -> CountryPresence | None:
    """The table of presence in the root: the first whose columns are all countries with 0 and 1; None without one."""
    for name in csv_files(release):
        if (table := _as_presence(read_table(release, name), name)) is not None:
            return table
    return None


def _as_presence(frame: pl.DataFrame, path: str) -> CountryPresence | None:
    if frame.width <= LEAST_COUNTRIES or frame.is_empty():
        return None
    first = frame.columns[0]
    # Polars calls a column without a name by its number.
    if first not in NAMES and not first.startswith("column_") and not first.startswith("_duplicated"):
        return None
    cells = frame.select(pl.col(frame.columns[1:]).str.strip_chars().is_in(["0", "1"]).all())
    return CountryPresence(path, frame) if all(cells.row(0)) else None
