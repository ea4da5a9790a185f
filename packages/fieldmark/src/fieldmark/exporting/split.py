"""The parts of a benchmark as a file, whether they were released or drawn."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.releases.identical import observations_together
from fieldmark.splits import PARTS, cut
from fieldmark.splits.division import UNUSED
from fieldmark.splits.files import NAMED_BY, VAL_IS_DRAWN, Split
from fieldmark.views.open_benchmark import open_release, suited


def export_split(benchmark: str, data: str | Path, out: Path, *, seed: int = 0) -> Split:
    """Writes the parts that `fieldmark fit` would use as a split file (`splits.files`).

    A fit with that file gives the same model as a fit without it: whether val was drawn, and may be learned from in the
    end, stands in the JSON file beside it.

    Args:
        benchmark: The name of the benchmark.
        data: The root of the release.
        out: The CSV file to write.
        seed: The seed of parts that are drawn.

    Raises:
        MisuseError: When a row is in two parts at once, which a split file cannot say.
    """
    named = BENCHMARKS[benchmark]
    dataset = open_release(named, data)
    declared = suited(named, dataset)
    rows = declared.task.items.rows(dataset)
    parts = cut(declared.split, rows, seed=seed, together=partial(observations_together, dataset))
    ids = rows[next(name for name in NAMED_BY if name in rows.columns)]
    part = pl.Series("part", [UNUSED] * len(rows))
    for name in PARTS:
        members = parts.members[name].fill_null(False)
        twice = members & (part != UNUSED)
        if twice.any():
            one = ids.filter(twice)[0]
            raise MisuseError(f"{one!r} is in two parts of {declared.name}: a split file gives each row one part.")
        part = pl.select(pl.when(members).then(pl.lit(name)).otherwise(part).alias("part")).to_series()
    about = {
        "rule": f"the split of {declared.name}, version {declared.version}",
        "benchmark": declared.name,
        "seed": seed,
        VAL_IS_DRAWN: parts.val_is_drawn,
        "data_digest": dataset.digest,
    }
    split = Split(pl.DataFrame({"id": ids, "part": part}), about, str(out))
    split.write(out)
    return split
