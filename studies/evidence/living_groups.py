"""How often the packaged network tells bird, fungus, snake, plant, insect and mammal, and when it warns (real photos).

Decided before any answer was looked at: the sets and how many photos of each species (`SETS`, the first by name), which
photos of Amanita show no mushroom in the field (`amanita_views.csv`, by eye: field sheets, microscopy, mere habitat),
and that the species of each set are taken in turn, in the order of their names: the first, third, fifth ... measure,
the others choose. No photo of a species that measures had a say in anything here.

On those that choose, each group weighing the same, one factor and a shift for each group are fitted (`GroupScale`; the
shifts are drawn to those that undo the number of classes of each group), and the lines from which on a fungus or a
snake is plausible: where 2 % of such photos lie below. It would be 1 % if false notices allowed it; `lines_tried` says
what either does on the photos that choose, and only the chosen lines were measured. There are no photos of anything
else ("other"): how often that is told was not measured, and its shift is fitted as a rest alone.

Intervals: exact (Clopper-Pearson) over photos, and a jackknife over species, of which there are few.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaincinv
from scipy.stats import t as student

from fieldmark.identification.danger_notices import DangerQuestion, danger_notice
from fieldmark.identification.label_facts import LabelFacts
from fieldmark.identification.packaged import imagenet_taxa, photo_groups
from fieldmark.identification.packaged.imagenet_model import imagenet_model
from fieldmark.identification.packaged.photo_groups import GROUPS, WEIGHED, GroupScale, group_logs, group_of_class
from fieldmark.identification.photo_answers import UnknownVerdict
from fieldmark.identification.taxon_records import TaxonRecords
from fieldmark.identification.text import CONFIDENCE_WORDS, confidence_word
from fieldmark.models.guides.dangers import allowed_by
from fieldmark.models.guides.living_groups import BIRDS, FUNGI, INSECTS, MAMMALS, PLANTS, SNAKES
from fieldmark.questions.items import loose_items
from fieldmark.storage.files import write_json
from fieldmark.tables.media import PHOTO
from fieldmark.views.parts import Part, loose_media
from studies.evidence.results import real_data

SCALE_FILE = Path(imagenet_taxa.__file__).with_name("imagenet_groups.json")
VIEWS_FILE = Path(__file__).with_name("amanita_views.csv")
MISSED, MISSED_TRIED = 0.02, (0.01, 0.02, 0.05)
RIDGE = 0.01
DANGEROUS = (FUNGI, SNAKES)

Floats = NDArray[np.float64]


class Seen(NamedTuple):
    """Photos of one set: what they show, of which species each is, and the features of the packaged network."""

    group: str
    species: list[str]
    features: NDArray[np.float32]

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
    """The scale and its lines from the photos that choose, and the rates on those that measure."""
    folders = {name: real_data(name) for name in SETS}
    if None in folders.values():
        return None
    sets = {name: _seen(name, folder) for name, folder in folders.items() if folder is not None}
    chosen = {name: _logits(one)[~one.measures] for name, one in sets.items()}
    scale, tried = _choose(chosen)
    shift = {name: round(value, 4) for name, value in zip(WEIGHED, scale.shift, strict=True)}
    write_json(SCALE_FILE, {"factor": round(scale.factor, 4), "shift": shift, "plausible": scale.plausible})
    photo_groups.group_scale.cache_clear()
    measured = {name: _measured(one, scale) for name, one in sets.items()}
    by_group = _by_group(measured)
    return {
        "chosen_on": {name: len(logits) for name, logits in chosen.items()},
        "scale": json.loads(SCALE_FILE.read_text(encoding="utf-8")),
        "lines_tried": tried,
        "sets": {name: _rates(one) for name, one in measured.items()},
        "groups": {group: _rates(one) for group, one in by_group.items()},
        "told_as": {group: _told_as(one) for group, one in by_group.items()},
        "words": _words(list(by_group.values())),
    }


def _seen(name: str, root: Path) -> Seen:
    group, photos, most = SETS[name]
    counts: dict[str, int] = {}
    kept = []
    for species, path in photos(root):
        counts[species] = counts.get(species, 0) + 1
        if counts[species] <= most:
            kept.append((species, path))
    paths = [path for _, path in kept]
    part = Part(loose_items(paths), media=loose_media(PHOTO, paths))
    source = imagenet_model().supply.main
    assert source is not None
    return Seen(group, [species for species, _ in kept], source.supply(part).features[PHOTO.name])


def _logits(one: Seen) -> NDArray[Any]:
    arrays = imagenet_model().fitted.arrays
    return np.asarray(one.features @ arrays["weight"].T + arrays["bias"])


def _choose(logits: Mapping[str, NDArray[Any]]) -> tuple[GroupScale, dict[str, Any]]:
    """The scale from the photos that choose, and what other lines would do there."""
    logs: dict[str, list[Floats]] = {group: [] for group in GROUPS}
    for name, own in logits.items():
        logs[SETS[name][0]].append(group_logs(own))
    whole = {group: np.concatenate(own) for group, own in logs.items() if own}
    even = -np.log(np.bincount(group_of_class(), minlength=len(WEIGHED)))

    def loss(values: Floats) -> float:
        shift = _shift(values)
        told = [_log_chance(values[0] * own + shift, GROUPS.index(group)).mean() for group, own in whole.items()]
        return float(-sum(told) + RIDGE * np.square(shift - even).sum())

    found = minimize(loss, np.concatenate([[1.0], even[:-1]])).x
    scale = GroupScale(float(found[0]), tuple(_shift(found).tolist()), {})
    chances = {group: scale.chances(np.concatenate(_of(group, logits))) for group in whole}
    lines = {
        missed: {one: float(np.quantile(chances[one][:, GROUPS.index(one)], missed)) for one in DANGEROUS}
        for missed in MISSED_TRIED
    }
    tried = {
        str(missed): {group: round(float(_warned(own, at).mean()), 4) for group, own in chances.items()}
        for missed, at in lines.items()
    }
    plausible = {group: round(line, 4) for group, line in lines[MISSED].items()}
    return GroupScale(scale.factor, scale.shift, plausible), {"whole_notices": tried, "lines": lines}


def _of(group: str, logits: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    return [own for name, own in logits.items() if SETS[name][0] == group]


def _shift(values: Floats) -> Floats:
    """The shifts: one for each group, with one for all that is something else or nothing alive."""
    return np.concatenate([values[1:], values[-1:]])


def _log_chance(scores: Floats, place: int) -> Floats:
    most = scores.max(axis=1)
    return np.asarray(scores[:, place] - most - np.log(np.exp(scores - most[:, None]).sum(axis=1)))


def _warned(chances: Floats, lines: Mapping[str, float]) -> NDArray[np.bool_]:
    """Whether a fungus or a snake is plausible in each photo."""
    reached = [chances[:, GROUPS.index(group)] >= line for group, line in lines.items()]
    return np.asarray(np.logical_or.reduce(reached))


class Measured(NamedTuple):
    """What was said about the photos of a set, or a group, that measure."""

    group: str
    species: NDArray[Any]
    chances: Floats
    notice: NDArray[Any]

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.asarray(self.chances.argmax(axis=1) == GROUPS.index(self.group))


def _measured(one: Seen, scale: GroupScale) -> Measured:
    keep = one.measures
    chances = scale.chances(_logits(one)[keep])
    species = np.array(one.species)[keep]
    return Measured(one.group, species, chances, np.array([_notice(row) for row in chances]))


def _notice(row: Floats) -> str:
    """What is said where a model answers that knows nothing dangerous and is sure of nothing."""
    facts = LabelFacts((), (), np.zeros(0, np.bool_), TaxonRecords(()))
    seen = dict(zip(GROUPS, row.tolist(), strict=True))
    question = DangerQuestion(facts, np.zeros(0), allowed_by(), UnknownVerdict(None), None, seen)
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
