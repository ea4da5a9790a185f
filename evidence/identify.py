"""Answers to people, held against the truth: unknown, danger, short lists and rolled-up answers.

Worlds (simulated): three worlds of fungi in the layout of FungiTastic, seeds 0 to 2, with 1,750 photos to learn from
and so many later ones that more than 1,000 specimens of poisonous species are asked about. `linear` on frozen features
(EfficientNet-Lite0, 160 px), `temperature`, a prior of month and habitat, `temperature`. All lines are drawn on val;
the line to unknown by known species alone. Real photos: `fungi_genera` and `fungi_amanita` (by specimen) over five
drawn splits, `birds_cub_odd` with the 30 unknown species of `evidence.openset` (none of them in val), and
`snakes_philippines` with its own split.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from fieldmark.datasets import open_dataset
from fieldmark.fitting.configuring import configured_method
from fieldmark.fitting.learning import answered, applied, fit_on_train, guide_of, supplied_view, supply_of
from fieldmark.guides import Guide
from fieldmark.guides.conformal import COUNT_EDGES, group_names
from fieldmark.guides.dangers import allowed_by, dangerous_labels
from fieldmark.guides.learning import pooled
from fieldmark.guides.living_groups import groups_of
from fieldmark.guides.rolling_up import OF_LABEL, rank_of_labels
from fieldmark.labels import UNKNOWN
from fieldmark.opening import Opened, open_benchmark
from fieldmark.questions.items import loose_items
from fieldmark.steps import make_step
from fieldmark.supply import Supply
from fieldmark.taxonomy import Taxonomy
from fieldmark.views import Part, View, loose_media
from fieldmark.worlds.layouts import fungitastic
from fieldmark.worlds.layouts.fungitastic_finds import EXTENTS, Split

SEEDS, SIZE_PX = range(3), 160
STEPS = ("temperature", "prior:column=month+habitat", "temperature")
LATER: dict[Split, tuple[int, int, int]] = {"val": (1200, 60, 100), "test": (2400, 60, 200)}
CURVE = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
SPLIT_SEEDS = range(5)
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def run() -> dict[str, Any]:
    """Every part that is not in the results yet; each is written as soon as it is done."""
    result: dict[str, Any] = {"about": " ".join(str(__doc__).split())} | _kept()
    for seed in SEEDS:
        if str(seed) not in result.setdefault("worlds", {}):
            result["worlds"][str(seed)] = _world(seed)
            write_result("identify", result)
    result["worlds_together"] = together(list(result["worlds"].values()))
    real = result.setdefault("real", {})
    for name, study in (
        ("fungi_genera", _genera),
        ("fungi_amanita", _amanita),
        ("birds_cub_odd", _birds),
        ("snakes_philippines", _snakes),
    ):
        data = real_data(name)
        if data is not None and name not in real:
            real[name] = study(data)
            print(name, json.dumps(real[name])[:300], flush=True)
            write_result("identify", result)
    return result


def _kept() -> dict[str, Any]:
    """The parts that an interrupted run has left; remove the file to begin anew."""
    before = read_result("identify") if (RESULTS / "identify.json").exists() else None
    return {name: (before or {}).get(name, {}) for name in ("worlds", "real")}


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


def _answers(opened: Opened, view: View, supply: Supply, steps: Sequence[str], method: str = "linear") -> Asked:
    """Fits to train and val, and answers test specimen by specimen."""
    configured = configured_method(method, {})
    made = fit_on_train(configured.method, [make_step(step) for step in steps], view, opened)
    guide = guide_of(made, view, opened)
    assert guide is not None and view.test is not None
    task = opened.benchmark.task
    said = applied(made.steps, answered(made.fitted, view.test, view.labels, task), view.test.items, task, None)
    unit = np.unique(view.test.items["observation_id"].to_numpy(), return_inverse=True)[1]
    first = np.unique(unit, return_index=True)[1]
    label_of = dict(opened.truth["test"].rows.iter_rows())
    labels = np.array([label_of[item] for item in np.array(view.test.item_ids)[first]])
    chances = pooled(said, unit)
    unknown = _unknown(guide, view.test.features["photo"], unit, chances)
    return Asked(chances, view.labels.encode(labels).astype(np.int64), labels, unknown, guide)


def _unknown(guide: Guide, features: NDArray[Any], unit: NDArray[Any], chances: Floats) -> Flags:
    distance = np.bincount(unit, weights=guide.strangers.distances(features)) / np.bincount(unit)
    pairs = zip(distance, chances.max(axis=1), strict=True)
    return np.array([guide.strangers.score(float(far), 1 - float(sure)) > guide.strangers.line for far, sure in pairs])


def _world(seed: int) -> dict[str, Any]:
    extent = replace(EXTENTS["small"], later_photos=LATER)
    root = Path.home() / f".cache/fieldmark/evidence/identify/world-{seed}-{LATER['test'][0]}"
    if not root.exists():  # painted once; features are kept in the store
        fungitastic.write_extent(root, extent, "small, more later photos", seed=seed)
    dataset = open_dataset("fungitastic", root)
    opened = open_benchmark(BENCHMARKS["fungitastic/open"], dataset)
    configured = configured_method("linear", {"size": SIZE_PX})
    supply = supply_of(configured, opened, None)
    view = supplied_view(opened, supply)
    asked = _answers(opened, view, supply, STEPS)
    taxa, poisonous = dataset.taxa, _poisonous_specimens(root, view)
    row: dict[str, Any] = {"seed": seed, "simulated": True, "labels": len(view.labels), "train_photos": len(view.train)}
    row |= _unknown_shares(asked) | {"conformal": _conformal(asked), "roll_up": _roll_up(asked, view.labels, taxa)}
    row["danger"] = _danger(asked, dangerous_labels(view.labels, taxa, groups_of(view.labels, taxa)), poisonous)
    print(seed, {name: row[name] for name in ("unknown", "conformal")}, row["danger"]["known"], flush=True)
    return row


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
        "by_halves_of_val": sets.checked,
    }


def _roll_up(asked: Asked, labels: Any, taxa: pl.DataFrame) -> dict[str, Any]:
    """At each rank how many answers were given and right, and how sure they were; unknown species are wrong."""
    taxonomy, rule = Taxonomy.of(labels, taxa), asked.guide.roll_up
    rows: dict[str, list[tuple[bool, float, bool]]] = {}
    nothing = 0
    for chances, truth, strange in zip(asked.chances, asked.truth, asked.unknown, strict=True):
        if strange:
            continue
        found = rule.answer(chances, taxonomy)
        if found is None:
            nothing += 1
            continue
        rows.setdefault(found.rank, []).append((truth in found.codes, found.probability, truth != UNKNOWN))
    ranks = {rank_of_labels(taxonomy) if rank == OF_LABEL else rank: _claims(given) for rank, given in rows.items()}
    every = [one for given in rows.values() for one in given]
    return {"ranks": ranks, "all": _claims(every), "no_answer": nothing, "called_unknown": int(asked.unknown.sum())}


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
        "coverage": round(float(np.average(*_weighted(worlds, "coverage"))), 4),
        "size": round(float(np.average(*_weighted(worlds, "size"))), 3),
        "coverage_by_group": {
            name: _sum([one["conformal"]["groups"][name] for one in worlds if name in one["conformal"]["groups"]])
            for name in group_names(COUNT_EDGES)
        },
    }


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


def _odd(guide: Guide, supply: Supply, chances_of: Any) -> dict[str, bool]:
    """Whether each picture that shows no living thing is called unknown."""
    with tempfile.TemporaryDirectory() as folder:
        files = write_pictures(Path(folder))
        part = supply.supply(Part(loose_items(list(files.values())), media=loose_media("photo", list(files.values()))))
        flags = _unknown(guide, part.features["photo"], np.arange(len(files)), chances_of(part))
    return {name: bool(flag) for name, flag in zip(files, flags, strict=True)}


def _measured(opened: Opened, view: View, supply: Supply, taxa: pl.DataFrame, steps: Sequence[str]) -> dict[str, Any]:
    """What every data set is asked; danger where it has dangerous labels that are marked as such."""
    asked = _answers(opened, view, supply, steps)
    row = _unknown_shares(asked)
    row |= {"conformal": _conformal(asked), "roll_up": _roll_up(asked, view.labels, taxa)}
    if taxa["poisonous"].any():
        dangerous = dangerous_labels(view.labels, taxa, groups_of(view.labels, taxa))
        row["danger"] = _danger(asked, dangerous, np.where(asked.truth >= 0, dangerous[asked.truth], False))
    made = fit_on_train(configured_method("linear", {}).method, [make_step(step) for step in steps], view, opened)
    task = opened.benchmark.task

    def chances_of(part: Part) -> Floats:
        said = applied(made.steps, answered(made.fitted, part, view.labels, task), part.items, task, None)
        return np.asarray(said.chances(), dtype=np.float64)

    row["pictures_called_unknown"] = _odd(asked.guide, supply, chances_of)
    return row


def _over_splits(data: Path) -> dict[str, Any]:
    """The mean over drawn splits, and each of them."""
    rows = []
    for seed in SPLIT_SEEDS:
        opened, view, supply = _folder(data, seed)
        rows.append(_measured(opened, view, supply, opened.dataset.taxa, ("temperature",)))
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
    return {"simulated": False} | _measured(opened, view, supply, folder.dataset.taxa, ("temperature",))


def _snakes(data: Path) -> dict[str, Any]:
    opened, view, supply = _folder(data, 0)
    return {"simulated": False} | _measured(opened, view, supply, opened.dataset.taxa, ("temperature",))
