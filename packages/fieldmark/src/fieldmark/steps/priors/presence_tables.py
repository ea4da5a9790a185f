"""A table of which label lives in which place.

```
label,afghanistan,albania,...
Acanthophis antarcticus,0,0,...
```
The first column holds labels or the scientific names of their species, whatever it is called; each further column is a
place, with 1 where the label lives and 0 where it does not. A label that is listed twice lives where either row says,
and the same holds for places: tables in use have both, under two spellings.

A country that the table does not have, or where none of the labels lives, backs off to its continent: what lives in
any country of it. So does an item of which only the continent is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import InputError, MisuseError
from fieldmark.settings import setting
from fieldmark.steps.priors.base import Logs, PriorSource
from fieldmark.steps.priors.contexts import BACK_OFFS, check_context, columns_of, levels_of
from fieldmark.steps.priors.countries import country_and_continent
from fieldmark.storage.files import with_digest
from fieldmark.tables.reader import read_csv
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part

# How likely a label is where it does not live: tables have gaps, and people keep pets.
DEFAULT_FLOOR = 0.01
# What stands before the name of a continent, so that it is never taken for a country.
CONTINENT = "continent: "
_PRESENT = {"1": 1, "true": 1, "yes": 1, "0": 0, "false": 0, "no": 0}


@dataclass(frozen=True)
class PresenceTable(PriorSource):
    """Every label that lives in a place is as likely as any other; those that do not are `floor` times as likely.

    Labels that the table does not list stay as they are. A place that the table does not have, and one where none of
    the labels lives, say what the wider one says; an item without a place says nothing. All labels are alike without a
    place, so that the table brings in no frequencies.

    Args:
        context: Of what (`contexts`): country as a rule.
        file: The table.
        floor: How likely a label is where it does not live; above 0, since tables have gaps.
        back_off: `continent`: see above; `world`: such places say nothing.
        places: The places of the table where at least one label lives, found by `fit`; continents after countries.
        listed: How many of the labels the table lists, found by `fit`.
    """

    context: str = "country"
    file: str = ""
    floor: float = setting(DEFAULT_FLOOR, above=0, most=1)
    back_off: str = setting(BACK_OFFS[0], choices=BACK_OFFS)
    places: Sequence[str] = ()
    listed: int = 0
    kind: ClassVar[str] = "presence"

    def check_settings(self) -> None:
        if not self.file:
            raise MisuseError("A table of presence is read from a file: add file=TABLE.csv.")

    @property
    def external_data(self) -> tuple[str, ...]:
        return (f"The table of presence {with_digest(Path(self.file).name, Path(self.file))}.",)

    def check(self, step: str, task: Task) -> None:
        check_context(step, self.context, task)

    def fit(self, part: Part, taxonomy: Taxonomy, *, several: bool) -> Self:
        if not Path(self.file).is_file():
            raise InputError(self.file, found="no such file", expected="a CSV table of labels by places")
        with Path(self.file).open("rb") as file:
            frame = read_csv(file, self.file)
        return self.fit_frame(frame, taxonomy, part.items)

    def fit_frame(self, frame: pl.DataFrame, taxonomy: Taxonomy, items: pl.DataFrame | None = None) -> Self:
        """Takes the table from a frame of texts: labels in the first column, places in the others.

        Args:
            frame: The table.
            taxonomy: The labels, and the species they belong to.
            items: Items that tell the continent of countries that no list of countries has.

        Raises:
            InputError: For a row without a label, a cell that is neither 0 nor 1, or no label that is asked for.
        """
        rows_of: dict[str, list[int]] = {}
        for row, name in enumerate(frame.to_series(0)):
            key = _plain(name or "")
            if not key:
                raise InputError(self.file, line=row + 2, found="no label", expected="one in the first column")
            rows_of.setdefault(key, []).append(row)
        n_labels = len(taxonomy.labels)
        pairs = [(code, row) for code in range(n_labels) for row in _rows(code, taxonomy, rows_of)]
        if not pairs:
            expected = f"at least one of the {n_labels:,} labels, by name or species, in the first column"
            raise InputError(self.file, found="none of them", expected=expected)
        codes, rows = np.array(pairs, dtype=np.int64).T
        present: dict[str, NDArray[np.uint8]] = {}
        for column in frame.columns[1:]:
            place, own = self._place(column), np.zeros(n_labels, dtype=np.uint8)
            np.maximum.at(own, codes, self._cells(frame[column])[rows])
            if place is not None and own.any():
                present[place] = own | present[place] if place in present else own
        if self.back_off == BACK_OFFS[0] and columns_of(self.context)[-1] == "country":
            present |= _by_continent(present, _continents(items))
        table = np.stack(list(present.values())) if present else np.zeros((0, n_labels), dtype=np.uint8)
        listed = np.isin(np.arange(n_labels), codes)
        made = replace(self, places=tuple(present), listed=int(listed.sum()))
        return made.with_arrays({"present": table, "listed": listed.astype(np.uint8)})

    def _cells(self, column: pl.Series) -> NDArray[np.uint8]:
        values = [_PRESENT.get((value or "").strip().lower()) for value in column]
        if None in values:
            row = values.index(None)
            found = f"{column[row]!r} in column {column.name!r}"
            raise InputError(self.file, line=row + 2, found=found, expected="0 or 1")
        return np.array(values, dtype=np.uint8)

    def _place(self, name: str) -> str | None:
        if columns_of(self.context)[-1] == "country":
            return country_and_continent(name)[0]
        return name.strip() or None

    @property
    def log_prior(self) -> Logs:
        n = len(self.arrays["listed"])
        return np.full(n, -np.log(n))

    def log_ratio(self, items: pl.DataFrame) -> Logs:
        logs = self.log_odds_ratio(items)
        return np.asarray(logs - np.log(np.exp(logs).mean(axis=1, keepdims=True)))

    def log_odds_ratio(self, items: pl.DataFrame) -> Logs:
        """The log of the floor for labels that do not live in the place of an item, 0 for all others."""
        present, listed = self.arrays["present"], self.arrays["listed"].astype(np.bool_)
        logs = np.zeros((len(items), len(listed)))
        if any(name not in items.columns for name in columns_of(self.context)):
            return logs
        row_of = {place: row for row, place in enumerate(self.places)}
        for number, names in enumerate(zip(*self._names(items), strict=True)):
            row = next((row_of[name] for name in names if name in row_of), None)
            if row is not None:
                logs[number, listed & (present[row] == 0)] = np.log(self.floor)
        return logs

    def _names(self, items: pl.DataFrame) -> list[list[str | None]]:
        """Under which names the table may know the place of each item, the narrowest first."""
        levels = levels_of(self.context, items)
        narrow = levels[-1].to_list()
        if len(levels) < 2 or self.back_off != BACK_OFFS[0]:
            return [narrow]
        return [narrow, [None if name is None else CONTINENT + name for name in levels[-2]]]


def _continents(items: pl.DataFrame | None) -> dict[str, str]:
    """The continent of each country as items state it."""
    if items is None or not {"country", "continent"} <= set(items.columns):
        return {}
    continent, country = levels_of("country", items)
    return {one: other for one, other in zip(country, continent, strict=True) if one and other}


def _by_continent(present: Mapping[str, NDArray[np.uint8]], stated: Mapping[str, str]) -> dict[str, NDArray[np.uint8]]:
    """What lives in any country of each continent."""
    on_continent: dict[str, NDArray[np.uint8]] = {}
    for country, own in present.items():
        continent = country_and_continent(country)[1] or stated.get(country)
        if continent is not None:
            name = CONTINENT + continent
            on_continent[name] = own | on_continent[name] if name in on_continent else own
    return on_continent


def _plain(name: str) -> str:
    """A name without case, and with blanks for the signs that slugs put between words."""
    return " ".join(name.replace("_", " ").replace("-", " ").casefold().split())


def _rows(code: int, taxonomy: Taxonomy, rows_of: Mapping[str, list[int]]) -> list[int]:
    """The rows of a label: those of its own name, else those of its species."""
    names = (taxonomy.labels.names[code], taxonomy.taxon(code, "species") or "")
    return next((rows_of[_plain(name)] for name in names if _plain(name) in rows_of), [])
