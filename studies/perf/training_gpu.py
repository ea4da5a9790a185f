"""Training speed on a GPU: the engine beside a plain loop on inputs that never leave the device.

Runs on a bare machine: `python -m studies.perf.training_gpu PHOTOS OUT.json [--networks NAME=BATCH ...]`, where PHOTOS
is any folder of photos. Absolute figures say something only together with the plain loops of the same run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.training.boxes import Crops
from fieldmark.training.draws import Draws
from fieldmark.training.loop import train
from fieldmark.training.networks import make_network
from fieldmark.training.objectives import SingleLabel
from fieldmark.training.packs import Format, open_pack
from fieldmark.training.photos import PhotoSource, PhotoTransform, pack_side
from fieldmark.training.recipe import Training
from fieldmark.training.sources import ProcessShare, training_batches
from fieldmark.training.strategies import make_fabric

NETWORKS = ("vit_base_patch16_224=256", "resnet50=256", "convnext_base=128")
SIZE_PX, CLASSES, WARMUP, STEPS = 224, 1000, 10, 40
ENGINE_STEPS = 60
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Nothing:
    """Examples that cost nothing to read: what is left is the loop itself."""

    labels: NDArray[np.int32]
    groups: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, rows: NDArray[np.int64], draws: Draws | None) -> tuple[NDArray[Any], ...]:
        return (rows,)

    def read_targets(self, rows: NDArray[np.int64], draws: Draws | None) -> NDArray[np.int32]:
        return self.labels[rows]


@dataclass
class Resident:
    """Inputs that lie on the device already."""

    inputs: dict[int, Any] = field(default_factory=dict)

    def __call__(self, raw: Sequence[Any], draws: Draws | None) -> Any:
        count = len(raw[0])
        if count not in self.inputs:
            self.inputs[count] = inputs_on_device(count)
        return self.inputs[count]


def inputs_on_device(count: int) -> Any:
    """A batch of random inputs that lies on the device."""
    return torch.randn(count, 3, SIZE_PX, SIZE_PX, device=DEVICE).contiguous(memory_format=torch.channels_last)


def wait() -> None:
    """Waits until the device has done what it was given."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def plain_loop(name: str, batch: int, *, compiled: bool) -> float:
    """Photos per second of the shortest loop one would write: bf16, channels-last, AdamW, inputs on the device."""
    network = make_network(name, "random", classes=CLASSES, size=SIZE_PX).to(DEVICE, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, fused=DEVICE == "cuda")
    model = torch.compile(network) if compiled else network
    inputs, labels = inputs_on_device(batch), torch.randint(0, CLASSES, (batch,), device=DEVICE)
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            wait()
            started = time.perf_counter()
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    wait()
    return STEPS * batch / (time.perf_counter() - started)


def engine(network: Any, source: Any, transform: Any, how: Training) -> float:
    """Photos per second of the engine: the best of the epochs after the first, which compiles."""
    val = replace(source, labels=source.labels[:64], **({"rows": source.rows[:64]} if hasattr(source, "rows") else {}))
    with tempfile.TemporaryDirectory() as folder:
        objective, fabric = SingleLabel(CLASSES), make_fabric(how)
        trained = train(network, source, val, transform, how, objective=objective, scratch=Path(folder), fabric=fabric)
    return max(float(line["examples_per_s"]) for line in trained.epochs[1:])


def loader(source: Any, batch: int) -> float:
    """Photos per second that reach pinned memory when nobody holds them up: what the loader has in reserve."""
    batches = training_batches(
        source,
        lambda epoch: np.arange(len(source)),
        range(2),
        objective=SingleLabel(CLASSES),
        seed=0,
        batch=batch,
        accumulate=1,
        share=ProcessShare(),
        first_step=0,
        workers=0,
        device=torch.device(DEVICE),
    )
    for _ in range(ENGINE_STEPS):
        next(batches)
    started = time.perf_counter()
    read = sum(len(one.rows) for one in batches)
    return read / (time.perf_counter() - started)


def measure(
    name: str,
    batch: int,
    photos: Path,
    cache: Path,
    forms: Sequence[Format],
    rates: dict[str, float],
    *,
    compiled: bool = True,
) -> None:
    """All rates for one network, each written down as soon as it is known."""
    rates["plain eager"] = plain_loop(name, batch, compiled=False)
    if compiled:
        rates["plain compiled"] = plain_loop(name, batch, compiled=True)
    how = Training(lr=1e-4, batch=batch, epochs=2, compile=compiled, schedule="constant", best_by="last")
    network = make_network(name, "random", classes=CLASSES, size=SIZE_PX)
    rows = np.arange(ENGINE_STEPS * batch)
    labels = (rows % CLASSES).astype(np.int32)
    rates["engine, no loader"] = engine(network, Nothing(labels), Resident(), how)
    ids = sorted(str(path.relative_to(photos)) for path in photos.rglob("*.jpg"))
    for form in forms:
        pack = open_pack(ids, lambda medium: (photos / medium).read_bytes(), pack_side(SIZE_PX), form, cache)
        source = PhotoSource(pack, rows % len(ids), labels, None, Crops("squash", 0.8, True))
        rates[f"{form} pack alone"] = loader(source, batch)
        for operations in (0, 2) if form == "raw" else (2,):
            transform = PhotoTransform(SIZE_PX, (0.5,) * 3, (0.5,) * 3, operations, 20, compiled)
            words = f"engine, {form} pack, crops" + (", RandAugment" if operations else "")
            rates[words] = engine(network, source, transform, how)


class Written(dict[str, float]):
    """Rates that are printed and written to a file as they come."""

    def __init__(self, result: dict[str, Any], name: str, out: Path) -> None:
        super().__init__()
        self.result, self.out = result, out
        result["photos_per_s"][name] = self

    def __setitem__(self, words: str, rate: float) -> None:
        super().__setitem__(words, round(rate, 1))
        print(f"{words}: {rate:.1f}", flush=True)
        self.out.write_text(json.dumps(self.result, indent=2))


def main() -> None:
    """Measures every network and writes what it has after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--networks", nargs="*", default=NETWORKS)
    parser.add_argument("--forms", nargs="*", default=get_args(Format), choices=get_args(Format))
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    result: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "photos_per_s": {}}
    with tempfile.TemporaryDirectory() as cache:
        for entry in arguments.networks:
            name, _, batch = entry.partition("=")
            rates = Written(result, f"{name}, batch {batch}", arguments.out)
            measure(name, int(batch), arguments.photos, Path(cache), arguments.forms, rates)


if __name__ == "__main__":
    main()
