"""What a model costs here: memory, parameters, features, photos per second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.models import Model

# Photos of noise that are shown to a backbone, and how often: the best of some tries is the least disturbed.
SHOWN, TRIES = 8, 3
_SPEEDS: dict[str, tuple[float, int]] = {}
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
    features, seconds = sum(count for _, count in speeds), sum(1 / speed for speed, _ in speeds)
    return {"parameters": parameters, "features": features, "photos_per_second": round(1 / seconds, 1)}


def _parameters(network: Any) -> int:
    """The number of weights: of a network of torch, or of a packaged one, which holds arrays by name."""
    if hasattr(network, "tensors"):
        return sum(int(array.size) for array in network.tensors.values())
    return sum(int(weights.numel()) for weights in network.parameters())


def _speed(backbone: Any) -> tuple[float, int]:
    """Photos per second through a backbone on this machine, decoding aside; and how many features each has."""
    if backbone.digest not in _SPEEDS:
        side = int(backbone.preprocessing.size_px)
        noise = list(np.random.default_rng(0).integers(0, 256, (SHOWN, side, side, 3), dtype=np.uint8))
        seconds, outputs = [], {}
        for _ in range(TRIES):
            start = time.perf_counter()
            outputs = backbone(noise)
            seconds.append(time.perf_counter() - start)
        _SPEEDS[backbone.digest] = SHOWN / min(seconds), int(outputs["features"].shape[1])
    return _SPEEDS[backbone.digest]
