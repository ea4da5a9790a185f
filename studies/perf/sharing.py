"""Several small trainings on one GPU: one alone, eight at once, and eight at once under NVIDIA's Multi-Process Service.

Each is EfficientNet-Lite0 at 224 px in batches of 64 with RandAugment, from a pack of its own process, in a process of
its own: what a search for settings or many seeds need. Without the service (MPS) the GPU works for one process at a
time, in turns. `python -m studies.perf.sharing OUT.json` runs on a machine that need not have more than torch.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.evidence.gpu_sharing import multi_process_service

AT_ONCE, STEPS, EPOCHS = 8, 50, 4
NETWORK, BATCH = "tf_efficientnet_lite0", 64


def run(keep: Callable[[dict[str, Any]], object] = lambda result: None) -> dict[str, Any]:
    """Photos per second of all trainings together, in three ways.

    Args:
        keep: Called with what is known after each way.
    """
    import torch

    result: dict[str, Any] = {"device": torch.cuda.get_device_name(), "network": f"{NETWORK}, batch {BATCH}"}
    result["at_once"], rates = AT_ONCE, result.setdefault("photos_per_s", {})
    with tempfile.TemporaryDirectory() as name:
        from studies.perf.camera_photos import write_camera_photos

        write_camera_photos(Path(name, "photos"), 64, 500)
        rates["one alone"] = together(1, Path(name))
        keep(result)
        rates[f"{AT_ONCE} at once"] = together(AT_ONCE, Path(name))
        keep(result)
        with multi_process_service(Path(name)) as environment:
            rates[f"{AT_ONCE} at once, MPS"] = together(AT_ONCE, Path(name), environment)
        keep(result)
    return result


def together(count: int, folder: Path, environment: dict[str, str] | None = None) -> float:
    """The sum of the rates of so many trainings, each the median of its epochs while all of them run."""
    barrier = Path(tempfile.mkdtemp(dir=folder))
    command = [sys.executable, "-m", "studies.perf.sharing", "train", str(folder), str(barrier)]
    settings = {**os.environ, **(environment or {})}
    started = [subprocess.Popen([*command, str(place)], env=settings) for place in range(count)]
    while len(list(barrier.glob("*.ready"))) < count and all(one.poll() is None for one in started):
        time.sleep(0.05)
    (barrier / "go").touch()
    if any(one.wait() for one in started):
        raise RuntimeError(f"one of {count} trainings failed")
    rate = round(sum(float(path.read_text()) for path in barrier.glob("*.rate")), 1)
    print(f"{count} trainings: {rate} photos/s", flush=True)
    return rate


def train_one(folder: Path, barrier: Path, name: str) -> None:
    """One of the trainings: gets ready, waits for the others, writes its rate."""
    import numpy as np

    from fieldmark.training.boxes import Crops
    from fieldmark.training.loop import train
    from fieldmark.training.networks import make_network
    from fieldmark.training.objectives import SingleLabel
    from fieldmark.training.packs import open_pack
    from fieldmark.training.photos import PhotoSource, PhotoTransform, pack_side
    from fieldmark.training.recipe import Training

    photos = folder / "photos"
    ids = sorted(str(path.relative_to(photos)) for path in photos.rglob("*.jpg"))
    pack = open_pack(ids, lambda one: (photos / one).read_bytes(), pack_side(224), "raw", barrier / f"packs{name}")
    rows = np.arange(STEPS * BATCH)
    source = PhotoSource(pack, rows % len(ids), (rows % 100).astype(np.int32), None, Crops("squash", 0.5, True))
    network = make_network(NETWORK, "random", classes=100, size=224)
    transform = PhotoTransform(224, (0.5,) * 3, (0.5,) * 3, 2, 9)
    how = Training(batch=BATCH, epochs=EPOCHS, workers=1, schedule="constant", best_by="last")
    (barrier / f"{name}.ready").touch()
    while not (barrier / "go").exists():
        time.sleep(0.01)
    scratch = barrier / f"scratch{name}"
    trained = train(network, source, None, transform, how, objective=SingleLabel(100), scratch=scratch)
    # The first epoch begins when others have not begun, the last one ends when others have ended.
    rates = [float(line["examples_per_s"]) for line in trained.epochs[1:-1]]
    (barrier / f"{name}.rate").write_text(str(statistics.median(rates)))


def main() -> None:
    """Measures, or is one of the trainings."""
    if sys.argv[1] == "train":
        train_one(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
        return
    from studies.perf.jobs import JOBS
    from studies.perf.machine import about_machine

    about, out = about_machine(JOBS["sharing"].packages), Path(sys.argv[1])
    run(lambda result: out.write_text(json.dumps({**about, **result}, indent=2)))


if __name__ == "__main__":
    main()
