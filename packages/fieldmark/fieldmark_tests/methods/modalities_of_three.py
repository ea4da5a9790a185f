"""Three species told by photo and habitat together: each alone confuses two of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View
from fieldmark_tests.lessons import part_of

LABELS = Labels(("a", "b", "c", "never seen"))


def make_part(seed: int, n: int, *, lacking: float = 0.0) -> Part:
    """Items with photo and habitat; a share of them lacks one or the other, none lacks both."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n).astype(np.int32)
    photo = np.eye(3, 6)[np.where(truth == 1, 0, truth)] + rng.normal(0, 0.3, (n, 6))  # a and b look alike
    habitat = np.eye(2)[(truth > 0).astype(int)] + rng.normal(0, 0.2, (n, 2))  # b and c live alike
    part = part_of([f"{seed}-{row}" for row in range(n)], truth)
    draw = rng.random(n)
    missing = {"photo": draw < lacking / 2, "habitat": draw > 1 - lacking / 2}
    features = {"photo": photo.astype(np.float32), "habitat": habitat.astype(np.float32)}
    for name, flags in missing.items():
        features[name][flags] = 0
    return replace(part, features=features, missing=missing)


def make_view(*, lacking: float = 0.0, items: int = 90) -> View:
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names}))
    train, val, test = (make_part(seed, items, lacking=lacking) for seed in (1, 2, 3))
    return View(LABELS, taxonomy, train, val, None, test)


def without(part: Part, *names: str) -> Part:
    """The part as if nobody knew anything of some inputs, not even how many numbers they would have."""
    missing = {name: np.ones(len(part), dtype=np.bool_) for name in names}
    nothing = {name: np.zeros((len(part), 0), dtype=np.float32) for name in names}
    return replace(part, features={**part.features, **nothing}, missing={**part.missing, **missing})


def accuracy(fitted, part: Part) -> float:
    return float((fitted.predict(part, LABELS).top(1)[:, 0] == part.truth).mean())
