"""Does a classifier look at the butterfly, or at the mushroom? Photos, the object alone, what surrounds it, and parts.

The five species of the Leeds butterflies (414 photos, parts drawn with a seed: 250 train, 62 val, 102 test), `linear`
on features of a frozen EfficientNet-Lite0 at 160 px, with the true masks. Learned from and shown the same kind of
picture, and learned from whole photos and shown another kind. Differences are paired over photos, with 95 % intervals.

With 250 labels these species are told apart without a fault, so that crops cannot help. With 2 labels a species, drawn
five times (2 more for val, the 102 photos of test are always the same), masks come from the release, from saliency and
from MobileSAM (shown the box of saliency). Means over the draws; intervals are those of draws, by t.

Parts of fruiting bodies are known in worlds of fungi alone (simulated): five tiny worlds, the masks of the release.
Intervals are those of worlds, by t.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy import stats

from fieldmark.features.settings import FeatureSettings
from fieldmark.suites.foreground import ForegroundStudy, study_foreground
from fieldmark_worlds.layouts import fungitastic
from studies.evidence.butterflies import drawn, look_at, saliency_looks, sam_looks
from studies.evidence.results import real_data

SIZE_PX = 160
METRICS = ("macro_f1_all", "top_1")
LABELS_EACH, DRAWS, WORLDS = 2, 5, 5
# How the butterflies study draws a mask by each source.
DRAWN_AS = {"saliency": ("saliency, mirrored", (0.5,)), "sam": ("sam", ("saliency-box",))}


def run(limit_s: float = 3600.0) -> dict[str, Any] | None:
    """The study on the butterflies, where they are given, and on worlds."""
    data = real_data("butterflies_leeds")
    if data is None:
        return None
    sentences = [" ".join(part.split()) for part in str(__doc__).split("\n\n")[1:]]
    settings = FeatureSettings(size=SIZE_PX)
    photos = sorted((data / "images").glob("*.jpg"))
    with tempfile.TemporaryDirectory(prefix="fieldmark-butterflies-") as name:
        masks = {"release": Path(name, "release")}
        masks["release"].mkdir()
        for path in photos:
            (masks["release"] / f"{path.stem}.png").symlink_to((data / "masks" / f"{path.stem}_seg0.png").resolve())
        _link(photos, Path(name, "all"))
        study = study_foreground("folder", Path(name, "all"), masks=str(masks["release"]), settings=settings)
        masks |= {source: _draw(photos, source, Path(name, source), limit_s) for source in DRAWN_AS}
        few = _few_labels(photos, masks, Path(name), settings)
    return {
        "simulated": False,
        "about": sentences[0],
        "photos": study.rows[0].card.items,
        "median_share_of_photo": round(study.covers, 3),
        "rows": _rows(study),
        "few_labels": {"about": sentences[1], "rows": few},
        "worlds": {"simulated": True, "about": sentences[2], "rows": _worlds(settings)},
    }


def _link(photos: Sequence[Path], root: Path) -> None:
    for path in photos:
        (root / path.stem[:3]).mkdir(parents=True, exist_ok=True)
        (root / path.stem[:3] / path.name).symlink_to(path.resolve())


def _draw(photos: Sequence[Path], source: str, out: Path, limit_s: float) -> Path:
    """Masks of all photos as pictures, from what networks saw in them, which is kept."""
    kept = Path.home() / ".cache/fieldmark/evidence/butterflies"
    kept.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + limit_s
    look_at(photos, kept, "saliency", saliency_looks, until)
    if source == "sam":
        look_at(photos, kept, "sam", sam_looks, until)
    family, setting = DRAWN_AS[source]
    out.mkdir()
    for path in photos:
        with Image.open(path) as photo:
            mask = drawn(family, [setting], photo.convert("RGB"), kept / path.stem)[0]
        Image.fromarray(mask).save(out / f"{path.stem}.png")
    return out


def _few_labels(
    photos: Sequence[Path], masks: dict[str, Path], folder: Path, settings: FeatureSettings
) -> list[dict[str, Any]]:
    """Top-1 of each kind of picture by each source of masks, over draws of labels."""
    rng = np.random.default_rng(0)
    by_species: dict[str, list[Path]] = {}
    for path in photos:
        by_species.setdefault(path.stem[:3], []).append(path)
    order = {species: rng.permutation(len(paths)) for species, paths in by_species.items()}
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for draw in range(DRAWS):
        root = folder / f"draw-{draw}"
        for species, paths in by_species.items():
            tested = order[species][: len(paths) // 4]
            rest = np.random.default_rng(1 + draw).permutation(order[species][len(paths) // 4 :])
            parts = {"test": tested, "train": rest[:LABELS_EACH], "val": rest[LABELS_EACH : 2 * LABELS_EACH]}
            for part, rows in parts.items():
                _link([paths[row] for row in rows], root / part)
        for source, masked in masks.items():
            study = study_foreground("folder", root, masks=str(masked), settings=settings)
            whole = study.rows[0].card.metrics["top_1"].value
            for row in study.rows:
                value = row.card.metrics["top_1"].value
                found.setdefault((source, row.learned, row.shown), []).append((value, value - whole))
    return [
        {"masks": source, "learned": learned, "shown": shown, "top_1": _mean(pairs, 0), "difference": _mean(pairs, 1)}
        for (source, learned, shown), pairs in found.items()
    ]


def _worlds(settings: FeatureSettings) -> list[dict[str, Any]]:
    """Macro-F1 of each kind of picture, parts among them, over worlds."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in range(WORLDS):
        with tempfile.TemporaryDirectory(prefix="fieldmark-world-") as name:
            root = Path(name, "world")
            fungitastic.write(root, size="tiny", seed=seed)
            study = study_foreground("fungitastic-mini/closed", root, settings=settings)
        whole = study.rows[0].card.metrics["macro_f1_all"].value
        for row in study.rows:
            value = row.card.metrics["macro_f1_all"].value
            found.setdefault((row.learned, row.shown), []).append((value, value - whole))
        print("world", seed, study.parts, flush=True)
    return [
        {"learned": learned, "shown": shown, "macro_f1_all": _mean(pairs, 0), "difference": _mean(pairs, 1)}
        for (learned, shown), pairs in found.items()
    ]


def _mean(pairs: Sequence[tuple[float, float]], column: int) -> list[float | None]:
    """The mean of a column and its 95 % interval by t, within what scores and differences can be.

    There is no interval where all values are the same.
    """
    values = np.array(pairs)[:, column]
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    reach = stats.t.ppf(0.975, max(1, len(values) - 1)) * error
    low, high = (0.0, 1.0) if column == 0 else (-1.0, 1.0)
    ends = [max(low, values.mean() - reach), min(high, values.mean() + reach)] if reach else [None, None]
    return [_rounded(end) for end in (values.mean(), *ends)]


def _rows(study: ForegroundStudy) -> list[dict[str, Any]]:
    rows = []
    for row in study.rows:
        found = {name: row.card.metrics[name] for name in METRICS}
        scores = {name: [_rounded(end) for end in (one.value, one.low, one.high)] for name, one in found.items()}
        difference = None if row.difference is None else [_rounded(number) for number in row.difference]
        rows.append({"learned": row.learned, "shown": row.shown, **scores, "difference": difference})
    return rows


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 4)
