"""The table of which species lives in which country, as it lies in the folder of a release."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from fieldmark.datasets.snakeclef.metadata import csv_files, read_table, slug_of
from fieldmark.release import Release

# What the first column is called, where it has a name at all.
NAMES = ("", "species", "scientific_name", "binomial", "label", "Species/Country")
# Fewer columns of 0 and 1 are no table of countries.
LEAST_COUNTRIES = 3


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
