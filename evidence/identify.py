"""Answers to people, held against the truth: unknown, danger, short lists and rolled-up answers.

Specimens (simulated, no photos): five natures of fungi as FungiTastic worlds have them, seeds 0 to 4, with 1,750 photos
to learn from and so many later ones that far more than 1,000 specimens of poisonous species are asked about. What a
network would see are the traits that the painter would paint, with noise, folded by a fixed random layer. Worlds
(simulated, painted): the same on photos of small worlds, EfficientNet-Lite0 at 160 px, frozen. Both: `linear`,
`temperature`, a prior of month and habitat, `temperature`. All lines are drawn on val, that to unknown by known species
alone. Real photos: `fungi_genera` and `fungi_amanita` (by specimen) over five drawn splits, `birds_cub_odd` with the 30
unknown species of `evidence.openset` (none of them in val), and `snakes_philippines` with its own split.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import betaincinv

from evidence.odd_pictures import write_pictures
from evidence.openset import with_unknown_species
from evidence.results import RESULTS, read_result, real_data, write_result
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Task
from fieldmark.datasets import open_dataset
from fieldmark.features.photos import is_plain
from fieldmark.fitting.configuring import configured_method
from fieldmark.fitting.learning import applied, fit_steps, supplied_view, supply_of
from fieldmark.guides import Guide
from fieldmark.guides.conformal import COUNT_EDGES, ConformalSets, group_names
from fieldmark.guides.dangers import allowed_by, dangerous_labels
from fieldmark.guides.learning import AnsweredVal, learn_guide, pooled
from fieldmark.guides.living_groups import groups_of
from fieldmark.guides.rolling_up import OF_LABEL, rank_of_labels
from fieldmark.labels import UNKNOWN, Labels
from fieldmark.opening import Opened, open_benchmark
from fieldmark.questions.items import loose_items
from fieldmark.questions.targets import LabelTargets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps import make_step
from fieldmark.steps.base import Lesson
from fieldmark.supply import Supply
from fieldmark.taxonomy import Taxonomy
from fieldmark.views import Part, View, loose_media
from fieldmark.worlds.fungi.fungi_kingdom import FUNGI
from fieldmark.worlds.layouts import fungitastic
from fieldmark.worlds.layouts.fungitastic_finds import EXTENTS, Split, find
from fieldmark.worlds.nature.nature import grow_nature

SEEDS, PAINTED, SIZE_PX = range(5), range(2), 160
# How noisy traits are seen (chosen for top-1 of about 95 and 75 %), and how many numbers they are folded into.
NOISE, FOLDS_TO = {"clear": 0.6, "poor": 1.4}, 256
STEPS = ("temperature", "prior:column=month+habitat", "temperature")
LATER: dict[Split, tuple[int, int, int]] = {"val": (6000, 60, 100), "test": (3000, 60, 200)}
CURVE = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
SPLIT_SEEDS = range(5)
Floats = NDArray[np.float64]
Said = Callable[[Part], LabelScores]
Flags = NDArray[np.bool_]


def run() -> dict[str, Any]:
    """Every part that is not in the results yet; each is written as soon as it is done."""
    result: dict[str, Any] = {"about": " ".join(str(__doc__).split())} | _kept()
    for view_of in NOISE:
        _each(result, f"specimens_{view_of}", SEEDS, partial(_specimens, view_of))
    _real(result)  # cheap, and before the photos of worlds are painted
    _each(result, "worlds", PAINTED, _world)
    return result


def _each(result: dict[str, Any], part: str, seeds: Iterable[int], study: Callable[[int], dict[str, Any]]) -> None:
    for seed in seeds:
        if str(seed) not in result[part]:
            result[part][str(seed)] = study(seed)
            result[f"{part}_together"] = together(list(result[part].values()))
            print(part, seed, json.dumps(result[f"{part}_together"]), flush=True)
            write_result("identify", result)


def _real(result: dict[str, Any]) -> None:
    studies = {"fungi_genera": _genera, "fungi_amanita": _amanita} | {
        "birds_cub_odd": _birds,
        "snakes_philippines": _snakes,
    }
    for name, study in studies.items():
        data = real_data(name)
        if data is not None and name not in result["real"]:
            result["real"][name] = study(data)
            print(name, flush=True)
            write_result("identify", result)


def _kept() -> dict[str, Any]:
    """The parts that an interrupted run has left; remove the file to begin anew."""
    before = read_result("identify") if (RESULTS / "identify.json").exists() else None
    simulated = [*(f"specimens_{view_of}" for view_of in NOISE), "worlds"]
    parts = ("real", *simulated, *(f"{name}_together" for name in simulated))
    return {name: (before or {}).get(name, {}) for name in parts}


@dataclass(frozen=True)
class Asked:
    """Specimens as a model answers them.

    Args:
        chances: The probability of each label, one row per specimen.
        truth: The code of the true label, -1 for a species that the model does not know.
        labels: The true labels themselves.
        unknown: Whether each is called possibly unknown.
        guide: The guide of the model.
    """

    chances: Floats
    truth: NDArray[np.int64]
    labels: NDArray[Any]
    unknown: Flags
    guide: Guide


def _answers(opened: Opened, view: View, steps: Sequence[str]) -> tuple[Asked, Said]:
    """Fits to train and val of an opened benchmark, and answers test specimen by specimen."""
    assert view.test is not None
    label_of = dict(opened.truth["test"].rows.iter_rows())
    labels = np.array([label_of[item] for item in view.test.item_ids])
    return answer_specimens(opened.benchmark.task, view, opened.dataset.taxa, labels, steps)


def answer_specimens(
    task: Task, view: View, taxa: pl.DataFrame, labels: NDArray[Any], steps: Sequence[str]
) -> tuple[Asked, Said]:
    """Fits `linear` to train, steps and guide to val, and answers test specimen by specimen.

    Args:
        task: What is asked.
        view: The parts, with features.
        taxa: What is known about the labels.
        labels: The true label of each item of test.
        steps: The steps.
    """
    assert view.val is not None and view.test is not None
    known = replace(view, val=view.val.of_known_labels(), test=None)
    fitted = configured_method("linear", {}).method.fit(known)
    raw = fitted.predict(view.val, view.labels)
    lesson = Lesson(task, view.labels, taxa, view.val, view.train)
    made = fit_steps([make_step(step) for step in steps], raw, lesson)[0]

    def apply(predictions: LabelScores, items: pl.DataFrame) -> LabelScores:
        changed: LabelScores = applied(made, predictions, items, task, None)
        return changed

    guide = learn_guide(view.labels, taxa, made, view.train, AnsweredVal(view.val, raw, apply))
    assert guide is not None
    unit = np.unique(view.test.items["observation_id"].to_numpy(), return_inverse=True)[1]
    first = np.unique(unit, return_index=True)[1]

    def said(part: Part) -> LabelScores:
        return apply(fitted.predict(part, view.labels), part.items)

    chances = pooled(said(view.test), unit)
    unknown = _unknown(guide, view.test.features["photo"], unit, chances)
    truth = view.labels.encode(labels[first]).astype(np.int64)
    return Asked(chances, truth, labels[first], unknown, guide), said


def _unknown(guide: Guide, features: NDArray[Any], unit: NDArray[Any], chances: Floats) -> Flags:
    distance = np.bincount(unit, weights=guide.strangers.distances(features)) / np.bincount(unit)
    pairs = zip(distance, chances.max(axis=1), strict=True)
    return np.array([guide.strangers.score(float(far), 1 - float(sure)) > guide.strangers.line for far, sure in pairs])


def _specimens(view_of: str, seed: int) -> dict[str, Any]:
    """A world without photos: specimens as their traits, noisy and folded as a network might show them."""
    extent = replace(EXTENTS["small"], later_photos=LATER)
    nature = grow_nature(extent.nature, seed)
    finds = find(nature, extent, seed)
    rng = np.random.default_rng([seed, 24])
    traits = finds.seen.traits
    options = [np.eye(len(one.options))[traits.options[:, place]] for place, one in enumerate(FUNGI.categorical)]
    seen = np.column_stack([traits.latents, *options])
    seen = seen + NOISE[view_of] * rng.standard_normal(seen.shape)
    folded = np.maximum(seen @ rng.standard_normal((seen.shape[1], FOLDS_TO)) + rng.standard_normal(FOLDS_TO), 0)
    names = np.array(nature.taxa["label"])
    labels = Labels(tuple(names[finds.known].tolist()))
    table = finds.seen.table
    items = table.select(
        item_id=pl.col("observation_id").cast(pl.String),
        observation_id=pl.col("observation_id").cast(pl.String),
        media_ids=pl.concat_list(pl.col("observation_id").cast(pl.String)),
        date="date",
        habitat="habitat",
    )
    kept = ~finds.few_shot[finds.seen.species]
    parts = {}
    for split in ("train", "val", "test"):
        rows = np.flatnonzero((finds.split == split) & kept)
        targets = LabelTargets(labels.encode(names[finds.seen.species[rows]]))
        features = {"photo": folded[rows].astype(np.float32)}
        parts[split] = Part(items[rows.tolist()], targets, features=features)
        if split == "test":
            true, poisonous = (
                names[finds.seen.species[rows]],
                nature.taxa["poisonous"].to_numpy()[finds.seen.species[rows]],
            )
    order = np.argsort(parts["test"].items["observation_id"].to_numpy())
    view = View(labels, Taxonomy.of(labels, nature.taxa), parts["train"], parts["val"], None, parts["test"].unlabeled())
    task = BENCHMARKS["fungitastic/open"].task
    asked, _ = answer_specimens(task, view, nature.taxa, true, STEPS)
    row = _row(asked, labels, nature.taxa, poisonous[order].astype(np.bool_), nature.taxa)
    return {"seed": seed, "view": view_of, "simulated": True, "labels": len(labels), "train": len(parts["train"])} | row


def _row(
    asked: Asked, labels: Labels, taxa: pl.DataFrame, poisonous: Flags, every: pl.DataFrame | None = None
) -> dict[str, Any]:
    row = _unknown_shares(asked) | {"conformal": _conformal(asked), "roll_up": _roll_up(asked, labels, taxa, every)}
    row["danger"] = _danger(asked, dangerous_labels(labels, taxa, groups_of(labels, taxa)), poisonous)
    return row


def _world(seed: int) -> dict[str, Any]:
    root = Path.home() / f".cache/fieldmark/evidence/identify/world-{seed}"
    if not root.exists():  # painted once; features are kept in the store
        fungitastic.write(root, size="small", seed=seed)
    dataset = open_dataset("fungitastic", root)
    opened = open_benchmark(BENCHMARKS["fungitastic/open"], dataset)
    view = supplied_view(opened, supply_of(configured_method("linear", {"size": SIZE_PX}), opened, None))
    asked, _ = _answers(opened, view, STEPS)
    about = {"seed": seed, "simulated": True, "labels": len(view.labels), "train": len(view.train)}
    return about | _row(asked, view.labels, dataset.taxa, _poisonous_specimens(root, view))


def _poisonous_specimens(root: Path, view: View) -> Flags:
    """Whether each specimen of test is poisonous, of unknown species too."""
    assert view.test is not None
    table = pl.read_csv(root / "metadata/FungiTastic/FungiTastic-OpenSet-Test.csv", infer_schema=False)
    flag = {row["observationID"]: row["poisonous"] in ("1", "true", "True") for row in table.iter_rows(named=True)}
    return np.array([flag[str(one)] for one in np.unique(view.test.items["observation_id"].to_numpy())])


def _unknown_shares(asked: Asked) -> dict[str, Any]:
    known = asked.truth != UNKNOWN
    return {
        "unknown": _share(asked.unknown[~known]) | {"what": "unknown species called unknown"},
        "false_alarms": _share(asked.unknown[known]) | {"what": "known species called unknown"},
    }


def _share(flags: Flags) -> dict[str, Any]:
    return {"share": round(float(flags.mean()), 4) if len(flags) else None, "of": len(flags), "hits": int(flags.sum())}


def _conformal(asked: Asked) -> dict[str, Any]:
    """Coverage and size on the known specimens of test, over all and by the training count of the true label."""
    sets = next(reversed(list(asked.guide.conformal.values())), None)  # with all contexts
    if sets is None:
        return {"observations_of_val": len(asked.guide.record.truth)}
    known = asked.truth != UNKNOWN
    chances, truth = asked.chances[known], asked.truth[known]
    inside = sets.listed(chances, asked.guide.counts)
    hit = inside[np.arange(len(truth)), truth]
    group = np.searchsorted(np.asarray(COUNT_EDGES), asked.guide.counts[truth], side="left")
    names = group_names(COUNT_EDGES)
    return {
        "coverage": round(float(hit.mean()), 4),
        "size": round(float(inside.sum(axis=1).mean()), 3),
        "top_1": round(float((chances.argmax(axis=1) == truth).mean()), 4),
        "of": len(truth),
        "lines": len(sets.lines),
        "groups": {names[one]: _share(hit[group == one]) for one in np.unique(group)},
        "groups_with_a_line": _by_line(sets, hit, asked.guide.counts[truth]),
        "by_halves_of_val": sets.checked,
    }


def _by_line(sets: ConformalSets, hit: Flags, counts: NDArray[Any]) -> dict[str, Any]:
    """Coverage of the groups that have a line of their own: small groups are merged with their neighbors."""
    group, names = sets.groups(counts), group_names(sets.upper)
    return {name: _share(hit[group == number]) for number, name in enumerate(names)}


def _roll_up(asked: Asked, labels: Labels, taxa: pl.DataFrame, every: pl.DataFrame | None = None) -> dict[str, Any]:
    """At each rank how many answers were given and right, and how sure they were.

    An answer about an unknown species is right where `every` tells that the species belongs to the taxon.
    """
    lineage = {row["label"]: row for row in (taxa if every is None else every).iter_rows(named=True)}
    taxonomy, rule = Taxonomy.of(labels, taxa), asked.guide.roll_up
    rows: dict[str, list[tuple[bool, float, bool]]] = {}
    nothing = 0
    for chances, truth, label, strange in zip(asked.chances, asked.truth, asked.labels, asked.unknown, strict=True):
        if strange:
            continue
        found = rule.answer(chances, taxonomy)
        if found is None:
            nothing += 1
            continue
        right = truth in found.codes or lineage.get(label, {}).get(found.rank) == found.taxon
        rows.setdefault(found.rank, []).append((right, found.probability, truth != UNKNOWN))
    ranks = {rank_of_labels(taxonomy) if rank == OF_LABEL else rank: _claims(given) for rank, given in rows.items()}
    together_all = [one for given in rows.values() for one in given]
    return {
        "ranks": ranks,
        "all": _claims(together_all),
        "no_answer": nothing,
        "called_unknown": int(asked.unknown.sum()),
    }


def _claims(rows: Sequence[tuple[bool, float, bool]]) -> dict[str, Any]:
    def part(chosen: Sequence[tuple[bool, float, bool]]) -> dict[str, Any]:
        if not chosen:
            return {"given": 0}
        right, stated = np.mean([one[0] for one in chosen]), np.mean([one[1] for one in chosen])
        return {"given": len(chosen), "right": round(float(right), 4), "claimed": round(float(stated), 4)}

    return {"known_species": part([one for one in rows if one[2]]), "with_unknown_species": part(rows)}


def _danger(asked: Asked, dangerous: Flags, poisonous: Flags) -> dict[str, Any]:
    """Poisonous specimens without a notice, and notices about harmless ones, at the line and along a curve."""
    chance = asked.chances[:, dangerous].sum(axis=1)
    known, line = asked.truth != UNKNOWN, asked.guide.danger.line
    warned = (chance > line) | asked.unknown

    def missed(flags: Flags, of: Flags) -> dict[str, Any]:
        return {"missed": int((~flags[of]).sum()), "of": int(of.sum())}

    curve = []
    for value in (*CURVE, allowed_by()):
        flags = (chance > value) | asked.unknown
        curve.append(
            {
                "line": round(value, 5),
                "missed": missed(flags, poisonous & known),
                "false_alarms": _share(flags[~poisonous]),
            }
        )
    return {
        "line": line,
        "by_costs": asked.guide.danger.by_costs,
        "dangerous_on_val": asked.guide.danger.dangerous_on_val,
        "known": missed(warned, poisonous & known),
        "unknown_species": missed(warned, poisonous & ~known),
        "false_alarms": _share(warned[~poisonous]),
        "false_alarms_without_the_verdict": _share((chance > line)[~poisonous]),
        "curve": sorted(curve, key=lambda one: one["line"]),
    }


def together(worlds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The counts of all worlds added up, with bounds."""
    missed = sum(one["danger"]["known"]["missed"] for one in worlds)
    asked = sum(one["danger"]["known"]["of"] for one in worlds)
    absent = [one["danger"]["unknown_species"] for one in worlds]
    alarms = [one["danger"]["false_alarms"] for one in worlds]
    return {
        "poisonous": {"missed": missed, "of": asked, "bound_95": round(upper_bound(missed, asked), 5)},
        "poisonous_of_unknown_species": {
            "missed": sum(one["missed"] for one in absent),
            "of": sum(one["of"] for one in absent),
        },
        "false_alarms": {"hits": sum(one["hits"] for one in alarms), "of": sum(one["of"] for one in alarms)},
        "unknown": _sum([one["unknown"] for one in worlds]),
        "unknown_false_alarms": _sum([one["false_alarms"] for one in worlds]),
        "rolled_up": _claims_together(worlds),
        "coverage": round(float(np.average(*_weighted(worlds, "coverage"))), 4),
        "size": round(float(np.average(*_weighted(worlds, "size"))), 3),
        "worst_group_with_a_line": _worst(worlds),
        "coverage_by_group": {
            name: _sum([one["conformal"]["groups"][name] for one in worlds if name in one["conformal"]["groups"]])
            for name in group_names(COUNT_EDGES)
        },
    }


def _worst(worlds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The groups with a line that are covered least and most."""
    every = [
        one | {"group": name, "seed": world["seed"]}
        for world in worlds
        for name, one in world["conformal"]["groups_with_a_line"].items()
    ]
    ordered = sorted(every, key=lambda one: one["share"])
    rare = [one for one in every if one["group"].startswith("up to") or one["group"] == "all"]
    return {"least": ordered[0], "most": ordered[-1], "rarest": _sum(rare)}


def _claims_together(worlds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = {}
    for kind in ("known_species", "with_unknown_species"):
        rows = [one["roll_up"]["all"][kind] for one in worlds]
        given = np.array([one["given"] for one in rows])
        right, claimed = (np.average([one[name] for one in rows], weights=given) for name in ("right", "claimed"))
        found[kind] = {"given": int(given.sum()), "right": round(float(right), 4), "claimed": round(float(claimed), 4)}
    return found


def _weighted(worlds: Sequence[dict[str, Any]], key: str) -> tuple[list[float], None, list[int]]:
    return [one["conformal"][key] for one in worlds], None, [one["conformal"]["of"] for one in worlds]


def _sum(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    hits, of = sum(one["hits"] for one in parts), sum(one["of"] for one in parts)
    return {"hits": hits, "of": of, "share": round(hits / of, 4) if of else None}


def upper_bound(hits: int, of: int, level: float = 0.95) -> float:
    """The one-sided bound of Clopper and Pearson on a share.

    >>> round(upper_bound(4, 1000), 5)
    0.00913
    """
    return float(betaincinv(hits + 1, of - hits, level)) if hits < of else 1.0


def _folder(data: Path, seed: int) -> tuple[Opened, View, Supply]:
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", data), seed=seed)
    supply = supply_of(configured_method("linear", {"size": SIZE_PX}), opened, None)
    return opened, supplied_view(opened, supply), supply


def _odd(guide: Guide, supply: Supply, said: Said) -> dict[str, bool]:
    """Whether each picture that shows no living thing is called unknown, as `identify` decides it."""
    with tempfile.TemporaryDirectory() as folder:
        files = write_pictures(Path(folder))
        part = supply.supply(Part(loose_items(list(files.values())), media=loose_media("photo", list(files.values()))))
        chances = np.asarray(said(part).chances(), dtype=np.float64)
        flags = _unknown(guide, part.features["photo"], np.arange(len(files)), chances)
        plain = [is_plain(file.read_bytes()) for file in files.values()]
    return {name: bool(flag) or gray for name, flag, gray in zip(files, flags, plain, strict=True)}


def _measured(opened: Opened, view: View, supply: Supply, taxa: pl.DataFrame) -> dict[str, Any]:
    """What every data set is asked; danger where some labels are marked as dangerous."""
    asked, said = _answers(opened, view, ("temperature",))
    row = _unknown_shares(asked)
    row |= {"conformal": _conformal(asked), "roll_up": _roll_up(asked, view.labels, taxa)}
    if taxa["poisonous"].any():
        dangerous = dangerous_labels(view.labels, taxa, groups_of(view.labels, taxa))
        row["danger"] = _danger(asked, dangerous, np.where(asked.truth >= 0, dangerous[asked.truth], False))
    row["pictures_called_unknown"] = _odd(asked.guide, supply, said)
    return row


def _over_splits(data: Path) -> dict[str, Any]:
    """The mean over drawn splits, and each of them."""
    rows = []
    for seed in SPLIT_SEEDS:
        opened, view, supply = _folder(data, seed)
        rows.append(_measured(opened, view, supply, opened.dataset.taxa))
    return {"simulated": False, "splits": rows}


def _genera(data: Path) -> dict[str, Any]:
    return _over_splits(data)


def _amanita(data: Path) -> dict[str, Any]:
    """Specimens of the taxa with at least three of them, as a folder with a table of observations."""
    with (data / "images_with_metadata.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    specimens: dict[str, set[str]] = {}
    for one in rows:
        specimens.setdefault(one["species"], set()).add(one["specimen_id"])
    kept = [one for one in rows if len(specimens[one["species"]]) >= 3]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "amanita")
        lines = ["file,observation_id"]
        for one in kept:
            place = Path(one["species"].replace("/", "-"), Path(one["file"]).name)
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).symlink_to(data / one["file"])
            lines.append(f'"{place.as_posix()}",{one["specimen_id"]}')
        (root / "observations.csv").write_text("\n".join(lines) + "\n")
        found = _over_splits(root)
    return found | {"taxa": len({one["species"] for one in kept}), "photos": len(kept)}


def _birds(data: Path) -> dict[str, Any]:
    folder, view, supply = _folder(data, 0)
    opened = with_unknown_species(folder, view)
    val = opened.view.val
    assert val is not None
    view = replace(opened.view, val=val.of_known_labels())  # no unknown species to draw lines by
    return {"simulated": False} | _measured(opened, view, supply, folder.dataset.taxa)


def _snakes(data: Path) -> dict[str, Any]:
    opened, view, supply = _folder(data, 0)
    return {"simulated": False} | _measured(opened, view, supply, opened.dataset.taxa)
