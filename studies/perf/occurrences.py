"""A Darwin Core Archive of a million records: opened in full, beside python-dwca-reader and beside polars alone."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from dwca.read import DwCAReader

import fieldmark
from fieldmark.exporting.darwin_core import DC, DWC
from fieldmark.releases.occurrences.darwin_core import TEXT_NAMESPACE
from studies.perf.timing import fastest

ROWS, SPECIES = 1_000_000, 5_000
TERMS = (
    *(f"{DWC}{name}" for name in ("basisOfRecord", "eventDate", "scientificName", "taxonRank", "family", "genus")),
    *(f"{DWC}{name}" for name in ("decimalLatitude", "decimalLongitude", "coordinateUncertaintyInMeters")),
    *(f"{DWC}{name}" for name in ("countryCode", "recordedBy")),
    f"{DC}license",
)
# Columns that nobody asks for, as in every real download.
FURTHER = 20
# The peak is read from the kernel: what `getrusage` says of a new process begins with the peak of its parent.
MEMORY = """import sys
from pathlib import Path
import fieldmark
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
before = peak()
dataset = fieldmark.dataset("occurrences", sys.argv[1])
print((peak() - before) / 1024)
"""


def run() -> dict[str, Any]:
    """Seconds of ten that opening takes, ratios to others on the same archive, and the memory that it adds."""
    with tempfile.TemporaryDirectory() as name:
        archive, table = make_archive(Path(name))

        def theirs() -> None:
            with DwCAReader(str(archive)) as opened:
                for _ in opened.iter_terms(list(TERMS)):
                    pass

        jobs: dict[str, Callable[[], object]] = {
            "ours": lambda: fieldmark.dataset("occurrences", archive),
            "theirs": theirs,
            "polars": lambda: pl.read_csv(table, separator="\t", quote_char=None, infer_schema=False),
        }
        times, cpu = fastest(jobs, rounds=3), fastest(jobs, rounds=2, clock=time.process_time)
        peak = subprocess.run([sys.executable, "-c", MEMORY, archive], capture_output=True, text=True, check=True)
        megabytes = table.stat().st_size / 2**20
    return {
        "rows": ROWS,
        "table_mb": round(megabytes),
        "seconds_of_10_allowed": round(times["ours"], 2),
        "python_dwca_reader_iterating_over_ours": round(times["theirs"] / times["ours"], 2),
        "cpu_of_python_dwca_reader_iterating_over_ours": round(cpu["theirs"] / cpu["ours"], 2),
        "ours_over_polars_reading_the_unpacked_text": round(times["ours"] / times["polars"], 2),
        "peak_mb_added": round(float(peak.stdout)),
    }


def make_archive(folder: Path, rows: int = ROWS) -> tuple[Path, Path]:
    """An archive of so many records, and its table beside it, unpacked."""
    rng = np.random.default_rng(0)
    species = rng.integers(0, SPECIES, rows)
    number = pl.Series("species", species)
    days = pl.Series(rng.integers(0, 7_000, rows))
    frame = pl.DataFrame({"species": number, "day": days}).select(
        id=pl.int_range(pl.len()).cast(pl.String),
        basisOfRecord=pl.lit("HumanObservation"),
        eventDate=(pl.lit("2002-01-01").str.to_date() + pl.duration(days="day")).dt.strftime("%Y-%m-%d"),
        scientificName=pl.lit(""),
        taxonRank=pl.lit("SPECIES"),
        family=pl.format("Family{}", pl.col("species") // 50),
        genus=pl.format("Genus{}", pl.col("species") // 5),
    )
    names = [_letters(one) for one in range(SPECIES)]
    scientific = pl.Series([f"{names[one // 5].capitalize()} {names[one]} Author" for one in range(SPECIES)])
    frame = frame.with_columns(
        scientificName=scientific.gather(number),
        decimalLatitude=pl.Series(rng.uniform(-60, 60, rows).round(5)).cast(pl.String),
        decimalLongitude=pl.Series(rng.uniform(-179, 179, rows).round(5)).cast(pl.String),
        coordinateUncertaintyInMeters=pl.lit("25"),
        countryCode=pl.lit("DK"),
        recordedBy=pl.format("observer {}", pl.int_range(pl.len()) % 1_000),
        license=pl.lit("CC_BY_4_0"),
        **{f"further{place}": pl.lit(f"something else {place}") for place in range(FURTHER)},
    )
    table = folder / "occurrence.txt"
    frame.write_csv(table, separator="\t", quote_style="never")
    fields = "".join(f'<field index="{place}" term="{term}"/>' for place, term in enumerate(TERMS, 1))
    meta = (
        f'<archive xmlns="{TEXT_NAMESPACE}"><core encoding="UTF-8" fieldsTerminatedBy="\\t" fieldsEnclosedBy="" '
        f'linesTerminatedBy="\\n" ignoreHeaderLines="1" rowType="{DWC}Occurrence">'
        '<files><location>occurrence.txt</location></files><id index="0"/>'
        f"{fields}</core></archive>"
    )
    archive = folder / "archive.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.write(table, "occurrence.txt")
        file.writestr("meta.xml", meta)
    return archive, table


def _letters(number: int) -> str:
    """A word of letters alone for each number, as names of species are."""
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:05d}")
