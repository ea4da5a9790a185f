"""What the feature store saves: a second extraction beside the first, on the photos of a tiny world."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import fieldmark
from fieldmark.features.extraction import extract
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.store import FeatureStore
from fieldmark.models.supply.sources import load_backbone


def run() -> dict[str, Any]:
    """The ratio of computing features to finding them in the store."""
    with tempfile.TemporaryDirectory() as folder:
        fieldmark.world("folder", Path(folder, "world"), size="tiny")
        dataset = fieldmark.dataset("folder", Path(folder, "world"))
        backbone = load_backbone(FeatureSettings(size=160))
        ids = list(dataset.media["media_id"])
        times = []
        for _ in range(2):
            start = time.perf_counter()
            extract(ids, dataset.read_medium, backbone, FeatureStore(Path(folder, "store"), backbone.digest))
            times.append(time.perf_counter() - start)
    return {"photos": len(ids), "computing_over_finding": round(times[0] / times[1], 1)}
