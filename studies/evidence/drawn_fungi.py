"""Benchmarks like FungiTastic, drawn from real records by its rules, fitted and scored.

Mushroom Observer: one record for each name, date and observer; train up to 2018, val 2019, test 2020, five observations
make a species known. There are no photos, so that frequencies and the month are all that can answer, and these tell
nothing about unknown species: the open sets are drawn and checked, but not answered. Amanita: 108 specimens with
photos; train up to 25 July 2025, val up to 16 August, test after it. Three specimens make a species known here, since
the records are few. Features are those of EfficientNet-Lite0 at its defaults. The days of Amanita were chosen among
three pairs by the sizes of the parts, before anything was fitted; nothing was changed afterwards.
"""

from __future__ import annotations

import datetime
import lzma
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

import fieldmark
from fieldmark.exporting.fungitastic import draw_fungitastic
from fieldmark.releases.checks import CHECKS
from fieldmark.splits.by_date import DateCut
from fieldmark.storage.release import Release
from studies.evidence.results import real_data, rounded

CLOSED, OPEN, FEW_SHOT = "fungitastic/closed", "fungitastic/open", "fungitastic-fewshot"
STREAM = DateCut(datetime.date(2019, 1, 1), datetime.date(2020, 1, 1), datetime.date(2020, 12, 31))
AMANITA = DateCut(datetime.date(2025, 7, 26), datetime.date(2025, 8, 17), None, few=3)
# Benchmark, method and steps (None for the usual ones).
STREAM_FITS: tuple[tuple[str, str, tuple[str, ...] | None], ...] = (
    (CLOSED, "frequent", None),
    (CLOSED, "frequent", ("month-prior",)),
    (FEW_SHOT, "frequent", None),
)
AMANITA_FITS: tuple[tuple[str, str, tuple[str, ...] | None], ...] = tuple(
    (benchmark, method, None) for benchmark in (CLOSED, OPEN, FEW_SHOT) for method in ("frequent", "centroid", "linear")
)


def run() -> dict[str, Any] | None:
    """What was drawn, what the check says, and the scores of each fit."""
    stream, amanita = real_data("mushroom_observer_stream"), real_data("fungi_amanita")
    if stream is None or amanita is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        finds = Path(folder, "finds.csv")
        write_finds(stream, finds)
        drawn = {
            "Mushroom Observer": _drawn(finds, STREAM, STREAM_FITS, Path(folder, "stream")),
            "Amanita": _drawn(amanita / "images_with_metadata.csv", AMANITA, AMANITA_FITS, Path(folder, "amanita")),
        }
    return {"simulated": False, "about": " ".join(str(__doc__).split("\n\n", 1)[1].split()), "drawn": drawn}


def write_finds(folder: Path, out: Path) -> None:
    """The stream as a table of occurrences, each name, date and observer once."""
    rows = pl.read_csv(lzma.decompress((folder / "stream.csv.xz").read_bytes()), infer_schema=False)
    rows = rows.with_columns(pl.col("image").cast(pl.Int64)).sort("image")
    rows = rows.unique(["name", "created", "observer"], keep="first", maintain_order=True)
    rows.select(id="image", species="name", date="created").write_csv(out)


def _drawn(
    records: Path, cut: DateCut, fits: tuple[tuple[str, str, tuple[str, ...] | None], ...], folder: Path
) -> dict[str, Any]:
    root = folder / "benchmark"
    drawn = draw_fungitastic(records, root, cut)
    scores = []
    for number, (benchmark, method, steps) in enumerate(fits):
        fitted = fieldmark.fit(benchmark, root, method, folder / f"run-{number}", steps=steps, store=folder / "store")
        name = " and ".join((method, *(steps or ())))
        scores.append({"benchmark": benchmark, "method": name, "scores": rounded(fitted.scorecards["test"])})
    told = {"rules": cut.to_data(), "counts": drawn.counts, "species": drawn.species, "left_out": drawn.left_out}
    return {**told, "sound": CHECKS["fungitastic"](Release(root)).sound, "fits": scores}
