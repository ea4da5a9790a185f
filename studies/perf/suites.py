"""A part of the suite `photos` beside the sum of its single fits, killed and resumed twice, and merged (real photos).

The suite runs as the command does, in one process. It is killed (SIGKILL) twice when some results are there, goes on,
and its processor time is the sum of all three processes; another run, without a kill, has its cells in two folders,
which are merged. Both must hold the same scores to the last digit. A single fit is `fieldmark fit` with an empty store
of features. Which cells are run is said by FIELDMARK_STUDY_CELLS, and what is finished is kept for the next call.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fieldmark.suites.catalog import suite_named
from fieldmark.suites.results import merge_results, read_results
from fieldmark.suites.suite_runs import SuiteModel, models_of
from studies.evidence.grids import kept_data
from studies.evidence.results import real_data
from studies.evidence.suites import AS_GIVEN, lay_out

COMMAND = (sys.executable, "-c", "from fieldmark.cli.main import main; main()")
CELLS = os.environ.get("FIELDMARK_STUDY_CELLS", "amanita,butterflies,fungi-genera").split(",")
# The suite is killed when so many results are there: while features are made, and among the heads.
KILLS = (2, 14)


def run() -> dict[str, Any] | None:
    """Processor seconds of the suite and of its single fits, and whether the scores agree."""
    if any(real_data(name) is None for name in AS_GIVEN):
        return None
    suite = suite_named("photos")
    cells, models = [cell for cell in suite.cells if cell.name in CELLS], models_of(suite)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lay_out(root / "data")
        killed = [_suite(root, "killed", CELLS, until) for until in KILLS]
        suite_s = sum(killed) + _suite(root, "killed", CELLS)
        for number, part in enumerate((CELLS[::2], CELLS[1::2])):
            _suite(root, f"part-{number}", part)
        merge_results(root / "merged", [root / "part-0", root / "part-1"])
        digests = [
            {one.file: one.data["digest"] for one in read_results([root / name])} for name in ("killed", "merged")
        ]
        tasks = {f"{cell.name} {one.name}": (root / "data" / cell.release, one) for cell in cells for one in models}
        single = kept_data("single-fits", tasks, _single)
    single_s = sum(one["cpu_s"] for one in single.values())
    return {
        "cells": [cell.name for cell in cells],
        "models": len(models),
        "kills": len(KILLS),
        "same_scores": len(digests[0]) == len(tasks) and digests[0] == digests[1],
        "suite_cpu_s": round(suite_s, 1),
        "single_fits_cpu_s": round(single_s, 1),
        "times_less": round(single_s / suite_s, 2),
    }


def _suite(root: Path, out: str, cells: Sequence[str], until: int | None = None) -> float:
    """Runs the suite, until so many results are there where a number is given; returns seconds of processors."""
    only = [word for name in cells for word in ("--only", name)]
    store = {"FIELDMARK_CACHE": str(root / f"store of {out}")}
    words = ["suite", "run", "photos", "--data", str(root / "data"), "--out", str(root / out), *only]
    process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.DEVNULL, env={**os.environ, **store})
    while until is not None and len(list((root / out).glob("*/*.json"))) < until:
        time.sleep(0.05)
    if until is not None:
        process.kill()
    return _processor_seconds(process, may_fail=until is not None)


def _single(task: tuple[Path, SuiteModel]) -> dict[str, Any]:
    """Seconds of processors of one fit with an empty store."""
    data, model = task
    settings = [word for key, value in model.settings.items() for word in ("--set", f"{key}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        words = ["fit", "folder", "--data", str(data), "--method", model.method, *settings, "--out", f"{folder}/run"]
        process = subprocess.Popen(
            [*COMMAND, *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "FIELDMARK_CACHE": f"{folder}/store"},
        )
        return {"cpu_s": round(_processor_seconds(process), 3)}


def _processor_seconds(process: subprocess.Popen[bytes], *, may_fail: bool = False) -> float:
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and not may_fail:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return used.ru_utime + used.ru_stime
