"""The same as `field_guide` for photos as large as those of phones, which decoders of JPEG reduce while they read.

Real photos of that size are not at hand: snakes of the test part are enlarged to a short side of 1,344 px (bicubic),
noise as of a sensor is added (standard deviation 6 of 255), and they are stored as JPEG of quality 90. `identify` lets
the decoder give a quarter of the size; a browser always decodes all of it, and the guide averages blocks instead.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fieldmark.fitting import fit
from fieldmark.identification import identify
from fieldmark.identification.field_guide.export import export_guide
from fieldmark.models import load_model
from studies.evidence.field_guide import MODELS, SAME, SEED, asked, browser, compared, served, test_photos
from studies.evidence.results import real_data

SHORT_SIDE, NOISE, QUALITY = 1344, 6.0, 90


def enlarged(photo: Path, rng: np.random.Generator) -> bytes:
    """A photo as a phone might have taken it."""
    with Image.open(photo) as opened:
        scale = SHORT_SIDE / min(opened.size)
        size = round(opened.width * scale), round(opened.height * scale)
        large = np.asarray(opened.convert("RGB").resize(size, Image.Resampling.BICUBIC), dtype=np.float32)
    noisy = np.clip(large + rng.normal(0, NOISE, large.shape), 0, 255).astype(np.uint8)
    written = io.BytesIO()
    Image.fromarray(noisy).save(written, "JPEG", quality=QUALITY)
    return written.getvalue()


def run() -> dict[str, Any] | None:
    """Asks about every photo twice."""
    place, method = MODELS["snakes"]
    root = real_data(place)
    if root is None:
        return None
    rng, rows = np.random.default_rng(SEED), []
    with tempfile.TemporaryDirectory() as name, browser() as chromium:
        folder = Path(name)
        fit("folder", root, method, folder / "run")
        model = load_model(folder / "run")
        export_guide(folder / "run", folder / "guide", weights="single")
        with served(folder / "guide") as address:
            page = chromium.new_context().new_page()
            page.goto(address)
            page.wait_for_selector("html[data-ready=yes]")
            for number, photo in enumerate(test_photos(model, root)):
                file = folder / f"{number}.jpg"
                file.write_bytes(enlarged(photo, rng))
                said = asked(page, [file.read_bytes()])[0]["answer"]
                rows.append(compared(said, identify(file, model, ask_groups=False).to_json()))
    differences = [row["difference"] for row in rows]
    return {
        "question": "does a field guide answer as identify does for photos as large as those of phones?",
        "photos": len(rows),
        "short_side_px": SHORT_SIDE,
        "same": {key: sum(row[key] for row in rows) for key in SAME},
        "within_0_01": sum(one <= 0.01 for one in differences),
        "median_difference": round(float(np.median(differences)), 6),
        "largest_difference": round(max(differences), 6),
    }
