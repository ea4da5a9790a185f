"""How often the packaged network tells bird, fungus, snake, plant, insect and mammal, and when it warns (real photos).

Decided before any answer was looked at: the sets and how many photos of each species (`SETS`, the first by name), which
photos of Amanita show no mushroom in the field (`amanita_views.csv`, by eye: field sheets, microscopy, mere habitat),
and that the species of each set are taken in turn, in the order of their names: the first, third, fifth ... measure,
the others choose. No photo of a species that measures had a say in anything here.

The rule (`packaged.photo_groups`) is fitted to no photo. Its round numbers (what plants and other things count, the
power, the class that shows plants, two looks in place of one, the lines) were settled on the photos that choose;
`lines_tried` says what other lines do there. Beside it stands a linear head on the features of the network, fitted to
the photos that choose: it is better, and is not shipped. Those photos are for research only; and as each group comes
from one or two sets, such a head can learn the set in place of the group.

"Other" are sample pictures of scikit-image and scikit-learn that show no organism, or a person.

Intervals: exact (Clopper-Pearson) over photos, and a jackknife over species, of which there are few.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from scipy.stats import t as student

from fieldmark.features.settings import FeatureSettings
from fieldmark.identification.danger_notices import DangerQuestion, danger_notice
from fieldmark.identification.label_facts import LabelFacts
from fieldmark.identification.packaged.photo_groups import BACKBONE, GROUPS, PLAUSIBLE, chances_of, squares_of
from fieldmark.identification.photo_answers import UnknownVerdict
from fieldmark.identification.taxon_records import TaxonRecords
from fieldmark.identification.text import CONFIDENCE_WORDS, confidence_word
from fieldmark.models.guides.dangers import allowed_by
from fieldmark.models.guides.living_groups import BIRDS, FUNGI, INSECTS, MAMMALS, OTHER, PLANTS, SNAKES
from fieldmark.models.supply.sources import load_backbone
from fieldmark.registry import require
from fieldmark.storage.file_cache import cache_root
from fieldmark.tables.media import PHOTO
from studies.evidence.results import real_data

VIEWS_FILE = Path(__file__).with_name("amanita_views.csv")
MISSED_TRIED = (0.01, 0.02, 0.03, 0.05)
DANGEROUS = (FUNGI, SNAKES)
# The linear head: scikit-learn's C, of four tried by cross-validation over species on the photos that choose.
HEAD_C = 1e-4
# Sample pictures without an organism: of scikit-image, and of scikit-learn.
SAMPLES = {
    "skimage": (
        "data",
        "astronaut.png brick.png camera.png cell.png clock_motion.png coffee.png coins.png color.png gravel.png "
        "hubble_deep_field.jpg ihc.png moon.png motorcycle_left.png page.png retina.jpg rocket.jpg text.png",
    ),
    "sklearn": ("datasets/images", "china.jpg"),
}

Floats = NDArray[np.float64]


class Seen(NamedTuple):
    """Photos of one set: what they show, of which species each is, and what the network says at each look."""

    group: str
    species: list[str]
    logits: Sequence[NDArray[Any]]
    features: NDArray[Any]

    @property
    def measures(self) -> NDArray[np.bool_]:
        """Whether each photo measures; the others choose."""
        order = sorted(set(self.species))
        return np.array([order.index(one) % 2 == 0 for one in self.species])


def _by_folder(*patterns: str) -> Callable[[Path], Iterator[tuple[str, Path]]]:
    """Photos below folders that are called after their species; those of earlier patterns first."""

    def photos(root: Path) -> Iterator[tuple[str, Path]]:
        for pattern in patterns:
            for path in sorted(root.glob(pattern)):
                if PHOTO.owns(path):
                    yield path.parent.name, path

    return photos


def _butterflies(root: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted((root / "images").iterdir()):
        yield path.name[:3], path


def _amanita(root: Path) -> Iterator[tuple[str, Path]]:
    """The first three photos of each specimen, without field sheets, microscopy and mere habitat."""
    with VIEWS_FILE.open(encoding="utf-8") as file:
        left_out = {row["file"] for row in csv.DictReader(file)}
    taken: dict[str, int] = {}
    with (root / "images_with_metadata.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            path, specimen = root / row["file"], row["specimen_id"]
            if path.is_file() and taken.setdefault(specimen, 0) < 3:
                taken[specimen] += 1
                if row["file"].removeprefix("specimens/") not in left_out:
                    yield path.parts[-3], path


# The set, what it shows, its photos, and how many of each species.
SETS: Mapping[str, tuple[str, Callable[[Path], Iterator[tuple[str, Path]]], int]] = {
    "birds_cub_odd": (BIRDS, _by_folder("test/*/*"), 8),
    "fungi_genera": (FUNGI, _by_folder("*/*"), 60),
    "fungi_amanita": (FUNGI, _amanita, 999),
    "snakes_philippines": (SNAKES, _by_folder("test/*/*", "val/*/*", "train/*/*"), 60),
    "plants_sheets_and_field": (PLANTS, _by_folder("test/*/*", "train/photo/*/*"), 10),
    "butterflies_leeds": (INSECTS, _butterflies, 60),
    "camera_traps_jura": (MAMMALS, _by_folder("*/*/*"), 999),
}


def run() -> dict[str, Any] | None:
    """The rates on the photos that measure, of the rule and of a head that was fitted to those that choose."""
    folders = {name: real_data(name) for name in SETS}
    if None in folders.values():
        return None
    sets = {name: _seen(name, folder) for name, folder in folders.items() if folder is not None}
    rule = {name: chances_of(one.logits) for name, one in sets.items()}
    measured = {name: _measured(one, rule[name], PLAUSIBLE) for name, one in sets.items()}
    by_group = _by_group(measured)
    head, lines = _fitted_head(sets)
    fitted = _by_group({name: _measured(one, head[name], lines) for name, one in sets.items()})
    return {
        "chosen_on": {name: int((~one.measures).sum()) for name, one in sets.items()},
        "lines_tried": _lines_tried(sets, rule),
        "sets": {name: _rates(one) for name, one in measured.items()},
        "groups": {group: _rates(one) for group, one in by_group.items()},
        "told_as": {group: _told_as(one) for group, one in by_group.items()},
        "words": _words(list(by_group.values())),
        "other": _other(),
        "fitted_head": {
            "lines": {group: round(line, 4) for group, line in lines.items()},
            "groups": {group: _rates(one) for group, one in fitted.items()},
        },
    }


def _seen(name: str, root: Path) -> Seen:
    group, photos, most = SETS[name]
    counts: dict[str, int] = {}
    kept = []
    for species, path in photos(root):
        counts[species] = counts.get(species, 0) + 1
        if counts[species] <= most:
            kept.append((species, path))
    return Seen(group, [species for species, _ in kept], *_looked_at(name, [path for _, path in kept]))


def _looked_at(name: str, paths: Sequence[Path]) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """The logits of both looks at each photo, and the features of the first; kept in the cache set by set."""
    kept = cache_root() / "studies" / f"living_groups-{name}.npz"
    if not kept.exists():
        network, rows = load_backbone(FeatureSettings(BACKBONE)), []
        for path in paths:
            middle, whole = (network([square]) for square in squares_of(path.read_bytes(), network.preprocessing))
            rows.append((middle["logits"][0], whole["logits"][0], middle["features"][0]))
        middles, wholes, features = (np.stack(column) for column in zip(*rows, strict=True))
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept, middle=middles, whole=wholes, features=features)
    with np.load(kept) as held:
        return [held["middle"], held["whole"]], held["features"]


def _lines_tried(sets: Mapping[str, Seen], chances: Mapping[str, Floats]) -> dict[str, Any]:
    """On the photos that choose: lines below which some share of fungi and of snakes lies, and whom they warn of."""
    own = _of_choosing(sets, chances)
    tried = {"chosen": dict(PLAUSIBLE)} | {str(missed): _quantiles(own, missed) for missed in MISSED_TRIED}
    return {
        name: {
            "lines": {group: round(line, 4) for group, line in lines.items()},
            "whole_notices": {group: round(float(_warned(rows, lines).mean()), 4) for group, rows in own.items()},
        }
        for name, lines in tried.items()
    }


def _of_choosing(sets: Mapping[str, Seen], chances: Mapping[str, Floats]) -> dict[str, Floats]:
    rows: dict[str, list[Floats]] = {}
    for name, one in sets.items():
        rows.setdefault(one.group, []).append(chances[name][~one.measures])
    return {group: np.concatenate(own) for group, own in rows.items()}


def _quantiles(chances: Mapping[str, Floats], missed: float) -> dict[str, float]:
    return {one: float(np.quantile(chances[one][:, GROUPS.index(one)], missed)) for one in DANGEROUS}


def _warned(chances: Floats, lines: Mapping[str, float]) -> NDArray[np.bool_]:
    """Whether a fungus or a snake is plausible in each photo."""
    reached = [chances[:, GROUPS.index(group)] >= line for group, line in lines.items()]
    return np.asarray(np.logical_or.reduce(reached))


def _fitted_head(sets: Mapping[str, Seen]) -> tuple[dict[str, Floats], dict[str, float]]:
    """The chances of groups by a linear head on features that was fitted to the photos that choose, and its lines.

    The lines are drawn at answers to species that were left out of the fit.
    """
    linear: Any = require("sklearn.linear_model", "A linear head")
    selection: Any = require("sklearn.model_selection", "A linear head")
    features = np.concatenate([one.features[~one.measures] for one in sets.values()]).astype(np.float32)
    groups = np.concatenate([[one.group] * int((~one.measures).sum()) for one in sets.values()])
    species = np.concatenate([np.array(one.species)[~one.measures] for one in sets.values()])
    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-6
    head = linear.LogisticRegression(C=HEAD_C, class_weight="balanced", max_iter=300)
    folds = selection.cross_val_predict(
        head, (features - mean) / spread, groups, groups=species, cv=selection.GroupKFold(3), method="predict_proba"
    )
    head.fit((features - mean) / spread, groups)

    def columns(chances: Floats) -> Floats:
        spread_out = np.zeros((len(chances), len(GROUPS)))
        spread_out[:, [GROUPS.index(name) for name in head.classes_]] = chances
        return spread_out

    left_out = {group: columns(folds)[groups == group] for group in DANGEROUS}
    answers = {name: columns(head.predict_proba((one.features - mean) / spread)) for name, one in sets.items()}
    return answers, _quantiles(left_out, 0.02)


def _other() -> dict[str, Any] | None:
    """What is said about pictures without an organism; None where their packages are not installed."""
    found = {package: find_spec(package) for package in SAMPLES}
    paths = [
        Path(spec.origin).parent / SAMPLES[package][0] / name
        for package, spec in found.items()
        if spec is not None and spec.origin is not None
        for name in SAMPLES[package][1].split()
    ]
    if len(paths) < sum(len(names.split()) for _, names in SAMPLES.values()):
        return None
    logits, _ = _looked_at("other", paths)
    chances = chances_of(logits)
    notices = [_notice(row, PLAUSIBLE) for row in chances]
    told = np.bincount(chances.argmax(axis=1), minlength=len(GROUPS))
    return {
        "pictures": len(paths),
        "told_right": int(told[GROUPS.index(OTHER)]),
        "told_as": {group: int(number) for group, number in zip(GROUPS, told, strict=True)},
        "whole_notice": notices.count("whole"),
        "nothing_said": notices.count("nothing"),
    }


class Measured(NamedTuple):
    """What was said about the photos of a set, or a group, that measure."""

    group: str
    species: NDArray[Any]
    chances: Floats
    notice: NDArray[Any]

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.asarray(self.chances.argmax(axis=1) == GROUPS.index(self.group))


def _measured(one: Seen, chances: Floats, lines: Mapping[str, float]) -> Measured:
    own = chances[one.measures]
    notices = np.array([_notice(row, lines) for row in own])
    return Measured(one.group, np.array(one.species)[one.measures], own, notices)


def _notice(row: Floats, lines: Mapping[str, float]) -> str:
    """What is said where a model answers that knows nothing dangerous and is sure of nothing."""
    facts = LabelFacts((), (), np.zeros(0, np.bool_), TaxonRecords(()))
    seen = dict(zip(GROUPS, row.tolist(), strict=True))
    question = DangerQuestion(facts, np.zeros(0), allowed_by(), UnknownVerdict(None), None, seen, lines)
    notice = danger_notice(question, lambda _: ())
    return "nothing" if notice is None else "line" if notice.brief else "whole"


def _by_group(sets: Mapping[str, Measured]) -> dict[str, Measured]:
    groups: dict[str, list[Measured]] = {}
    for one in sets.values():
        groups.setdefault(one.group, []).append(one)
    return {
        group: Measured(group, *(np.concatenate([getattr(one, name) for one in own]) for name in Measured._fields[1:]))
        for group, own in groups.items()
    }


def _rates(one: Measured) -> dict[str, Any]:
    shown = {
        "photos": len(one.species),
        "species": len(set(one.species)),
        "told_right": _share(one.right, one.species),
        "whole_notice": _share(one.notice == "whole", one.species),
        "nothing_said": _share(one.notice == "nothing", one.species),
    }
    if one.group in DANGEROUS:
        shown["no_whole_notice"] = _share(one.notice != "whole", one.species)
    return shown


def _share(is_so: NDArray[np.bool_], species: NDArray[Any]) -> dict[str, Any]:
    """How many of how many, the exact interval over photos, and one over species by the jackknife."""
    number, of = int(is_so.sum()), len(is_so)
    low = float(betaincinv(number, of - number + 1, 0.025)) if number else 0.0
    high = float(betaincinv(number + 1, of - number, 0.975)) if number < of else 1.0
    names = sorted(set(species))
    without = np.array([is_so[species != name].mean() for name in names])
    units = len(names)
    spread = float(np.sqrt((units - 1) / units * np.square(without - without.mean()).sum()))
    reach = float(student.ppf(0.975, units - 1)) * spread
    share = number / of
    return {
        "number": number,
        "share": round(share, 4),
        "over_photos": [round(low, 4), round(high, 4)],
        "over_species": [round(max(share - reach, 0.0), 4), round(min(share + reach, 1.0), 4)],
    }


def _told_as(one: Measured) -> dict[str, int]:
    counts = np.bincount(one.chances.argmax(axis=1), minlength=len(GROUPS))
    return {group: int(number) for group, number in zip(GROUPS, counts, strict=True)}


def _words(groups: Sequence[Measured]) -> dict[str, Any]:
    """Of the groups that were told with each word, how many there were, and how many were right."""
    said = np.concatenate([[confidence_word(float(row.max())) for row in one.chances] for one in groups])
    right = np.concatenate([one.right for one in groups])
    stated = np.concatenate([one.chances.max(axis=1) for one in groups])
    return {
        word: {
            "given": int((said == word).sum()),
            "right": int(right[said == word].sum()),
            "stated": round(float(stated[said == word].mean()), 4) if (said == word).any() else None,
        }
        for _, word in CONFIDENCE_WORDS
    }
