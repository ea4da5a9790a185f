"""The country prior against none on five worlds of snakes (simulated), and what boxes are worth there.

Each world has 36 species on four continents, 400 photos to learn from, 120 to choose on and 260 to test; a fifth of
them has no place. All runs are `linear` on features of a frozen EfficientNet-Lite0 at 96 px with a temperature after
it; with a prior another temperature follows. They differ in the prior: none, counts of train, counts that do not back
off to the continent, or the table of presence of the world, which has gaps. `boxes` is the first with the known box of
each snake cut out. Differences are over the five worlds, with a t interval. On 40 test photos of the first world the
finders are held against the known boxes: the mean overlap (intersection over union) of the tight box, 0 where none was
found, beside that of the whole photo.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

import fieldmark
from fieldmark.features.finders import make_finder
from fieldmark.releases import open_dataset
from fieldmark_worlds.layouts.snakeclef import PHOTO_SIZE_PX, SnakeExtent, write_extent
from fieldmark_worlds.snakes.snake_nature import SnakeSettings

EXTENT = SnakeExtent(SnakeSettings(36, 13, continents=4, countries=8), (400, 120, 260))
SEEDS = (0, 1, 2, 3, 4)
SETTINGS = {"size": 96}
METRICS = ("macro_f1_union", "log_loss", "top_1", "venom_cost")
PLAIN = "no prior"
LOOKED_AT = 40


def run() -> dict[str, Any]:
    """Every variant on every world; worlds that are done are not repeated."""
    scratch = Path(os.environ.get("FIELDMARK_SCRATCH") or Path(tempfile.gettempdir(), "fieldmark-snakes"))
    scratch.mkdir(parents=True, exist_ok=True)
    worlds = [_world(seed, scratch) for seed in SEEDS]
    differences = {
        variant: {
            metric: _difference([one[variant][metric] - one[PLAIN][metric] for one in worlds]) for metric in METRICS
        }
        for variant in worlds[0]
        if variant not in (PLAIN, "best_possible")
    }
    finders = _finders(scratch / f"world-{SEEDS[0]}", scratch)
    about = " ".join(str(__doc__).split("\n\n", 1)[1].split())
    return {"simulated": True, "about": about, "worlds": worlds, "less_no_prior": differences, "overlap": finders}


def _world(seed: int, scratch: Path) -> dict[str, Any]:
    done = scratch / f"{seed}.json"
    if done.exists():
        found: dict[str, Any] = json.loads(done.read_text())
        return found
    root = scratch / f"world-{seed}"
    if not root.exists():
        write_extent(root, EXTENT, "study", seed=seed)
    table = root / "species_to_country.csv"
    after = "temperature"
    variants: dict[str, tuple[list[str], dict[str, Any]]] = {
        PLAIN: (["temperature"], {}),
        "counts": (["temperature", "country-prior", after], {}),
        "counts, back_off=world": (["temperature", "country-prior:back_off=world", after], {}),
        "presence": (["temperature", f"country-prior:file={table}", after], {}),
        "boxes": (["temperature"], {"crop": "boxes"}),
    }
    said: dict[str, Any] = {"best_possible": json.loads((root / "WORLD.json").read_text())["best_possible"]}
    for name, (steps, more) in variants.items():
        out = scratch / f"{seed}-{name.replace('=', '-').replace(', ', '-').replace(' ', '-')}"
        settings = {**SETTINGS, **more}
        fitted = fieldmark.fit("snakeclef-2020", root, "linear", out, settings=settings, steps=steps, overwrite=True)
        assert fitted.scorecard is not None
        said[name] = {metric: round(fitted.scorecard.metrics[metric].value, 4) for metric in METRICS}
    done.write_text(json.dumps(said))
    print(seed, said, flush=True)
    return said


def _finders(root: Path, scratch: Path) -> dict[str, list[float]]:
    """For each finder the mean overlap with the known boxes, and the share of photos in which it found one."""
    done = scratch / "finders.json"
    if done.exists():
        kept: dict[str, list[float]] = json.loads(done.read_text())
        return kept
    dataset = open_dataset("snakeclef-2020", root)
    ids = dataset.media.filter(dataset.media["path"].str.starts_with("test"))["media_id"].to_list()[:LOOKED_AT]
    drawn = [box for box in dataset.layers["boxes"].read(ids) if box is not None]
    known = [np.array([box.x, box.y, box.x + box.width, box.y + box.height]) / PHOTO_SIZE_PX for box in drawn]
    found = {"whole photo": [np.array([0.0, 0.0, 1.0, 1.0])] * len(ids)}
    for name in ("saliency", "yolox"):
        finder = make_finder(name)
        found[name] = [finder.look(dataset.read_medium(media_id))[:4].astype(np.float64) for media_id in ids]
    overlaps = {
        name: [_overlap(one, box) for one, box in zip(boxes, known, strict=True)] for name, boxes in found.items()
    }
    said = {
        name: [round(float(np.mean(values)), 3), round(float(np.mean([box[2] > 0 for box in found[name]])), 3)]
        for name, values in overlaps.items()
    }
    done.write_text(json.dumps(said))
    return said


def _overlap(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Intersection over union of two boxes by their edges."""
    low, high = np.maximum(one[:2], other[:2]), np.minimum(one[2:], other[2:])
    shared = float(np.prod(np.maximum(high - low, 0)))
    return shared / (float(np.prod(one[2:] - one[:2])) + float(np.prod(other[2:] - other[:2])) - shared)


def _difference(values: list[float]) -> list[float]:
    """The mean over worlds with its 95 % interval."""
    array = np.array(values)
    reach = float(student.ppf(0.975, len(array) - 1)) * float(array.std(ddof=1)) / len(array) ** 0.5
    mean = float(array.mean())
    return [round(value, 4) for value in (mean, mean - reach, mean + reach)]
