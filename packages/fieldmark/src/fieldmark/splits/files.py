"""A split as a file: `id,part` as CSV, and a JSON file beside it that says how it was made.

```
split.csv    id,part         one line for each row of the table that was cut
split.json   rule, shares, seed, the digest of the table, the digest of the split
```
The digest of a split is that of its pairs in the order of ids: the same split has the same digest, however its lines
are ordered. The JSON file may be missing (a split made elsewhere); where it is there, its digest must be right.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from fieldmark.errors import InputError, did_you_mean
from fieldmark.splits.division import UNUSED
from fieldmark.splits.official import PARTS, Cut
from fieldmark.storage.files import appearing_file, open_input, write_json
from fieldmark.storage.local_inputs import local_companion, local_input
from fieldmark.tables.reader import read_csv

SPLIT_FILE = "split.csv"
MARK = "fieldmark_split"
# Whether val was drawn from train, so that the final model may learn from it as well.
VAL_IS_DRAWN = "val_is_drawn"
# What the ids of a split may be, in the order in which they are looked up.
NAMED_BY = ("media_id", "observation_id", "path")


@dataclass(frozen=True)
class Split:
    """A split that was written to a file or read from one.

    Args:
        table: `id` and `part`, one row each.
        about: How it was made; empty where nobody says.
        where: What to call it in messages.
    """

    table: pl.DataFrame
    about: Mapping[str, Any] = field(default_factory=dict)
    where: str = "the split"

    @property
    def digest(self) -> str:
        """A fingerprint of the pairs, whatever their order."""
        hasher = hashlib.blake2b(digest_size=16)
        for pair in self.table.sort("id").select("id", "part").iter_rows():
            hasher.update(json.dumps(pair, ensure_ascii=False).encode() + b"\n")
        return hasher.hexdigest()

    @property
    def record(self) -> dict[str, Any]:
        """What a run keeps about its split."""
        told = ("rule", "seed", "shares", "counted", "benchmark")
        made = {name: self.about[name] for name in told if name in self.about}
        return {"file": Path(self.where).name, "digest": self.digest, **made}

    def write(self, path: Path) -> None:
        """Writes the CSV file and the JSON file beside it."""
        with appearing_file(path) as partial:
            self.table.select("id", "part").write_csv(partial)
        write_json(path.with_suffix(".json"), {MARK: 1, **self.about, "digest": self.digest})

    def cut(self, rows: pl.DataFrame) -> Cut:
        """Assigns the rows of a release to parts as the file says.

        Args:
            rows: One row for each medium or observation, with one of the columns of `NAMED_BY`.

        Raises:
            InputError: For ids that the release does not have, and for rows that the file does not name.
        """
        ids = self.table["id"]
        columns = [name for name in NAMED_BY if name in rows.columns]
        named_by = next((name for name in columns if ids[0] in set(rows[name])), columns[0])
        own = rows[named_by]
        strange = (~ids.is_in(own.implode())).arg_true()
        if len(strange):
            row, more = int(strange[0]), f" ({len(strange) - 1:,} more such lines.)" if len(strange) > 1 else ""
            expected = f"the {named_by} of a row of the release"
            hint = f"A split names rows by {', '.join(columns)}: draw it from the tables of this release.{more}"
            raise InputError(self.where, line=row + 2, found=f"{ids[row]!r}", expected=expected, hint=hint)
        missing = own.filter(~own.is_in(ids.implode()))
        if len(missing):
            found = f"no line for {missing.n_unique():,} of {own.n_unique():,} ({named_by} {missing[0]!r})"
            hint = f"Rows may be left out on purpose as {UNUSED}."
            raise InputError(self.where, found=found, expected="a part for each row of the release", hint=hint)
        part_of = dict(self.table.select("id", "part").iter_rows())
        part = pl.Series("part", [part_of[one] for one in own], dtype=pl.String)
        return Cut({name: part == name for name in PARTS}, val_is_drawn=bool(self.about.get(VAL_IS_DRAWN)))

    def is_own_of(self, benchmark: str) -> bool:
        """Whether these are the parts that a benchmark has by itself, written to a file (`fieldmark export split`)."""
        return bool(self.about.get("benchmark") == benchmark)


def read_split(path: Path) -> Split:
    """Reads a split.

    Raises:
        InputError: When it is no table of `id` and `part`, names a row twice or a part that does not exist, or was
            changed since its JSON file was written.
    """
    about = path.with_suffix(".json")
    path, about = local_input(path, "a split as CSV: id,part"), local_companion(about)
    with open_input(path, "a split as CSV: id,part") as file:
        table = read_csv(file, path, required=("id", "part")).select("id", "part")
    if table.is_empty():
        raise InputError(path, found="a header and no row", expected="a row for each id")
    table = table.with_columns(pl.col("part").str.strip_chars())
    known = (*PARTS, UNUSED)
    for column in ("id", "part"):
        blank = table[column].is_null().arg_true()
        if len(blank):
            raise InputError(path, line=int(blank[0]) + 2, found=f"no {column}", expected="one in each row")
    again = (~table["id"].is_first_distinct()).arg_true()
    if len(again):
        row = int(again[0])
        raise InputError(path, line=row + 2, found=f"the id {table['id'][row]!r} again", expected="each id once")
    wrong = (~table["part"].is_in(known)).arg_true()
    if len(wrong):
        row = int(wrong[0])
        name = table["part"][row]
        hint = did_you_mean(name, known)
        if name.startswith("fold-"):
            hint = "Folds are no parts: choose one to hold out, and write test or val in its place."
        raise InputError(path, line=row + 2, found=f"the part {name!r}", expected=", ".join(known), hint=hint)
    split = Split(table, _about(about), str(path))
    if split.about and split.about.get("digest") != split.digest:
        found, expected = (
            f"a split with the digest {split.digest}",
            f"{split.about.get('digest')}, as its JSON file says",
        )
        hint = f"It was changed since: draw it again, or remove {path.with_suffix('.json').name}."
        raise InputError(path, found=found, expected=expected, hint=hint)
    return split


def _about(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        made = dict(json.loads(path.read_text(encoding="utf-8")))
        return made if MARK in made else {}  # a file of the same name about something else
    except (ValueError, TypeError) as error:
        hint = "Remove it, or draw the split again."
        raise InputError(path, found="no JSON object", expected="what made the split", hint=hint) from error


def straddling(parts: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], list[str]]:
    """What lies in two parts at once, by the names of the two parts in their order.

    >>> straddling({"train": ["a", "b"], "val": ["b"], "test": ["c"]})
    {('train', 'val'): ['b']}
    """
    names = list(parts)
    pairs = [(first, second) for place, first in enumerate(names) for second in names[place + 1 :]]
    both = {pair: sorted(set(parts[pair[0]]) & set(parts[pair[1]])) for pair in pairs}
    return {pair: ids for pair, ids in both.items() if ids}
