"""Any table of photos made into a benchmark with few labels, by the recipe of Semi-iNat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fieldmark.errors import MisuseError
from fieldmark.settings import configure
from fieldmark.splits.files import Split
from fieldmark.splits.semi_supervised import SemiDraw, SemiSupervised, draw_semi_supervised
from fieldmark.storage.files import open_input
from fieldmark.tables.reader import decoded
from fieldmark.tables.schema import missing_column
from fieldmark.version import __version__
from fieldmark.views.split_tables import Columns, GivenRows


@dataclass(frozen=True)
class SemiSplit:
    """A table that was cut.

    Args:
        split: What the file holds.
        draw: The parts and the species behind them.
    """

    split: Split
    draw: SemiDraw

    @property
    def rows(self) -> dict[str, int]:
        """How many rows each part has."""
        return dict(sorted(Counter(self.draw.table["part"]).items()))

    @property
    def species(self) -> dict[str, int]:
        """How many species are in-class, out-of-class and dropped."""
        return dict(sorted(Counter(self.draw.species["membership"]).items()))

    def to_json(self) -> dict[str, Any]:
        """The result as plain data, without the rows of the table."""
        return {**dict(self.split.about), "digest": self.split.digest, "rows": self.rows, "species": self.species}


def split_semi_supervised(
    table: str | Path,
    *,
    label: str,
    group: str | None = None,
    contributor: str | None = None,
    settings: Mapping[str, Any] | None = None,
    dropped: str | Path | None = None,
    id_column: str | None = None,
    seed: int = 0,
    out: str | Path | None = None,
) -> SemiSplit:
    """Cuts a table by the recipe of Semi-iNat, and writes the split if `out` is given.

    Args:
        table: A CSV or Parquet file with one row for each photo.
        label: The column of species.
        group: The column of phyla, or of whatever in-class and out-of-class species shall be alike in.
        contributor: The column of people, of whom one photo of each species is taken.
        settings: Those of `SemiSupervised` that are not at their defaults.
        dropped: A text file of species that were seen elsewhere, one on each line.
        id_column: The column that names a row.
        seed: The seed of the draw.
        out: The CSV file to write; a JSON file beside it says how it was made.

    Raises:
        InputError: When the table is at fault, or no species has enough photos.
        MisuseError: For settings that the recipe does not have.
    """
    given = GivenRows.read(Path(table), Columns(id_column))
    for name in (label, group, contributor):
        if name is not None and name not in given.frame.columns:
            raise missing_column(given.where, name, given.frame.columns)
    recipe: SemiSupervised = configure(dict(settings or {}), SemiSupervised)[0]

    def column(name: str | None) -> pl.Series:
        if name is None:
            return pl.Series([None] * len(given.frame), dtype=pl.String)
        return given.frame[name].cast(pl.String)

    rows = pl.DataFrame(
        {
            "id": pl.Series(given.ids, dtype=pl.String),
            "label": column(label),
            "group": column(group),
            "contributor": column(contributor),
        }
    )
    seen = _species_of(Path(dropped)) if dropped is not None else ()
    draw = draw_semi_supervised(rows, recipe, seed=seed, dropped=seen, where=given.where)
    about = {
        "code_version": __version__,
        "table": Path(table).name,
        "table_digest": given.digest,
        "id": given.columns.id,
        "rule": recipe.to_data(),
        "label": label,
        "group": group,
        "contributor": contributor,
        "dropped_species": len(seen),
        "private_test": draw.table.filter(pl.col("usage") == "Private")["id"].to_list(),
        "seed": seed,
    }
    result = SemiSplit(Split(draw.table.select("id", "part"), about, str(table)), draw)
    if out is not None:
        result.split.write(Path(out))
    return result


def _species_of(path: Path) -> tuple[str, ...]:
    with open_input(path, "a list of species, one on each line") as file:
        text = decoded(file.read(), path, "a list of species")
    return tuple(dict.fromkeys(line.strip() for line in text.split("\n") if line.strip()))


def refuse_other_options(option: str, given: Mapping[str, bool]) -> None:
    """Refuses options of other splits beside one that says everything itself.

    Raises:
        MisuseError: Names the first.
    """
    wrong = [name for name, is_given in given.items() if is_given]
    if wrong:
        raise MisuseError(f"{option} says by itself which rows go where: leave {wrong[0]} out.")
