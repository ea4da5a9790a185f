"""Painting many photos on all cores; the result depends neither on how many there are nor on who paints what.

Workers import this module afresh, so it imports no table library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from fieldmark.work.blocks import Executor, all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress
from fieldmark_worlds.fungi.painter import paint
from fieldmark_worlds.nature.kingdom import Specimen
from fieldmark_worlds.scenery.camera import Camera

JPEG_QUALITY = 90
PHOTOS_PER_BLOCK = 16


@dataclass(frozen=True)
class PhotoJob:
    """One photo to paint. It does not know its species; the name of its file is not looked at.

    Attributes:
        file: Where it goes, relative to the root of the release.
        specimen: Traits by name.
        camera: What it is taken with.
        seed: Seed of the world.
        observation: Number of the observation.
        photo: Which photo of the observation it is.
    """

    file: str
    specimen: Specimen
    camera: Camera
    seed: int
    observation: int
    photo: int

    def rng(self, *aspect: int) -> np.random.Generator:
        """Returns the chance in this photo, or in another aspect of it, which belongs to it alone."""
        return np.random.default_rng(np.random.SeedSequence([self.seed, self.observation, self.photo, *aspect]))


def paint_photos(root: Path, jobs: Sequence[PhotoJob], size_px: int, executor: Executor | None = None) -> None:
    """Paints photos into files below `root`, on all cores unless an executor is given."""
    for folder in sorted({(root / job.file).parent for job in jobs}):
        folder.mkdir(parents=True, exist_ok=True)
    block = partial(_paint_block, root, size_px)
    with progress("painting photos", len(jobs)) as tick:
        for done in map_blocks(block, blocks_of(jobs, PHOTOS_PER_BLOCK), executor or all_cores()):
            tick(done)


def _paint_block(root: Path, size_px: int, jobs: Sequence[PhotoJob]) -> int:
    for job in jobs:
        photo = paint(job.specimen, job.rng(), size_px, camera=job.camera)
        photo.save(root / job.file, quality=JPEG_QUALITY)
    return len(jobs)
