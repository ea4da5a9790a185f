"""The networks of FungiTastic's Table 4 as its recipes train them, at its number of classes, on a generated pack.

Each of the eight networks at 224 and 384 px, batches of 64, SeeSaw, SGD, RandAugment, 2,829 classes: photos per second
learned from and reviewed, and the memory of the GPU; once as the recipe says and once with `compile=true`. A machine
with a GPU may have nothing but torch: `python -m studies.perf.table4 OUT.json [--minutes M]` measures there, writes
what it has after each cell, begins no other when the time is over, and leaves out what the file holds already.
`docs/scale.md` makes hours and dollars of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fieldmark.training.boxes import Crops
from fieldmark.training.loop import train
from fieldmark.training.networks import make_network, normalization
from fieldmark.training.objectives import SingleLabel
from fieldmark.training.packs import open_pack
from fieldmark.training.photos import PhotoSource, PhotoTransform, pack_side
from fieldmark.training.recipe import Recipe, read_recipe
from fieldmark.training.sources import evaluation_batches, prepared
from studies.perf.camera_photos import write_camera_photos
from studies.perf.jobs import JOBS
from studies.perf.machine import about_machine

CLASSES, PHOTOS, LONG_PX = 2829, 128, 500
STEPS, EPOCHS, LOOKED_AT = 60, 2, 40
CELLS = sorted(
    entry.name.removesuffix(".toml")
    for entry in files("fieldmark.training").joinpath("recipes").iterdir()
    if entry.name.startswith("fungitastic-")
)


def run(
    minutes: float = 30.0, keep: Callable[[dict[str, Any]], object] = lambda result: None, before: Path | None = None
) -> dict[str, Any]:
    """Rates and memory of every cell; those as the recipe says come first.

    Args:
        minutes: After how many no further cell is begun.
        keep: Called with what is known after each cell.
        before: A file with what an earlier run has kept; its cells are not measured again.
    """
    ends = time.monotonic() + 60 * minutes
    result: dict[str, Any] = {"device": torch.cuda.get_device_name(), "classes": CLASSES, "cells": {}, "compiled": {}}
    if before is not None and before.exists():
        kept = json.loads(before.read_text())
        result |= {way: kept[way] for way in ("cells", "compiled")}
    torch.set_float32_matmul_precision("high")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_camera_photos(folder / "photos", PHOTOS, LONG_PX)
        for way in ("cells", "compiled"):
            for cell in (one for one in CELLS if one not in result[way]):
                if time.monotonic() > ends:
                    return result
                how = Recipe(**read_recipe(cell) | {"weights": "random", "epochs": EPOCHS, "compile": way != "cells"})
                result[way][cell] = measured(replace(how, schedule="constant", best_by="last"), folder)
                print(way, cell, result[way][cell], flush=True)
                keep(result)
    return result


def measured(how: Recipe, folder: Path, steps: int = STEPS, looked_at: int = LOOKED_AT) -> dict[str, float]:
    """One cell: the best epoch of two, what val would take, and the most memory that was taken."""
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    network = make_network(how.network, how.weights, classes=CLASSES, size=how.size)
    photos = folder / "photos"
    ids = sorted(str(path.relative_to(photos)) for path in photos.rglob("*.jpg"))
    side_px = pack_side(how.size, how.eval_crop, how.eval_share)
    pack = open_pack(ids, lambda medium: (photos / medium).read_bytes(), side_px, "raw", folder / "packs")
    rows = np.arange(steps * how.batch)
    labels = (rows % CLASSES).astype(np.int32)
    crops = Crops(how.eval_crop, how.crop_scale, how.flip, how.eval_share)
    source = PhotoSource(pack, rows % len(ids), labels, None, crops)
    transform = PhotoTransform(
        how.size, *normalization(network), how.randaugment_ops, how.randaugment_magnitude, how.compile
    )
    val = replace(source, rows=source.rows[: how.batch], labels=labels[: how.batch])
    with tempfile.TemporaryDirectory() as scratch:
        trained = train(network, source, val, transform, how, objective=SingleLabel(CLASSES), scratch=Path(scratch))
    peak = torch.cuda.max_memory_reserved() / 2**30 if on_gpu else 0.0
    rate = max(float(line["examples_per_s"]) for line in trained.epochs[1:])
    watched = looking_rate(network, source, transform, how.batch, looked_at)
    return {"photos_per_s": rate, "looked_at_per_s": round(watched, 1), "memory_gib": round(peak, 1)}


def looking_rate(network: Any, source: PhotoSource, transform: PhotoTransform, batch: int, steps: int) -> float:
    """Photos per second of val: read, shown to the network in bf16, answers left on the device."""
    device = next(network.parameters()).device
    rows = np.arange((steps + 5) * batch) % len(source)
    batches = prepared(evaluation_batches(source, rows, batch=batch, workers=0, device=device), transform, device)
    network.eval()
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16):
        for step, one in enumerate(batches):
            if step == 5:
                _wait(device)
                started = time.perf_counter()
            network(one.inputs)
        _wait(device)
    return steps * batch / (time.perf_counter() - started)


def _wait(device: Any) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    """Measures on a machine that need not have more than torch."""
    parser = argparse.ArgumentParser(prog="python -m studies.perf.table4", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=30.0)
    arguments = parser.parse_args()
    about = about_machine(JOBS["table4"].packages)

    def keep(result: dict[str, Any]) -> None:
        arguments.out.write_text(json.dumps({**about, **result}, indent=2))

    run(arguments.minutes, keep, arguments.out)


if __name__ == "__main__":
    main()
