"""The suite `photos` beside the sum of its single fits, killed and resumed twice, and merged (real photos).

The suite runs as the command does, in one process. It is killed (SIGKILL) twice when some results are there, goes on,
and its processor time is the sum of all three processes; another run, without a kill, has its cells in two folders,
which are merged: the one with features of its own, the other with those of the first run. Both must hold the same
scores to the last digit. Which engine is quickest is measured once, as on any machine.

A single fit is `fieldmark fit` without stored features. Of the heads of
each set and backbone one is fitted by itself, drawn so that all heads have equal turns, and counts for all of them: the
sum of single fits is an estimate. FIELDMARK_STUDY_CELLS names the cells, and single fits are kept for the next call.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fieldmark.suites.catalog import suite_named
from fieldmark.suites.results import merge_results, read_results
from fieldmark.suites.suite_runs import SuiteModel, models_of
from studies.evidence.grids import kept_data
from studies.evidence.results import real_data
from studies.evidence.suites import AS_GIVEN, lay_out

COMMAND = (sys.executable, "-c", "from fieldmark.cli.main import main; main()")
CELLS = [name for name in os.environ.get("FIELDMARK_STUDY_CELLS", "").split(",") if name]
# The suite is killed when such shares of the results are there: while features are made, and among the heads.
KILLS = (0.04, 0.4)


class Spent(NamedTuple):
    """Seconds of processors and of the clock."""

    cpu_s: float
    wall_s: float


def run() -> dict[str, Any] | None:
    """Seconds of the suite and of its single fits, and whether the scores agree."""
    if any(real_data(name) is None for name in AS_GIVEN):
        return None
    suite = suite_named("photos")
    models = models_of(suite)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        lay_out(root / "data")
        there = [cell for cell in suite.cells if (root / "data" / cell.release).exists()]
        cells = [cell for cell in there if not CELLS or cell.name in CELLS]
        names = [cell.name for cell in cells]
        kills = [max(1, round(share * len(cells) * len(models))) for share in KILLS]
        spent = [_suite(root, "killed", names, until) for until in kills] + [_suite(root, "killed", names)]
        _suite(root, "part-0", names[::2], store="killed")
        engines = root / "store of killed" / "engines"
        if engines.exists():
            shutil.copytree(engines, root / "store of part-1" / "engines")
        _suite(root, "part-1", names[1::2])
        merge_results(root / "merged", [root / "part-0", root / "part-1"])
        killed, merged = (
            {one.file: one.scored for one in read_results([root / name])} for name in ("killed", "merged")
        )
        shown = _one_of_each_backbone(models, len(cells))
        tasks = {
            f"{cell.name} {one.name}": (root / "data" / cell.release, one, engines)
            for cell, row in zip(cells, shown, strict=True)
            for one in row
        }
        single = kept_data("single-fits", tasks, _single)
    heads = len(models) // len(shown[0])
    cpu_s, wall_s = (sum(one[at] for one in spent) for at in (0, 1))
    single_cpu_s, single_wall_s = (heads * sum(one[key] for one in single.values()) for key in Spent._fields)
    return {
        "cells": names,
        "models": len(models),
        "results": len(killed),
        "kills": len(KILLS),
        "same_scores": len(killed) == len(cells) * len(models) and killed == merged,
        "suite_cpu_s": round(cpu_s, 1),
        "suite_wall_s": round(wall_s, 1),
        "single_fits_run": len(single),
        "single_fits_cpu_s": round(single_cpu_s, 1),
        "single_fits_wall_s": round(single_wall_s, 1),
        "times_less": round(single_cpu_s / cpu_s, 2),
        "single": single,
    }


def _one_of_each_backbone(models: Sequence[SuiteModel], cells: int) -> list[list[SuiteModel]]:
    """For each cell one model of every backbone, so that each head has its turn (a Latin rectangle in drawn order)."""
    by_backbone: dict[str, list[SuiteModel]] = {}
    for one in models:
        by_backbone.setdefault(str(one.settings["backbone"]), []).append(one)
    generator = np.random.default_rng(0)
    heads = len(next(iter(by_backbone.values())))
    turns, first = generator.permutation(heads), generator.permutation(max(cells, heads))[:cells]
    return [
        [own[turns[(at + number) % heads]] for number, own in enumerate(by_backbone.values())] for at in first.tolist()
    ]


def _suite(root: Path, out: str, cells: Sequence[str], until: int | None = None, *, store: str = "") -> Spent:
    """Runs the suite, until so many results are there where a number is given, with features of its own or a store."""
    only = [word for name in cells for word in ("--only", name)]
    place = {"FIELDMARK_CACHE": str(root / f"store of {store or out}")}
    words = ["suite", "run", "photos", "--data", str(root / "data"), "--out", str(root / out), *only]
    started = time.monotonic()
    process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.DEVNULL, env={**os.environ, **place})
    while until is not None and not _has_ended(process) and len(list((root / out).glob("*/*.json"))) < until:
        time.sleep(0.05)
    if until is not None:
        process.kill()
    return _spent(process, started, may_fail=until is not None)


def _single(task: tuple[Path, SuiteModel, Path]) -> dict[str, Any]:
    """Seconds of one fit without stored features."""
    data, model, engines = task
    settings = [word for key, value in model.settings.items() for word in ("--set", f"{key}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        if engines.exists():
            shutil.copytree(engines, Path(folder, "store", "engines"))
        words = ["fit", "folder", "--data", str(data), "--method", model.method, *settings, "--out", f"{folder}/run"]
        started = time.monotonic()
        process = subprocess.Popen(
            [*COMMAND, *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "FIELDMARK_CACHE": f"{folder}/store"},
        )
        spent = _spent(process, started)
    return {key: round(value, 3) for key, value in spent._asdict().items()}


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it ended by itself; what it used can still be asked for."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _spent(process: subprocess.Popen[bytes], started: float, *, may_fail: bool = False) -> Spent:
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and not may_fail:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return Spent(used.ru_utime + used.ru_stime, time.monotonic() - started)
