"""A folder of 25,000 and of 100,000 photos from the shell: features extracted, fitted, near-duplicates, report.

Each command runs in a process of its own, on one thread per library; seconds are those of processors. Features are
those of EfficientNet-Lite0 at 96 px: what 224 px take more for each photo is measured by `extraction_cpu`. `linear` is
fitted with one strength. The photos are parts of real photos that do not overlap, enlarged to 192 px, with texture and
grain of their own, sorted by what the real photo shows; one in a hundred is a copy of the one before it, compressed
anew.

Growth is log4 of the seconds at the larger size over those at the smaller one, without what a command costs anyhow.
"""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studies.evidence.results import real_data
from studies.perf.camera_photos import SENSOR_NOISE, TEXTURE

SOURCES = ("birds_cub_odd", "fungi_amanita", "fungi_genera", "plants_sheets_and_field", "snakes_philippines")
# Folders that say in which part a photo is, or how it was taken.
NO_CLASSES = ("train", "val", "test", "specimens", "herbarium", "photo")
SIZES, SIDE_PX, COPIES = (25_000, 100_000), 192, 100
SIZE_PX, L2 = 96, 0.03
STAGES = ("fit centroid, photos new", "fit linear, features stored", "check --near-duplicates", "report")
FOUND_COPIES = 1  # what `check` ends with
FEW = 1000  # what a command costs anyhow is measured on so many
QUALITY, COPY_QUALITY = 85, 60
COMMAND = "from fieldmark.cli.main import main; main()"
TELL = (
    "import atexit, os, pathlib, resource; atexit.register(lambda: pathlib.Path(os.environ['TOLD']).write_text("
    "pathlib.Path('/proc/self/status').read_text())); "
)


def run(sizes: Sequence[int] = (FEW, *SIZES)) -> dict[str, Any] | None:
    """Seconds and memory of each command at each size, and how they grow; None without real photos."""
    roots = [root for root in map(real_data, SOURCES) if root]
    if len(roots) < len(SOURCES):
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = {}
        for photos in sizes:
            write_tiles(folder / f"photos-{photos}", roots, photos)
            measured[photos] = commands(folder, photos)
            print(photos, json.dumps(measured[photos]), flush=True)
    return together(measured)


def together(measured: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """What was measured at some sizes, with the exponent between the two largest.

    >>> sizes = {1: {"fit": {"cpu_s": 10.0}}, 5: {"fit": {"cpu_s": 14.0}}, 17: {"fit": {"cpu_s": 26.0}}}
    >>> together(sizes)["stages"]["fit"]["time_exponent"]
    1.0
    """
    few, *larger = sorted(measured)
    stages: dict[str, dict[str, Any]] = {}
    for stage, least in measured[few].items():
        items = [photos - few for photos in larger]
        further = [measured[photos][stage]["cpu_s"] - least["cpu_s"] for photos in larger]
        grows = len(larger) > 1 and min(further) > 0
        growth = math.log(further[-1] / further[0]) / math.log(items[-1] / items[0]) if grows else None
        stages[stage] = {
            what: [measured[photos][stage].get(what) for photos in measured] for what in measured[few][stage]
        }
        stages[stage]["time_exponent"] = None if growth is None else round(growth, 2)
    return {"photos": list(measured), "side_px": SIDE_PX, "stages": stages}


def write_tiles(folder: Path, roots: Sequence[Path], number: int) -> None:
    """Photos of one folder per class, each of its own part of a real photo, and copies of one in a hundred."""
    rng = np.random.default_rng(number)
    before = b""
    for place, (label, tile) in enumerate(_tiles(roots, number)):
        if place >= number:
            return
        own = folder / label
        own.mkdir(parents=True, exist_ok=True)
        copied = place % COPIES == COPIES - 1
        picture = Image.open(io.BytesIO(before)) if copied else Image.fromarray(_enlarged(tile, rng))
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=COPY_QUALITY if copied else QUALITY)
        before = file.getvalue()
        (own / f"{place:06}.jpg").write_bytes(before)


def _tiles(roots: Sequence[Path], number: int) -> Iterator[tuple[str, Image.Image]]:
    """Parts of real photos that do not overlap, the photos in an order that does not tell their set."""
    photos = [(root, path) for root in roots for path in sorted(root.rglob("*.jpg"))]
    order = np.random.default_rng(0).permutation(len(photos)).tolist()
    across = math.ceil(math.sqrt(number / len(photos)))
    for root, path in (photos[one] for one in order):
        label = next(part for part in path.relative_to(root).parts if part not in NO_CLASSES)
        with Image.open(path) as photo:
            picture = photo.convert("RGB")
        wide, high = picture.width // across, picture.height // across
        for cell in range(across**2):
            left, top = cell % across * wide, cell // across * high
            yield f"{root.name} {label}", picture.crop((left, top, left + wide, top + high))


def _enlarged(tile: Image.Image, rng: np.random.Generator) -> NDArray[np.uint8]:
    """A tile in full size, with texture and grain of its own: photos that share theirs pass for copies in part."""
    pixels = np.asarray(tile.resize((SIDE_PX, SIDE_PX), Image.Resampling.BICUBIC), dtype=np.float32)
    coarse = Image.fromarray(rng.standard_normal((SIDE_PX // 4,) * 2, dtype=np.float32))
    texture = np.asarray(coarse.resize((SIDE_PX, SIDE_PX), Image.Resampling.BICUBIC))
    grain = rng.standard_normal((SIDE_PX, SIDE_PX), dtype=np.float32)
    own = TEXTURE * texture + SENSOR_NOISE * grain
    return np.asarray((pixels + own[:, :, None]).clip(0, 255).astype(np.uint8))


def commands(folder: Path, photos: int, stages: Sequence[str] = STAGES) -> dict[str, dict[str, float]]:
    """What each command takes on a folder of photos, in the order in which a person would give them."""
    root, out = folder / f"photos-{photos}", folder / f"run-{photos}"
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "FIELDMARK_CACHE": str(folder / f"cache-{photos}")}
    environment |= {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    fit = ["fit", "folder", "--data", str(root), "--set", f"size={SIZE_PX}", "--out", str(out), "--overwrite"]

    def spent(*arguments: str) -> dict[str, float]:
        told = folder / "told"
        start = time.perf_counter()
        command = [sys.executable, "-c", TELL + COMMAND, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**environment, "TOLD": str(told)})
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode > FOUND_COPIES:
            raise RuntimeError(f"{arguments} ended with {process.returncode}")
        peak = next(int(line.split()[1]) for line in told.read_text().splitlines() if line.startswith("VmHWM"))
        seconds = used.ru_utime + used.ru_stime
        return {
            "cpu_s": round(seconds, 2),
            "wall_s": round(time.perf_counter() - start, 2),
            "peak_mib": round(peak / 1024),
        }

    arguments = (
        (*fit, "--method", "centroid"),
        (*fit, "--method", "linear", "--set", f"l2={L2}"),
        ("check", "folder", str(root), "--near-duplicates"),
        ("report", str(out), "--out", str(folder / f"report-{photos}.html")),
    )
    kept: dict[str, dict[str, float]] = {}
    for stage, given in zip(STAGES, arguments, strict=True):
        if stage in stages:
            kept[stage] = spent(*given)
            print(photos, stage, kept[stage], flush=True)
    return kept
