"""Answers to many observations on disk: what `fieldmark identify FOLDER --out` and `check --labels --out` write.

```
ANSWERS/
  answers.json     what answered and when, where the files lie, simulated or not, the names that can be chosen from
  answers.parquet  one row per observation (`AnsweredEntry`); finds of a field guide have answers.jsonl in its place
  review.jsonl     what a person said, one line for each look (`identification.review.session`)
  checked.csv      the same as a table, for `fieldmark fit --add` and `fieldmark calibrate`
```
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.identification.taxon_records import TaxonRecord, TaxonRecords
from fieldmark.storage.files import appearing_file, write_json
from fieldmark.storage.parquet import read_frame
from fieldmark.tables.media import MEDIA, PHOTO, Medium

ABOUT_FILE: Final = "answers.json"
TABLE_FILE: Final = "answers.parquet"
LINES_FILE: Final = "answers.jsonl"
# What a batch has done so far.
PARTIAL: Final = ".partial"
SCHEMA: Final[Mapping[str, Any]] = {
    "observation_id": pl.String,
    "files": pl.List(pl.String),
    "name": pl.String,
    "rank": pl.String,
    "probability": pl.Float64,
    "certainty": pl.Float64,
    "verdict": pl.String,
    "danger": pl.String,
    "dangerous": pl.List(pl.String),
    "threatened": pl.Boolean,
    "names": pl.List(pl.String),
    "probabilities": pl.List(pl.Float64),
    "given": pl.String,
    "date": pl.Date,
    "lat": pl.Float64,
    "lon": pl.Float64,
    "time": pl.String,
    "site": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "problem": pl.String,
}


@dataclass(frozen=True)
class AnsweredEntry:
    """One observation and what the machine says about it.

    Args:
        observation_id: What it is called.
        files: Its photos or its recording, below the root of the folder where they lie below it.
        name: What stands in the list: the label, or the taxon of a higher rank, that the machine is sure of; empty for
            none.
        rank: The rank of that name, where it is known.
        probability: How sure, from 0 to 1; None where nobody says.
        certainty: What the order of review goes by: the lowest are looked at first.
        verdict: "known" or "possibly unknown".
        danger: What a person must know before touching or eating, where there is such a thing.
        dangerous: The poisonous or venomous species that it could be, the likeliest first.
        threatened: Whether a likely species is threatened, so that its place is told coarsely.
        names, probabilities: The likeliest names, best first.
        given: The label that is being checked, where there is one.
        date, lat, lon, time, site: Where and when, as far as it is known.
        start_s, end_s: From when to when in a recording.
        problem: Why there is no answer.
    """

    observation_id: str
    files: Sequence[str]
    name: str = ""
    rank: str | None = None
    probability: float | None = None
    certainty: float = 0.0
    verdict: str = "known"
    danger: str | None = None
    dangerous: Sequence[str] = ()
    threatened: bool = False
    names: Sequence[str] = ()
    probabilities: Sequence[float | None] = ()
    given: str | None = None
    date: Any = None
    lat: float | None = None
    lon: float | None = None
    time: str | None = None
    site: str | None = None
    start_s: float | None = None
    end_s: float | None = None
    problem: str | None = None


def table_of(entries: Sequence[AnsweredEntry]) -> pl.DataFrame:
    """The entries as a table."""
    return pl.DataFrame([asdict(entry) for entry in entries], schema=dict(SCHEMA))


@dataclass(frozen=True)
class AnswerFolder:
    """Answers with what is known about where they came from.

    Args:
        table: One row per observation, with the columns of `SCHEMA`.
        root: Where the files lie.
        about: What answered: `model`, `method`, `created`, `simulated`, `kind` (photo or recording), `remarks`.
        taxa: The names that can be chosen from, each with its ranks and common name as far as they are known.
    """

    table: pl.DataFrame
    root: Path
    about: Mapping[str, Any] = field(default_factory=dict)
    taxa: Sequence[Mapping[str, Any]] = ()

    @property
    def simulated(self) -> bool:
        return bool(self.about.get("simulated"))

    @property
    def medium(self) -> Medium:
        """What the files are; photos where the folder does not say."""
        return MEDIA.get(self.about.get("kind", ""), PHOTO)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names that can be chosen from."""
        return tuple(str(taxon["label"]) for taxon in self.taxa)

    @cached_property
    def records(self) -> TaxonRecords:
        """How names are recorded: with scientific name, rank and lineage."""
        return TaxonRecords(self.taxa)

    @cached_property
    def _rows(self) -> pl.DataFrame:
        return self.table.select(list(SCHEMA))

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {one: row for row, one in enumerate(self.table["observation_id"])}

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, observation: object) -> bool:
        return observation in self._row_of

    def __getitem__(self, observation: str) -> AnsweredEntry:
        return AnsweredEntry(**self._rows.row(self._row_of[observation], named=True))

    def entries(self) -> Iterator[AnsweredEntry]:
        """All entries, in their order."""
        return (AnsweredEntry(**row) for row in self._rows.iter_rows(named=True))

    def record(self, entry: AnsweredEntry, said: str | None = None) -> TaxonRecord | None:
        """The taxon of an entry as it is exported; None where there is no name.

        Args:
            entry: The entry.
            said: What a person said, who looked at it; empty where they could not tell.
        """
        name, rank = (entry.name, entry.rank) if said is None else (said, None)
        return self.records.of(name, rank) if name else None

    def path_of(self, file: str) -> Path:
        """Where a file of an entry lies."""
        return self.root / file

    def write(self, folder: Path) -> None:
        """Writes the answers; what a person said before stays."""
        folder.mkdir(parents=True, exist_ok=True)
        with appearing_file(folder / TABLE_FILE) as partial:
            self.table.write_parquet(partial)
        data = {"fieldmark_answers": 1, **self.about, "root": str(self.root), "taxa": list(self.taxa)}
        write_json(folder / ABOUT_FILE, data)


def read_answers(folder: Path) -> AnswerFolder:
    """Opens a folder of answers.

    Raises:
        InputError: When there are none, or they are of another make.
    """
    expected = "a folder of answers"
    hint = (
        "Make one: fieldmark identify PHOTOS --model MODEL --out FOLDER, or fieldmark check ... --labels --out FOLDER."
    )
    try:
        about = json.loads((folder / ABOUT_FILE).read_text(encoding="utf-8"))
        if about.pop("fieldmark_answers") != 1:
            raise InputError(folder / ABOUT_FILE, found="another format", expected="format 1")
        table = _table(folder)
        root, taxa = folder / about.pop("root"), about.pop("taxa")
        return AnswerFolder(_as_recorded_today(table, TaxonRecords(taxa)), root, about, taxa)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(folder, found="no answers", expected=expected, hint=hint) from error
    except (json.JSONDecodeError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise InputError(folder, found=f"something else ({error})", expected=expected, hint=hint) from error


def _table(folder: Path) -> pl.DataFrame:
    """The entries: a table, or the lines of a field guide, which writes none."""
    if (folder / LINES_FILE).is_file() and not (folder / TABLE_FILE).exists():
        texts = {name: pl.String if kind == pl.Date else kind for name, kind in SCHEMA.items()}
        return pl.read_ndjson(folder / LINES_FILE, schema=texts).with_columns(pl.col("date").str.to_date())
    return read_frame(folder / TABLE_FILE, folder / TABLE_FILE, expected="a table of answers")


def _as_recorded_today(table: pl.DataFrame, records: TaxonRecords) -> pl.DataFrame:
    """The table of an earlier version: what it did not write is empty, and a group has its own name.

    Earlier versions listed a genus, family, ... with one label under the name of that label.
    """
    if "dangerous" not in table.columns:
        names = [records.claimed(name, rank) for name, rank in table.select("name", "rank").iter_rows()]
        table = table.with_columns(pl.Series("name", names, pl.String), dangerous=pl.lit([], SCHEMA["dangerous"]))
    return table.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def refuse_occupied(folder: Path) -> None:
    """Refuses a place for answers that holds something else; what an interrupted batch left there is none."""
    if folder.is_dir() and (folder / ABOUT_FILE).exists():
        return
    if folder.exists() and (not folder.is_dir() or any(path.name != PARTIAL for path in folder.iterdir())):
        raise MisuseError(f"{folder} holds something other than answers. Choose another folder.")
