"""Photos from files to batches, beside libjpeg-turbo alone (the limit) and torchvision's ImageFolder (the peer).

Seconds of processors per photo, so that neither threads nor what else the machine does count. The limit decodes bytes
that are in memory, at the quickest of the scales that leave enough pixels, and does nothing else with them. All others
read files, decode, resize so that 224 x 224 pixels can be cut out, and put 32 photos into a batch.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import simplejpeg
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

from fieldmark.features import photos as photo_reader
from fieldmark.features.extraction import extract
from fieldmark.features.photos import Preprocessing, decode_square
from fieldmark.features.resampling import Resampler, compiled
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.store import FeatureStore
from fieldmark.models.supply.sources import load_backbone
from fieldmark.training.packs import decode_squashed
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks
from studies.perf.camera_photos import write_camera_photos
from studies.perf.timing import fastest

SIDES_PX, PHOTOS, BATCH, ROUNDS = (1600, 500), 64, 32, 7
HOW = Preprocessing(224, 0.875, (0.5,) * 3, (0.5,) * 3)
NEEDED_PX = 256
WANTED_SHARE, WANTED_TIMES = 0.85, 3.0
Job = Callable[[], object]


class NoNetwork:
    """Takes photos as a network does and computes nothing, so that what is left is reading."""

    def decode(self, data: bytes, box: Any = None) -> NDArray[np.uint8]:
        return decode_square(data, HOW)

    def __call__(self, pixels: Sequence[NDArray[np.uint8]]) -> dict[str, NDArray[np.generic]]:
        return {"features": np.stack(pixels)[:, 0, 0].astype(np.float16)}


def run() -> dict[str, Any]:
    """Milliseconds of processors per photo, and the ratios to limit and peer, for each size of photo."""
    torch.set_num_threads(1)
    resampler = compiled()
    sizes = {f"{side} px": _measured(side, resampler) for side in SIDES_PX}
    network_ms = round(_network_ms(), 1)
    return {"photos": PHOTOS, "needed_px": NEEDED_PX, "quality": 90, "network_cpu_ms": network_ms, "sizes": sizes}


def _network_ms() -> float:
    """Milliseconds of processors that EfficientNet-Lite0 takes for a photo whose pixels are there."""
    backbone = load_backbone(FeatureSettings())
    batch = list(np.random.default_rng(0).integers(0, 256, (16, 224, 224, 3), dtype=np.uint8))
    backbone(batch)
    return 1000 * fastest({"network": lambda: backbone(batch)}, rounds=4, clock=time.process_time)["network"] / 16


def _measured(long_px: int, resampler: Resampler) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "photos")
        source = write_camera_photos(folder, PHOTOS, long_px)
        paths = [str(path) for path in sorted(folder.rglob("*.jpg"))]
        contents = [Path(path).read_bytes() for path in paths]
        jobs = {**_limits(contents), **_ours(paths, resampler, Path(name)), **_peers(folder, paths)}
        _same_pixels(contents, resampler)
        times = fastest(jobs, rounds=ROUNDS, clock=time.process_time)
    per_photo = {job: 1000 * seconds / PHOTOS for job, seconds in times.items()}
    limit = min(per_photo.pop(job) for job in list(per_photo) if job.startswith("limit"))
    ours = per_photo["decode, resize, batch"]
    return {
        "contents": source,
        "kib_per_photo": round(sum(map(len, contents)) / PHOTOS / 1024),
        "limit_ms": round(limit, 2),
        "cpu_ms": {job: round(value, 2) for job, value in per_photo.items()},
        "share_of_limit": {job: round(limit / value, 2) for job, value in per_photo.items()},
        "times_faster_than_imagefolder": round(per_photo["torchvision ImageFolder"] / ours, 2),
    }


def _limits(contents: Sequence[bytes]) -> dict[str, Job]:
    """libjpeg-turbo alone, at each of the scales n/8 that leave enough pixels in the smallest photo."""
    short = min(min(simplejpeg.decode_jpeg_header(data)[:2]) for data in contents)
    scales = [eighths for eighths in range(1, 9) if short * eighths // 8 >= NEEDED_PX]

    def decode(eighths: int) -> None:
        for data in contents:
            height, width = simplejpeg.decode_jpeg_header(data)[:2]
            least = {"min_height": -(-height * eighths // 8), "min_width": -(-width * eighths // 8)}
            simplejpeg.decode_jpeg(data, **least)

    return {f"limit {eighths}/8": partial(decode, eighths) for eighths in scales}


def _ours(paths: Sequence[str], resampler: Resampler, folder: Path) -> dict[str, Job]:
    def with_resampler(made: Resampler | None, job: Job) -> Job:
        def run_job() -> None:
            with patch.object(photo_reader, "resampler_for_many", lambda: made):
                job()

        return run_job

    def batch(block: Sequence[str]) -> NDArray[np.uint8]:
        return np.stack([decode_square(Path(path).read_bytes(), HOW) for path in block])

    def packed(block: Sequence[str]) -> NDArray[np.uint8]:
        return np.stack([decode_squashed(Path(path).read_bytes(), NEEDED_PX)[0] for path in block])

    def each(work: Callable[[Sequence[str]], object], threads: bool = False) -> Job:
        executor = all_cores("thread") if threads else None
        return lambda: list(map_blocks(work, blocks_of(paths, BATCH // 2 if threads else BATCH), executor))

    stores = iter(range(1000))

    def extracted() -> None:
        store = FeatureStore(folder / f"store{next(stores)}", "none")
        extract(paths, lambda path: Path(path).read_bytes(), NoNetwork(), store)

    return {
        "decode, resize, batch": with_resampler(resampler, each(batch)),
        "the same in threads": with_resampler(resampler, each(batch, threads=True)),
        "squares for a pack": with_resampler(resampler, each(packed)),
        "extraction without a network": with_resampler(resampler, extracted),
        "before: Pillow, decoding small": with_resampler(None, each(batch)),
    }


def _peers(folder: Path, paths: Sequence[str]) -> dict[str, Job]:
    steps = [transforms.Resize(NEEDED_PX), transforms.CenterCrop(HOW.size_px), transforms.PILToTensor()]
    loader = DataLoader(ImageFolder(str(folder), transforms.Compose(steps)), batch_size=BATCH)
    return {"torchvision ImageFolder": lambda: sum(len(batch) for batch, _ in loader)}


def _same_pixels(contents: Sequence[bytes], resampler: Resampler) -> None:
    """Stops where a pixel differs from Pillow's."""
    slow = [decode_square(data, HOW) for data in contents[:16]]
    with patch.object(photo_reader, "resampler_for_many", lambda: resampler):
        assert all(np.array_equal(decode_square(data, HOW), one) for data, one in zip(contents, slow, strict=False))
