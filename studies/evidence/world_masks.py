"""A U-Net from a pre-trained Lite0 against the ellipse in the middle, on a tiny world of fungi (simulated).

`unet` with the encoder of EfficientNet-Lite0 (ImageNet) at 128 px against `ellipse`, whose axes are chosen on train;
both on `fungitastic-mini/segmentation` of a tiny world, scored on test. The time is that of the whole fit of `unet`,
with predicting and scoring, in seconds on the machine that ran it, beside the time of its processors.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any, Literal

from fieldmark.fitting import fit
from fieldmark_worlds.layouts import fungitastic
from studies.evidence.results import rounded

NAME = "fungitastic-mini/segmentation"
SETTINGS: dict[str, Any] = {"size": 128, "epochs": 10, "batch": 8, "lr": 2e-3}
SEED = 0


def run(size: Literal["tiny", "small", "medium"] = "tiny") -> dict[str, Any]:
    """Both methods on one world."""
    with tempfile.TemporaryDirectory(prefix="fieldmark-world-") as name:
        root = Path(name, "world")
        fungitastic.write(root, size=size, seed=SEED)
        methods: dict[str, Any] = {}
        for method, settings in (("ellipse", {}), ("unet", SETTINGS)):
            started, used = time.monotonic(), time.process_time()
            result = fit(NAME, root, method, Path(name, method), settings=settings)
            methods[method] = {
                "settings": settings,
                "test": rounded(result.scorecard),
                "items": result.scorecard.items,
                "seconds": round(time.monotonic() - started, 1),
                "processor_seconds": round(time.process_time() - used, 1),
                "remarks": result.run.remarks,
            }
            print(method, methods[method], flush=True)
    return {"simulated": True, "about": " ".join(str(__doc__).split("\n\n")[1].split()), "methods": methods}
