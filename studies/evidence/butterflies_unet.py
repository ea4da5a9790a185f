"""What U-Nets see in butterflies of species that they have not learned from.

Photos of 001 to 003 are answered by a network that was trained on the other two of them, photos of 004 and 005 by one
that was trained on all three. Networks start from ImageNet (EfficientNet-Lite0) and are taken after their last epoch;
nothing is left to val.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.methods.unet import UNet
from fieldmark.releases import open_dataset
from fieldmark.training.masks import BACKGROUND
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.views.parts import Part

SIZES_PX = (128,)
EPOCHS = 10
BYTE = 255


def kind_of(size_px: int) -> str:
    """How looks of the network of this size are called on disk."""
    return f"unet-{size_px}"


def look_by_unets(data: Path, photos: Sequence[Path], folder: Path, learned: tuple[str, ...], until: float) -> None:
    """Trains the networks whose looks are missing, one after the other, until the time is up."""
    for size_px in SIZES_PX:
        for held in (None, *learned):
            mine = [path for path in photos if path.stem[:3] == held or (held is None and path.stem[:3] not in learned)]
            waiting = [path for path in mine if not (folder / f"{path.stem}.{kind_of(size_px)}.npz").exists()]
            if not waiting:
                continue
            if time.monotonic() > until:
                print("unet: time is up", flush=True)
                return
            started = time.monotonic()
            shown = [path for path in photos if path.stem[:3] in learned and path.stem[:3] != held]
            method, network = _trained(data, shown, waiting[0], size_px)
            for path in waiting:
                with Image.open(path) as photo:
                    body = 1 - method.shares(network, photo.convert("RGB"))[BACKGROUND]
                partial = folder / f"{path.stem}.unet.partial.npz"
                np.savez_compressed(partial, body=np.round(body * BYTE).astype(np.uint8))
                partial.rename(folder / f"{path.stem}.{kind_of(size_px)}.npz")
            took = round(time.monotonic() - started)
            print(f"unet, {size_px} px, without {held or 'test'}: {len(shown)} photos, {took} s", flush=True)


def _trained(data: Path, shown: Sequence[Path], asked: Path, size_px: int) -> tuple[UNet, Any]:
    """A method and the network that it trained on some photos; `asked` is the photo of test that a benchmark wants."""
    with tempfile.TemporaryDirectory(prefix="fieldmark-butterflies-") as name:
        root = Path(name)
        for part in ("images/train", "images/test", "masks"):
            (root / part).mkdir(parents=True)
        for path in (*shown, asked):
            (root / "images" / ("test" if path == asked else "train") / path.name).symlink_to(path.resolve())
            mask = data / "masks" / f"{path.stem}_seg0.png"
            (root / "masks" / mask.name).symlink_to(mask.resolve())
        view = open_benchmark(BENCHMARKS["folder/segmentation"], open_dataset("folder-masks", root)).view
        drawn = [view.train] if view.val is None else [view.train, view.val]  # all are learned from
        method = UNet(size=size_px, epochs=EPOCHS, best_by="last", workers=1)
        fitted = method.fit(replace(view, train=Part.concat(drawn), val=None))
        return method, method.start(fitted.arrays)


def unet_shares(looks: Path, size_px: int) -> Any:
    """How likely each pixel is a butterfly, as it was kept."""
    with np.load(looks.with_name(f"{looks.name}.{kind_of(size_px)}.npz")) as kept:
        return kept["body"].astype(np.float32) / BYTE
