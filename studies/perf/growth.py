"""How time and memory grow with the items: world, check, extraction, linear probe and score at 1, 4 and 16 times.

Each stage at each size runs in a process of its own, on one thread per library; seconds are those of its processors,
memory is the peak that the kernel has seen, or, where features lie in files, of what the process holds itself. What a
stage costs whatever its size (imports, weights) is no growth: with cost = fixed + factor * items ** exponent at three
sizes that are 4 times apart, the exponent is log4((last - middle) / (middle - first)), whatever the fixed part.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import fieldmark
from fieldmark.features.extraction import BLOCK_PHOTOS, extract
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.store import KEY_BYTES, FeatureStore
from fieldmark.models.supply.sources import load_backbone
from fieldmark.work.blocks import LocalExecutor, blocks_of
from fieldmark.work.large_arrays import MEMORY_SETTING
from studies.evidence.results import read_result, write_result
from studies.perf.jobs import JOBS
from studies.perf.machine import about_machine

MEASURED = ("cpu_s", "peak_mib", "peak_with_files_mib")
FACTORS, ROUNDS, MOST = (1, 4, 16), (3, 3, 2), 1.1
CLASSES, PHOTO_PX, FEATURES_PX = 20, 64, 64
# A peak that moves by less than this over 16 times the items does not grow.
FLAT_MIB = 16.0
# The same for seconds: less than the start of a process varies by.
FLAT_S = 0.2
# Features of more than so much lie in a file in the stages that are measured so.
IN_FILES_MIB, LOOK_EVERY_S = 2, 0.01


@dataclass(frozen=True)
class Stage:
    """One stage.

    Args:
        items: How many it is given at 1x.
        prepare: What is made for it beforehand.
        work: What is measured.
        in_files: Whether features lie in files, as those of very many photos do; then the memory that counts is what
            the process holds itself.
    """

    items: int
    prepare: Callable[[int, Path], None]
    work: Callable[[int, Path], None]
    in_files: bool = False


def make_world(items: int, folder: Path) -> None:
    """A world in the layout of a folder of photos; the nature is the same, only more of it is seen."""
    from fieldmark_worlds.layouts import folder as layout

    extent = layout.EXTENTS["tiny"]
    share = items / sum(extent.photos.values())
    photos = {split: round(most * share) for split, most in extent.photos.items()}
    layout.EXTENTS["tiny"] = replace(extent, photos=photos)
    layout.write(folder / "made", size="tiny", executor=LocalExecutor(1), overwrite=True)


def make_release(items: int, folder: Path) -> None:
    """Small photos of colored noise in train, val and test, one folder per class."""
    colors = np.random.default_rng(0).integers(40, 216, (CLASSES, 3))
    for number in range(items):
        label, part = number % CLASSES, ("train", "train", "train", "val", "test")[number // CLASSES % 5]
        place = folder / "release" / part / f"Genus species{chr(97 + label)}"
        place.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(number).integers(-90, 90, (PHOTO_PX, PHOTO_PX, 3))
        Image.fromarray((colors[label] + noise).clip(0, 255).astype(np.uint8)).save(place / f"{number:06}.jpg")


def make_listing(items: int, folder: Path) -> None:
    """As many files in the same folders, none of them the same, without photos worth opening."""
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG")
    for number in range(items):
        place = folder / "release" / ("train", "val", "test")[number % 3] / f"Genus species{chr(97 + number % CLASSES)}"
        if number < 3 * CLASSES:
            place.mkdir(parents=True, exist_ok=True)
        (place / f"{number:07}.jpg").write_bytes(file.getvalue() + f"{number:07}".encode())


def check_release(items: int, folder: Path, *options: str) -> None:
    """What `fieldmark check folder ROOT` does."""
    from fieldmark.cli.main import main

    run_quietly(main, ["check", "folder", str(folder / "release"), *options])


def run_quietly(main: Callable[[], None], arguments: list[str]) -> None:
    """Calls the command line in this process, without what it prints."""
    sys.argv = ["fieldmark", *arguments]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{arguments} ended with {end.code}") from end


def extract_release(items: int, folder: Path) -> None:
    """Features of all photos into a store that is empty."""
    dataset = fieldmark.dataset("folder", folder / "release")
    backbone = load_backbone(FeatureSettings(size=FEATURES_PX))
    with tempfile.TemporaryDirectory() as store:
        extract(
            list(dataset.media["media_id"]), dataset.read_medium, backbone, FeatureStore(Path(store), backbone.digest)
        )


def fit_linear(items: int, folder: Path) -> None:
    """A linear probe on features from the store: opened, fitted, val and test scored, the run written."""
    settings = {"size": FEATURES_PX}
    fieldmark.fit("folder", folder / "release", "linear", folder / "run", settings=settings, overwrite=True)


def release_with_features(items: int, folder: Path) -> None:
    """The release, and its features in the store; photos that another stage has made already are taken over."""
    made = folder.parent / f"{make_release.__name__}-{items}" / "release"
    if made.exists():
        shutil.copytree(made, folder / "release", copy_function=os.link)
    else:
        make_release(items, folder)
    fit_linear(items, folder)


def make_run(items: int, folder: Path) -> None:
    """A truth and a run of so many rows."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 500, items)
    answers = np.where(rng.random(items) < 0.7, truth, rng.integers(0, 500, items))
    unit = rng.integers(0, max(items // 2, 1), items)
    labels = [f"label {number}" for number in range(500)]
    rows = zip(truth.tolist(), unit.tolist(), strict=True)
    lines = [f"item{row},{labels[label]},unit{one}" for row, (label, one) in enumerate(rows)]
    (folder / "truth.csv").write_text("\n".join(["id,label,unit", *lines]) + "\n")
    lines = [f"item{row},{labels[label]}" for row, label in enumerate(answers.tolist())]
    (folder / "run.csv").write_text("\n".join(["id,predicted", *lines]) + "\n")
    (folder / "classes.csv").write_text("\n".join(["label", *labels]) + "\n")


def score_run(items: int, folder: Path) -> None:
    """What `fieldmark score` does with them."""
    from fieldmark.cli.main import main

    tables = ["--truth", str(folder / "truth.csv"), "--classes", str(folder / "classes.csv")]
    run_quietly(main, ["score", "folder", str(folder / "run.csv"), *tables])


def make_archive(items: int, folder: Path) -> None:
    """A Darwin Core Archive of so many records."""
    from studies.perf.occurrences import make_archive as write

    write(folder, items)


def open_archive(items: int, folder: Path) -> None:
    """All its tables, read and checked."""
    fieldmark.dataset("occurrences", folder / "archive.zip")


def make_store(items: int, folder: Path) -> None:
    """A store as one extraction leaves it, opened once before."""
    rng = np.random.default_rng(0)
    store = FeatureStore(folder / "store", "growth")
    with store.gathering():
        for block in blocks_of(range(items), BLOCK_PHOTOS):
            store.add_new([rng.bytes(KEY_BYTES) for _ in block], {"features": np.zeros((len(block), 8), np.float16)})
    open_store(items, folder)


def open_store(items: int, folder: Path) -> None:
    """Its index, as every extraction needs it first."""
    assert len(FeatureStore(folder / "store", "growth")) == items


def nothing(items: int, folder: Path) -> None:
    """There is nothing to prepare."""


STAGES = {
    "world": Stage(80, nothing, make_world),
    "check": Stage(32_000, make_listing, check_release),
    "check --media": Stage(3000, make_release, lambda items, folder: check_release(items, folder, "--media")),
    "check --near-duplicates": Stage(
        3000, make_release, lambda items, folder: check_release(items, folder, "--near-duplicates")
    ),
    "extract": Stage(1500, make_release, extract_release, in_files=True),
    "fit linear": Stage(1500, release_with_features, fit_linear, in_files=True),
    "score": Stage(150_000, make_run, score_run),
    "open an archive": Stage(120_000, make_archive, open_archive),
    "open the store": Stage(160_000, make_store, open_store),
}


def run(names: Sequence[str] = tuple(STAGES), keep: Callable[[dict[str, Any]], None] | None = None) -> dict[str, Any]:
    """Seconds, memory and exponents of each stage.

    Args:
        names: Which are measured; the others are taken from the last result.
        keep: Called with what is known after each stage.
    """
    before = (read_result("perf-growth") or {"stages": {}})["stages"] if set(names) != set(STAGES) else {}
    stages, failed = {name: before[name] for name in STAGES if name in before}, list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                rows = in_turns(name, Path(folder))
            except RuntimeError as error:  # the other stages are worth measuring all the same
                print(f"failed: {error}", flush=True)
                failed.append(name)
                continue
            stages[name] = _told(rows)
            print(name, stages[name], flush=True)
            if keep is not None:
                keep(_together(stages))
    return {**_together(stages), **({"failed": failed} if failed else {})}


def _together(measured_stages: dict[str, Any]) -> dict[str, Any]:
    stages = {name: measured_stages[name] for name in STAGES if name in measured_stages}
    highest = max(max(stage["time_exponent"], stage["memory_exponent"]) for stage in stages.values())
    return {"highest_exponent_allowed": MOST, "highest_exponent": highest, "rounds": ROUNDS, "stages": stages}


def _told(rows: list[dict[str, float]]) -> dict[str, Any]:
    seconds, peaks, with_files = ([row[what] for row in rows] for what in MEASURED)
    return {
        "items": [int(row["items"]) for row in rows],
        "cpu_s": [round(one, 2) for one in seconds],
        "peak_mib": [round(one) for one in peaks],
        "peak_with_files_mib": [round(one) for one in with_files],
        "time_exponent": exponent(seconds, least=FLAT_S),
        "memory_exponent": exponent(peaks, least=FLAT_MIB),
    }


def exponent(costs: list[float], least: float) -> float:
    """The exponent of growth over three sizes 4 times apart, 0 where the cost hardly changes.

    >>> exponent([5 + 3.0, 5 + 12.0, 5 + 48.0], least=0.0), exponent([100.0, 101.0, 103.0], least=16.0)
    (1.0, 0.0)
    """
    first, middle, last = costs
    if last - first <= least or last <= middle:
        return 0.0
    # Where the first step is lost in noise, the growth from the first size to the last is what is known.
    if middle - first <= 0:
        return round(math.log(last / first, 16), 2)
    return round(math.log((last - middle) / (middle - first), 4), 2)


def in_turns(name: str, root: Path) -> list[dict[str, float]]:
    """The least that a stage took at each size; sizes take turns, so that a slow minute meets them all."""
    rounds_of = {STAGES[name].items * factor: rounds for factor, rounds in zip(FACTORS, ROUNDS, strict=True)}
    told: dict[int, list[dict[str, float]]] = {items: [] for items in rounds_of}
    for turn in range(max(ROUNDS)):
        for items in (one for one, rounds in rounds_of.items() if turn < rounds):
            told[items].append(measured(name, items, root))
    return [
        {"items": items, **{what: min(one[what] for one in these) for what in MEASURED}}
        for items, these in told.items()
    ]


def measured(name: str, items: int, root: Path) -> dict[str, float]:
    """What a stage takes once, in a new process.

    Args:
        name: The stage.
        items: How many items it is given.
        root: Where things are prepared; stages that need the same find it there.
    """
    folder = root / f"{STAGES[name].prepare.__name__}-{items}"
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    environment = {**os.environ, **threads, "POLARS_MAX_THREADS": "1", "FIELDMARK_CACHE": f"{folder}/cache"}
    if STAGES[name].in_files:
        environment[MEMORY_SETTING] = str(IN_FILES_MIB)

    def process(what: str) -> str:
        command = [sys.executable, "-m", "studies.perf.growth", what, name, str(items), str(folder)]
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{name} at {items:,} items: {done.stderr}")
        return done.stdout

    if not folder.exists():
        folder.mkdir(parents=True)
        process("prepare")
    found: dict[str, float] = json.loads(process("work").splitlines()[-1])
    return found


class OwnMemory:
    """The peak of the memory that this process holds itself, looked at all the time.

    Pages of files that are mapped count for the kernel's own peak as long as nobody else needs their memory.
    """

    def __init__(self) -> None:
        self.peak_mib = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            self.peak_mib = max(self.peak_mib, status_mib("RssAnon"))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.peak_mib = max(self.peak_mib, status_mib("RssAnon"))


def status_mib(what: str) -> float:
    """What the kernel says about the memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) / 1024


def main() -> None:
    """One stage in this process: `python -m studies.perf.growth prepare|work STAGE ITEMS FOLDER`, or `again`."""
    if sys.argv[1] == "again":
        machine = about_machine(JOBS["growth"].packages)
        run(sys.argv[2:], keep=lambda result: print(write_result("perf-growth", {**machine, **result})))
        return
    what, name, items, folder = sys.argv[1:]
    stage = STAGES[name]
    if what == "prepare":
        stage.prepare(int(items), Path(folder))
        return
    own = OwnMemory()
    with own:
        stage.work(int(items), Path(folder))
    cpu_s = time.process_time()
    # What getrusage says begins with the peak of the parent process.
    peak_mib = own.peak_mib if stage.in_files else status_mib("VmHWM")
    print(json.dumps({"cpu_s": cpu_s, "peak_mib": peak_mib, "peak_with_files_mib": status_mib("VmHWM")}))


if __name__ == "__main__":
    main()
