"""Few photos per class of real birds, fungi and snakes: methods on frozen features, 1 to 8 photos, ten draws each.

Val decides every setting that is left open; with four photos per bird and nine per genus of fungi it is often larger
than what an episode trains on. Test is used for scores alone. `birds_cub_odd` has no taxonomy: the last word of the
English name (Warbler, Gull) stands for the genus. The default weight of `em` and the range of `borrow` in `prototypes`
were set while looking at training and val photos of these birds, never at test photos. Second order at three scales
("scales": all of the photo, the usual square, its middle) was chosen for `prototypes` among what takes at most three
looks at a photo: views, powers and other heads were compared on photos of train that draws of four had left over, on
all three sets; of these, any two would have chosen it for the third. `linear` and `em` are left out with flips and of
snakes, for the time they take.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.features.store import default_store
from fieldmark.suites.episodes import MethodEntry, plot_shots, run_episodes
from studies.evidence.results import ROOT, real_data

SHOTS, DRAWS = (1, 2, 4, 8), 10
METRICS = ("top_1", "macro_f1_all")
LITE0 = {"size": 160, "output": "features"}
# What episodes take where nothing is said about features.
AT_SCALES = {"size": 160, "output": "second-order", "views": "scales"}
SLOW = ("linear", "em")
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "1-NN": ("knn", {"k": 1, "vote": "majority"}),
    "5-NN, majority": ("knn", {"k": 5, "vote": "majority"}),
    "centroid": ("centroid", {}),
    "ridge": ("ridge", {}),
    "linear": ("linear", {}),
    "lda": ("lda", {}),
    "prototypes": ("prototypes", {}),
    "em": ("em", {}),
}
BY_SIZE_OF_CLASS = {
    "prototypes": ("prototypes", {}),
    "em": ("em", {}),
    "em, frequencies estimated": ("em", {"frequencies": "estimated"}),
}


def run() -> dict[str, Any] | None:
    """Means over draws, with intervals over draws and over test photos, for each set, method and number of photos."""
    birds, fungi, snakes = (real_data(name) for name in ("birds_cub_odd", "fungi_genera", "snakes_philippines"))
    if birds is None or fungi is None or snakes is None:
        return None
    quick = {name: one for name, one in METHODS.items() if name not in SLOW}
    flipped = {f"{name}, flips": (method, {**own, "views": "flips"}) for name, (method, own) in quick.items()}
    scaled = {f"{name}, scales": (name, AT_SCALES) for name in ("centroid", "lda", "prototypes")}
    sets = {}
    kept = default_store().parent / "evidence" / "fewshot"  # an interrupted study goes on from there
    with tempfile.TemporaryDirectory() as scratch:
        with_taxa, unbalanced = Path(scratch, "birds"), Path(scratch, "unbalanced")
        _with_taxa(birds, with_taxa)
        sets["birds_cub_odd"] = _episodes(with_taxa, METHODS | flipped | scaled, kept / "birds_cub_odd")
        sets["fungi_genera"] = _episodes(fungi, METHODS | flipped | scaled, kept / "fungi_genera")
        sets["snakes_philippines"] = _episodes(snakes, quick | scaled, kept / "snakes_philippines")
        _thin_out(with_taxa, unbalanced)
        sets["birds_cub_odd, unbalanced test"] = _episodes(unbalanced, BY_SIZE_OF_CLASS, kept / "unbalanced", (4,))
    for name in ("birds_cub_odd", "fungi_genera"):
        shown = {*METHODS, "prototypes, scales"}
        drawn = {**sets[name], "rows": [row for row in sets[name]["rows"] if row["name"] in shown]}
        title = f"{name}, frozen EfficientNet-Lite0 at 160 px"
        plot_shots(drawn, ROOT / "docs" / "images" / f"fewshot-{name}.png", metric="top_1", title=title)
    return {"simulated": False, "about": " ".join(str(__doc__).split("\n\n")[1].split()), "sets": sets}


def _episodes(
    data: Path, methods: dict[str, tuple[str, dict[str, Any]]], out: Path, shots: tuple[int, ...] = SHOTS
) -> dict[str, Any]:
    entries = [MethodEntry(name, method, {**LITE0, **own}) for name, (method, own) in methods.items()]
    found = run_episodes("folder", data, entries, out, shots=shots, draws=DRAWS).to_json()
    for row in found["rows"]:
        row["shots"] = {
            number: {metric: spreads[metric] for metric in METRICS} for number, spreads in row["shots"].items()
        }
    return found


def _with_taxa(birds: Path, folder: Path) -> None:
    """The same photos with a table that puts birds of the same last name into one genus."""
    shutil.copytree(birds, folder)
    labels = sorted({path.name for path in folder.glob("*/*") if path.is_dir()})
    rows = [f"{label},{label.rpartition('_')[2]}" for label in labels]
    (folder / "taxa.csv").write_text("\n".join(["label,genus", *rows]) + "\n", encoding="utf-8")


def _thin_out(source: Path, folder: Path) -> None:
    """The same with an unbalanced test set: the r-th species in drawn order keeps 30 / sqrt(r) photos at most."""
    shutil.copytree(source, folder)
    species = sorted(path for path in (folder / "test").iterdir() if path.is_dir())
    for rank, number in enumerate(np.random.default_rng(0).permutation(len(species)), start=1):
        photos = sorted(species[number].iterdir())
        for photo in photos[max(1, round(30 / rank**0.5)) :]:
            photo.unlink()
