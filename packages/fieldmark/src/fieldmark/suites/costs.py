"""What a model costs here: memory, parameters, features, photos per second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.features.settings import FeatureSettings
from fieldmark.models import Model
from fieldmark.models.supply.sources import load_backbone

# Photos of noise that are shown to a backbone, and how often: the best of some tries is the least disturbed.
SHOWN, TRIES = 8, 3
# Speeds of machines, and of busy ones, differ: beside each stands that of this packaged network, measured in turns.
REFERENCE = "efficientnet_lite0"
_SPEEDS: dict[str, tuple[float, float, int]] = {}
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@contextmanager
def added_memory() -> Iterator[Callable[[], int | None]]:
    """Yields what tells the most memory in MiB that this process has held beyond what it held at first.

    None where the system cannot tell: the peak is reset as Linux has it.
    """
    try:
        _RESET.write_text("5")
        before = _memory_mib("VmRSS")
    except (OSError, StopIteration):
        yield lambda: None
    else:
        yield lambda: max(_memory_mib("VmHWM") - before, 0)


def _memory_mib(which: str) -> int:
    line = next(one for one in _STATUS.read_text().splitlines() if one.startswith(f"{which}:"))
    return int(line.split()[1]) // 1024


def cost_of(model: Model) -> dict[str, Any]:
    """Parameters and speed of the network behind a model's features; nothing where no network of ours makes them."""
    sources = list(model.supply.sources.values())
    networks = [one.backbone for one in sources if hasattr(one.backbone, "network")]
    if not networks:
        return {}
    parameters = sum(_parameters(one.network) for one in networks)
    speeds = [_speed(one) for one in networks if hasattr(one, "preprocessing")]
    if not speeds:
        return {"parameters": parameters}
    features = sum(count for _, _, count in speeds)
    seconds = sum(1 / speed for speed, _, _ in speeds)
    reference = sum(speed for _, speed, _ in speeds) / len(speeds)
    return {
        "parameters": parameters,
        "features": features,
        "photos_per_second": round(1 / seconds, 1),
        "relative_speed": round(1 / seconds / reference, 3),
    }


def _parameters(network: Any) -> int:
    """The number of weights: of a network of torch, or of a packaged one, which holds arrays by name."""
    if hasattr(network, "tensors"):
        return sum(int(array.size) for array in network.tensors.values())
    return sum(int(weights.numel()) for weights in network.parameters())


def _speed(backbone: Any) -> tuple[float, float, int]:
    """Photos per second of processor time through a backbone and through the reference, and its number of features.

    Decoding is left aside. Both are shown photos in turns, so that what else the machine does falls on both.
    """
    if backbone.digest not in _SPEEDS:
        reference = load_backbone(FeatureSettings(REFERENCE))
        networks = (backbone, reference)
        noise = [_noise(int(one.preprocessing.size_px)) for one in networks]
        seconds: list[list[float]] = [[], []]
        for one, photos in zip(networks, noise, strict=True):
            one(photos)  # the first call compiles
        for _ in range(TRIES):
            for one, photos, own in zip(networks, noise, seconds, strict=True):
                start = time.process_time()
                outputs = one(photos)
                own.append(time.process_time() - start)
                if one is backbone:
                    features = int(outputs["features"].shape[1])
        speed, usual = (SHOWN / max(min(own), 1e-9) for own in seconds)
        _SPEEDS[backbone.digest] = speed, usual, features
    return _SPEEDS[backbone.digest]


def _noise(side_px: int) -> list[Any]:
    return list(np.random.default_rng(0).integers(0, 256, (SHOWN, side_px, side_px, 3), dtype=np.uint8))
