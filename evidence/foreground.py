"""Does a classifier look at the butterfly? Real photos, the object alone, and what surrounds it.

The five species of the Leeds butterflies (414 photos, parts drawn with a seed: 250 train, 62 val, 102 test), `linear`
on features of a frozen EfficientNet-Lite0 at 160 px, with the true masks. Learned from and shown the same kind of
picture, and learned from whole photos and shown another kind. Differences are paired over photos, with 95 % intervals.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from evidence.results import real_data
from fieldmark.features.settings import FeatureSettings
from fieldmark.verbs.foreground import study_foreground

SIZE_PX = 160
METRICS = ("macro_f1_all", "top_1")


def run() -> dict[str, Any] | None:
    """The study on the butterflies, where they are given."""
    data = real_data("butterflies_leeds")
    if data is None:
        return None
    with tempfile.TemporaryDirectory(prefix="fieldmark-butterflies-") as name:
        photos, masks = Path(name, "photos"), Path(name, "masks")
        masks.mkdir()
        for path in sorted((data / "images").glob("*.jpg")):
            (photos / path.stem[:3]).mkdir(parents=True, exist_ok=True)
            (photos / path.stem[:3] / path.name).symlink_to(path.resolve())
            (masks / f"{path.stem}.png").symlink_to((data / "masks" / f"{path.stem}_seg0.png").resolve())
        study = study_foreground("folder", photos, masks=str(masks), settings=FeatureSettings(size=SIZE_PX))
    rows = []
    for row in study.rows:
        found = {name: row.card.metrics[name] for name in METRICS}
        scores = {name: [_rounded(end) for end in (one.value, one.low, one.high)] for name, one in found.items()}
        difference = None if row.difference is None else [_rounded(number) for number in row.difference]
        rows.append({"learned": row.learned, "shown": row.shown, **scores, "difference": difference})
    return {
        "simulated": False,
        "about": " ".join(str(__doc__).split("\n\n")[1].split()),
        "photos": study.rows[0].card.items,
        "median_share_of_photo": round(study.covers, 3),
        "rows": rows,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
