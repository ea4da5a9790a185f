"""Methods on features at the size of FungiTastic, in time and memory: generated features of 1,280, 2,829 labels.

Each method fits the 433,701 items of train and answers test, in a process of its own on one thread per library, with
features in files, as they lie from 1 GiB on; and does the same with a quarter of train. `linear` takes one step of
L-BFGS, `knn` and `openset` (all scores, around class means) answer a part of test: what a step and an answer take does
not depend on how many there are. Memory is the peak of what the process holds itself (`RssAnon`), of 8 GiB allowed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from typing import Any

from fieldmark.methods import METHODS
from fieldmark.work.large_arrays import MEMORY_SETTING
from studies.perf.growth import OwnMemory, status_mib
from studies.perf.method_memory import Sizes, drawn_view

FULL = Sizes(train=433_701, val=8_966, test=91_832, features=1280, species=2829)
QUARTER = replace(FULL, train=FULL.train // 4)
ALLOWED_GIB = 8
ANSWERED = {"knn": 2048, "openset": 2048}
METHOD_SETTINGS: dict[str, dict[str, Any]] = {
    "lda": {"shrinkage": 0.1},
    "prototypes": {"shrinkage": 0.1, "borrow": 1.0},
    "knn": {},
    "openset": {"score": "all", "classifier": "centroid"},
    "linear": {"l2": 0.1, "iterations": 1},
}


def run() -> dict[str, Any]:
    """Seconds of fitting and answering and the peak of memory of each method, with all of train and a quarter."""
    methods = {}
    for name in METHOD_SETTINGS:
        methods[name] = {"settings": METHOD_SETTINGS[name], **measured(name)}
        print(name, json.dumps(methods[name]), flush=True)
    about = {"train": FULL.train, "features": FULL.features, "labels": FULL.species, "allowed_gib": ALLOWED_GIB}
    return {**about, "methods": methods}


def measured(name: str) -> dict[str, Any]:
    """One method at both sizes."""
    full, quarter = (_in_process(name, part) for part in ("full", "quarter"))
    return {**full, "quarter": quarter, "fits": full["peak_gib"] <= ALLOWED_GIB}


def _in_process(name: str, part: str) -> dict[str, Any]:
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "POLARS_MAX")}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **threads, MEMORY_SETTING: "256", "FIELDMARK_CACHE": folder}
        command = [sys.executable, "-m", "studies.perf.real_sizes", name, part]
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name}, {part}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """One method in this process: `python -m studies.perf.real_sizes METHOD full|quarter`."""
    name, part = sys.argv[1:]
    sizes = FULL if part == "full" else QUARTER
    sizes = replace(sizes, test=ANSWERED.get(name, sizes.test))
    if name in ANSWERED:
        sizes = replace(sizes, val=ANSWERED[name])
    view = drawn_view(name, sizes)
    method = METHODS[name](**METHOD_SETTINGS[name])
    before, own, begun = status_mib("RssAnon"), OwnMemory(), time.process_time()
    with own:
        fitted = method.fit(view)
        learned = time.process_time()
        assert view.test is not None  # drawn above
        predictions = fitted.predict(view.test, view.labels)
    answered = time.process_time()
    print(
        json.dumps(
            {
                "fit_cpu_s": round(learned - begun, 1),
                "answer_cpu_ms_each": round(1000 * (answered - learned) / len(predictions.items), 3),
                "answered": len(predictions.items),
                "peak_gib": round(own.peak_mib / 1024, 2),
                "before_gib": round(before / 1024, 2),
            }
        )
    )


if __name__ == "__main__":
    main()
