"""Whatever is handed in: a run that the scorer reads, or a list of problems, and never anything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.challenge.creating import write_sample
from fieldmark.challenge.uploads import Checklist, RunRefusedError, Upload, check_run
from fieldmark.labels import Labels

# One benchmark for each format of runs.
FORMATS = ("folder", "fungitastic/open", "plantclef-2020", "snakeclef-2020", "birdclef-2020", "geolifeclef-2020")
PIECES = (
    b"\0",
    b'"',
    b"'",
    b",",
    b";",
    b"\n",
    b"\r",
    b"\xff",
    b"\xef\xbb\xbf",
    b"nan",
    b"-1",
    b"1e999",
    b"0x1p3",
    b" ",
)


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with a few pieces put in, taken out, doubled or exchanged."""
    for _ in range(int(rng.integers(1, 4))):
        at, length = int(rng.integers(len(content) + 1)), int(rng.integers(1, 40))
        piece = PIECES[int(rng.integers(len(PIECES)))]
        content = (
            content[:at] + piece + content[at:],
            content[:at] + content[at + length :],
            content[:at] + content[at : at + length] + content[at:],
            content[:at] + piece + content[at + length :],
        )[int(rng.integers(4))]
    return content


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_runs_are_read_or_refused_with_their_lines(name, tmp_path):
    task = BENCHMARKS[name].task
    items = tuple(f"rec{n}/{5 * n}" if task.item == "segment" else f"x{n}" for n in range(12))
    labels = Labels(tuple(f"label{number}" for number in range(35)))
    write_sample(tmp_path / "sample.csv", task, items, labels)
    sample = (tmp_path / "sample.csv").read_bytes()
    wanted = Checklist(name, items, labels, closed=True)
    rng = np.random.default_rng(20)
    refused = 0
    for _ in range(150):
        content = mutated(sample, rng)
        path = Path(tmp_path / "run")
        path.write_bytes(content)
        try:
            check_run(wanted, Upload(path, "run", len(content), ""), limit_mb=1)
        except RunRefusedError as error:
            refused += 1
            assert error.problems and error.total >= len(error.problems)
            assert all(str(tmp_path) not in problem["text"] for problem in error.problems)
    assert 30 < refused <= 150
