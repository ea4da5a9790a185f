"""Is anything lost, doubled or changed when a node of a Ray cluster dies in the middle of an extraction?

Features of real photos (fungi_genera, 540 files) are computed on this machine, on a cluster of two nodes, and on such a
cluster whose second node is killed half-way, worker processes and all. The readers note each look at a photo and the
node of it, so that work that was done again can be counted.

The node is killed by a photo: the first that a worker of the second node is to read in the middle of a block of the
second half. So it surely dies at work, however quick the machine is, and nothing waits for it.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.features import extraction
from fieldmark.features.extraction import Extractor, extract
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.store import FeatureStore
from fieldmark.models.supply.sources import load_backbone
from fieldmark.work.engines import working_on
from fieldmark_tests.ray_clusters import TwoNodes, two_node_cluster
from studies.evidence.results import real_data

BACKBONE, SIZE, BLOCK_PHOTOS = "efficientnet_lite0", 224, 12


class NotingReader:
    """Reads photos of a folder, and leaves a mark for each look in another folder."""

    def __init__(self, photos: Path, marks: Path) -> None:
        self.photos, self.marks = photos, marks

    def read(self, name: str) -> bytes:
        # The parent of a worker is the raylet of its node.
        (self.marks / f"{name.replace('/', '-')}.{os.getppid()}.{time.monotonic_ns()}").touch()
        return (self.photos / name).read_bytes()

    def looks(self) -> Counter[int]:
        """How many photos each node has reviewed, by its raylet."""
        return Counter(int(path.name.split(".")[-2]) for path in self.marks.iterdir())


class KillingReader(NotingReader):
    """Reads photos, and kills the node of a raylet where one of its workers comes to certain photos."""

    def __init__(self, photos: Path, marks: Path, deadly: Sequence[str], raylet: int) -> None:
        super().__init__(photos, marks)
        self.deadly, self.raylet = frozenset(deadly), raylet

    def read(self, name: str) -> bytes:
        data = super().read(name)
        if name in self.deadly and os.getppid() == self.raylet:
            for process in (self.raylet, os.getpid()):
                os.kill(process, signal.SIGKILL)
        return data


class Extractions:
    """The extractions to compare; the first is what the others should equal."""

    def __init__(self, names: Sequence[str], network: Extractor, root: Path) -> None:
        self.names, self.network, self.root = names, network, root
        self.expected: Any = None
        self.rows: list[dict[str, Any]] = []

    def add(self, what: str, engine: str, reader_with: Callable[[Path], NotingReader]) -> None:
        """Runs one, and keeps what became of it."""
        folder = self.root / str(len(self.rows))
        (folder / "marks").mkdir(parents=True)
        reader, store = reader_with(folder / "marks"), FeatureStore(folder, "x")
        with working_on(engine):
            features = extract(self.names, reader.read, self.network, store)
        self.expected = features if self.expected is None else self.expected
        stored = np.concatenate([np.load(path) for path in store.folder.glob("*.keys.npy")])
        looks = reader.looks()
        row = {
            "what": what,
            "looks": looks.total(),
            "looks_of_nodes": [number for _, number in looks.most_common()],
            "stored": len(stored),
            "distinct": len(np.unique(stored, axis=0)),
            "equal": bool(np.array_equal(features, self.expected)),
        }
        print(row, flush=True)
        self.rows.append(row)


def run() -> dict[str, Any] | None:
    """Runs all three, and compares.

    Raises:
        RuntimeError: When a node of the cluster was given nothing to do, or the second was not killed.
    """
    photos = real_data("fungi_genera")
    if photos is None:
        return None
    names = sorted(str(path.relative_to(photos)) for path in photos.rglob("*.jpg"))
    extraction.BLOCK_PHOTOS = BLOCK_PHOTOS
    blocks = -(-len(names) // BLOCK_PHOTOS)
    deadly = names[blocks // 2 * BLOCK_PHOTOS + BLOCK_PHOTOS // 2 :: BLOCK_PHOTOS]
    network = load_backbone(FeatureSettings(backbone=BACKBONE, size=SIZE))
    with tempfile.TemporaryDirectory() as temporary:
        done = Extractions(names, network, Path(temporary))
        done.add("this machine", "local", lambda marks: NotingReader(photos, marks))
        with two_node_cluster() as nodes:
            done.add("two nodes", "ray", lambda marks: NotingReader(photos, marks))
            if len(done.rows[-1]["looks_of_nodes"]) != 2:
                raise RuntimeError("One node of the cluster has done all the work: its blocks are not spread.")
            raylet = nodes.second_raylet
            done.add(
                "two nodes, one killed half-way", "ray", lambda marks: KillingReader(photos, marks, deadly, raylet)
            )
            _check_killed(nodes)
    about = {"photos": len(names), "blocks": blocks, "backbone": BACKBONE, "size": SIZE}
    return {**about, "rows": done.rows}


def _check_killed(nodes: TwoNodes) -> None:
    if nodes.second.all_processes["raylet"][0].process.poll() is None:
        raise RuntimeError("The second node still runs: it was given no block of the second half.")
    nodes.forget_second()
