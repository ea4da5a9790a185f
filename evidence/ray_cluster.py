"""Is anything lost, doubled or changed when a node of a Ray cluster dies in the middle of an extraction?

Features of real photos (fungi_genera, 540 files) are computed on this machine, on a cluster
of two nodes, and on such a cluster whose second node is killed after half of the blocks, worker processes and all. The
readers note each look at a photo, so that work that was done again can be counted.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.ray_clusters import TwoNodes, two_node_cluster

from evidence.results import real_data
from fieldmark.features import extraction
from fieldmark.features.extraction import extract
from fieldmark.features.loading import load_backbone
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.store import FeatureStore
from fieldmark.foundation.engines import working_on

BACKBONE, SIZE, BLOCK_PHOTOS = "efficientnet_lite0", 224, 12


class NotingReader:
    """Reads photos of a folder, and leaves a mark for each look in another folder."""

    def __init__(self, photos: Path, marks: Path) -> None:
        self.photos, self.marks = photos, marks

    def read(self, name: str) -> bytes:
        (self.marks / f"{name.replace('/', '-')}.{os.getpid()}.{time.monotonic_ns()}").touch()
        return (self.photos / name).read_bytes()


class LosingStore(FeatureStore):
    """A store that has the second node killed after so many blocks, while it is in the middle of one."""

    def __init__(self, root: Path, nodes: TwoNodes, after: int, marks: Path) -> None:
        super().__init__(root, "x")
        self.nodes, self.left, self.marks = nodes, after, marks

    def add_new(self, keys: Sequence[bytes], outputs: Mapping[str, Any]) -> None:
        super().add_new(keys, outputs)
        self.left -= 1
        if self.left == 0:
            workers, before = self.nodes.workers_of_second(), self._looks(self.nodes.workers_of_second())
            while self._looks(workers) == before:
                time.sleep(0.005)
            self.nodes.kill_second()

    def _looks(self, workers: Sequence[int]) -> int:
        return sum(int(path.name.split(".")[-2]) in workers for path in self.marks.iterdir())


def run() -> dict[str, Any] | None:
    """Runs all three, and compares."""
    photos = real_data("fungi_genera")
    if photos is None:
        return None
    names = sorted(str(path.relative_to(photos)) for path in photos.rglob("*.jpg"))
    extraction.BLOCK_PHOTOS = BLOCK_PHOTOS
    blocks = -(-len(names) // BLOCK_PHOTOS)
    network = load_backbone(FeatureSettings(backbone=BACKBONE, size=SIZE))
    rows: list[dict[str, Any]] = []
    features: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)

        def measured(what: str, store: FeatureStore, engine: str, marks: Path) -> None:
            started = time.perf_counter()
            with working_on(engine):
                features[what] = extract(names, NotingReader(photos, marks).read, network, store)
            seconds = time.perf_counter() - started
            stored = np.concatenate([np.load(path) for path in store.folder.glob("*.keys.npy")])
            rows.append(
                {
                    "what": what,
                    "seconds": round(seconds, 1),
                    "looks": len(list(marks.iterdir())),
                    "processes": len({path.name.split(".")[-2] for path in marks.iterdir()}),
                    "stored": len(stored),
                    "distinct": len(np.unique(stored, axis=0)),
                    "equal": bool(np.array_equal(features[what], features["this machine"])),
                }
            )
            print(rows[-1], flush=True)

        here, two, lost = marked = [root / f"marks-{name}" for name in ("here", "two", "lost")]
        for marks in marked:
            marks.mkdir()
        measured("this machine", FeatureStore(root / "here", "x"), "local", here)
        with two_node_cluster() as nodes:
            measured("two nodes", FeatureStore(root / "two", "x"), "ray", two)
            store = LosingStore(root / "lost", nodes, blocks // 2, lost)
            measured("two nodes, one killed half-way", store, "ray", lost)
    return {"photos": len(names), "blocks": blocks, "backbone": BACKBONE, "size": SIZE, "rows": rows}
