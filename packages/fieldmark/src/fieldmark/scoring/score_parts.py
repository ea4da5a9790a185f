"""The public and the private part of a hidden truth, each with a scorecard of its own.

The truth of a challenge is a folder:

    truth.csv       as for `fieldmark score --truth`; truth.parquet for masks
    classes.csv     where the benchmark has more classes than the truth names
    media.csv       for soundscapes
    parts.csv       unit,part: which independent units are public and which are private

Parts are made of units, never of rows: photos of one observation on both sides would let the public board tell about
the private one. A run answers all items; it is read once, and each part is then scored as if it were the whole test
set, so that what is global (the threshold of GeoLifeCLEF, the classes of a macro average) is taken again for each part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.questions.answer import LooseTruth
from fieldmark.questions.truth import Truth
from fieldmark.scoring import Scorecard, given_truth, score_predictions
from fieldmark.scoring.run_reader import read_run
from fieldmark.scoring.scorer_digest import scorer_digest
from fieldmark.storage.files import sha256_of
from fieldmark.tables.reader import read_csv
from fieldmark.version import __version__

TRUTH_FILES = ("truth.csv", "truth.parquet")
CLASSES_FILE, MEDIA_FILE, PARTS_FILE = "classes.csv", "media.csv", "parts.csv"
PUBLIC, PRIVATE = "public", "private"
FEWEST_UNITS = 2


def truth_files(folder: Path) -> dict[str, Path]:
    """The files of a truth that are there, by what they hold."""
    tables = (("classes", CLASSES_FILE), ("media", MEDIA_FILE), ("parts", PARTS_FILE))
    names = [*(("truth", name) for name in TRUTH_FILES), *tables]
    return {what: folder / name for what, name in names if (folder / name).exists()}


def score_parts(
    name: str, run: Path, files: Mapping[str, Path], *, parts: Iterable[str] = (), scorer: str | None = None
) -> dict[str, Scorecard]:
    """Scores each part of a truth.

    Args:
        name: The benchmark.
        run: The run file, which answers every item.
        files: The truth as `truth_files` finds it. Without `parts` everything is public.
        parts: Which parts; all of them if none is named.
        scorer: The digest of the scorer, if it is known.

    Returns:
        A scorecard per part, with its pseudo-values, and in its provenance under "scored" the digests of run, truth
        and scorer, from which a receipt is made.

    Raises:
        InputError: When the run or the truth is at fault.
    """
    benchmark = BENCHMARKS[name]
    refuse_unhosted(name)
    truth, labels, table, _ = read_truth(name, files)
    predictions, labels = read_run(benchmark.task, run, truth.items, labels, closed="classes" in files)
    of_units = read_parts(files["parts"], truth.units) if "parts" in files else dict.fromkeys(truth.units, PUBLIC)
    scored = _scored(run, files, scorer or scorer_digest())
    cards = {}
    for part in parts or sorted(set(of_units.values()), reverse=True):
        true = _part(truth, of_units, part)
        card = score_predictions(benchmark, predictions, true, labels=labels, split=part, classes=table)
        cards[part] = replace(card, provenance={**card.provenance, "scored": scored})
    return cards


def refuse_unhosted(name: str) -> None:
    """Refuses a benchmark whose runs are more than one file."""
    run = BENCHMARKS[name].task.run
    if not run.hosted:
        raise MisuseError(f"{name} is about {run.holds}, which come in folders; a challenge takes runs in one file.")


def read_truth(name: str, files: Mapping[str, Path]) -> LooseTruth:
    """The truth of a challenge, the labels there are, and what is known about them."""
    return given_truth.read_truth(BENCHMARKS[name].task, files["truth"], files.get("classes"), files.get("media"))


def read_parts(path: Path, units: Iterable[str]) -> dict[str, str]:
    """The part of each unit.

    Raises:
        InputError: When a unit is missing or strange, or a part is neither public nor private.
    """
    with path.open("rb") as file:
        table = read_csv(file, path, required=("unit", "part"))
    wanted = set(units)
    part_of: dict[str, str] = {}
    for line, (unit, part) in enumerate(table.select("unit", "part").iter_rows(), 2):
        if unit not in wanted or unit in part_of:
            what = f"the unit {unit!r} again" if unit in part_of else f"the unit {unit!r}"
            raise InputError(path, line=line, found=what, expected="each unit of the truth once")
        if part not in (PUBLIC, PRIVATE):
            raise InputError(path, line=line, found=f"the part {part!r}", expected=f"{PUBLIC} or {PRIVATE}")
        part_of[unit] = part
    if missing := wanted - set(part_of):
        listed = f"no line for {len(missing)} of {len(wanted)} units ({min(missing)}, ...)"
        raise InputError(path, found=listed, expected="each unit of the truth once")
    return part_of


def draw_parts(units: Sequence[str], *, public: float, seed: int) -> pl.DataFrame:
    """Draws the public part among the units, the same for the same seed and units in any order.

    Args:
        units: The unit of each item.
        public: The share of the units that are public.
        seed: Decides which.

    Raises:
        MisuseError: When a part would be left with fewer than two units, which give no interval.

    >>> draw_parts(["a", "b", "b", "c", "d"], public=0.5, seed=0)["part"].value_counts().sort("part").rows()
    [('private', 2), ('public', 2)]
    """
    names = np.array(sorted(set(units)))
    n_public = round(public * len(names))
    if not FEWEST_UNITS <= n_public <= len(names) - FEWEST_UNITS:
        raise MisuseError(
            f"A public share of {public:g} leaves {n_public} of {len(names)} independent units public; "
            f"both parts need at least {FEWEST_UNITS}."
        )
    chosen = np.random.default_rng(seed).permutation(len(names)) < n_public
    return pl.DataFrame({"unit": names, "part": np.where(chosen, PUBLIC, PRIVATE)})


def _scored(run: Path, files: Mapping[str, Path], scorer: str) -> dict[str, Any]:
    """What a receipt says about the bytes that were scored."""
    return {
        "run": {"name": run.name, "sha256": sha256_of(run)},
        "truth": {what: {"name": path.name, "sha256": sha256_of(path)} for what, path in sorted(files.items())},
        "scorer": {"version": __version__, "sha256": scorer},
    }


def _part(truth: Truth, of_units: Mapping[str, str], part: str) -> Truth:
    rows = np.array([of_units[unit] == part for unit in truth.units], dtype=bool)
    if not rows.any():
        raise MisuseError(f"The truth has no part called {part!r}.")
    return truth.take(rows)
