"""One photo in a process that has loaded its model, as the server asks it; and a folder beside the extractor alone.

Photos are noise of 1200 x 900 pixels, each one new to the store. The model is the packaged one.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import fieldmark
from fieldmark.features.extraction import extract
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.store import FeatureStore
from fieldmark.identification.packaged.imagenet_model import BACKBONE, imagenet_model
from fieldmark.identification.review.batch import BatchSettings, identify_many
from fieldmark.models.supply.sources import load_backbone

ASKED, BATCH = 12, 128
LIMIT_S, LIMIT_GIB = 0.5, 1.5


def run() -> dict[str, Any]:
    """Seconds per question, memory, and the rate of a batch over that of the extractor."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["FIELDMARK_CACHE"] = str(folder / "cache")
        alone, many = (_photos(folder / place, BATCH, seed) for place, seed in (("alone", 1), ("many", 2)))
        times = []
        for photo in _photos(folder / "asked", ASKED, 0):
            start = time.perf_counter()
            fieldmark.identify(photo, imagenet_model())
            times.append(time.perf_counter() - start)
        backbone = load_backbone(FeatureSettings(BACKBONE))
        backbone([backbone.decode(alone[0].read_bytes())])  # loaded before the clock runs
        start = time.perf_counter()
        ids = [str(path) for path in alone]
        extract(ids, lambda one: Path(one).read_bytes(), backbone, FeatureStore(folder / "store", backbone.digest))
        extracting = time.perf_counter() - start
        start = time.perf_counter()
        identify_many(many[0].parent, "imagenet", folder / "answers", BatchSettings())
        naming = time.perf_counter() - start
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    typical = statistics.median(times[1:])
    return {
        "first_question_s": round(times[0], 2),
        "further_questions_s": round(typical, 3),
        "fastest_question_s": round(min(times), 3),
        "limit_s": LIMIT_S,
        "peak_gib": round(peak_gib, 2),
        "limit_gib": LIMIT_GIB,
        "extractor_photos_per_s": round(BATCH / extracting, 1),
        "batch_rate_over_extractor": round(extracting / naming, 2),
    }


def _photos(folder: Path, number: int, seed: int) -> list[Path]:
    folder.mkdir()
    rng = np.random.default_rng(seed)
    paths = [folder / f"{place:03}.jpg" for place in range(number)]
    for path in paths:
        small = rng.integers(0, 255, (90, 120, 3), dtype=np.uint8)
        Image.fromarray(small).resize((1200, 900)).save(path, quality=85)
    return paths
