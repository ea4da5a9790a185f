"""What is measured of answers to people: unknown, danger, short lists and rolled-up answers against the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import betaincinv

from fieldmark.benchmarks.declarations import Task
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.fit_part import applied, fit_steps
from fieldmark.models.guides import Guide
from fieldmark.models.guides.calibration_on_val import AnsweredVal, learn_guide, pooled
from fieldmark.models.guides.conformal import COUNT_EDGES, ConformalSets, group_names
from fieldmark.models.guides.dangers import allowed_by, dangerous_labels
from fieldmark.models.guides.living_groups import groups_of
from fieldmark.models.guides.rollup import OF_LABEL, rank_of_labels
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps import make_step
from fieldmark.steps.base import Lesson
from fieldmark.tables.labels import UNKNOWN, Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View

CURVE = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
Floats = NDArray[np.float64]
Said = Callable[[Part], LabelScores]
Flags = NDArray[np.bool_]


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
    unknown = called_unknown(guide, view.test.features["photo"], unit, chances)
    truth = view.labels.encode(labels[first]).astype(np.int64)
    return Asked(chances, truth, labels[first], unknown, guide), said


def called_unknown(guide: Guide, features: NDArray[Any], unit: NDArray[Any], chances: Floats) -> Flags:
    """Whether each specimen is called possibly unknown."""
    distance = np.bincount(unit, weights=guide.strangers.distances(features)) / np.bincount(unit)
    pairs = zip(distance, chances.max(axis=1), strict=True)
    return np.array([guide.strangers.score(float(far), 1 - float(sure)) > guide.strangers.line for far, sure in pairs])


def all_shares(
    asked: Asked, labels: Labels, taxa: pl.DataFrame, poisonous: Flags, every: pl.DataFrame | None = None
) -> dict[str, Any]:
    """Everything that is measured of simulated specimens."""
    row = unknown_shares(asked) | {
        "conformal": conformal_shares(asked),
        "roll_up": roll_up_shares(asked, labels, taxa, every),
    }
    row["danger"] = danger_shares(asked, dangerous_labels(labels, taxa, groups_of(labels, taxa)), poisonous)
    return row


def unknown_shares(asked: Asked) -> dict[str, Any]:
    """How many unknown and how many known specimens are called unknown."""
    known = asked.truth != UNKNOWN
    return {
        "unknown": _share(asked.unknown[~known]) | {"what": "unknown species called unknown"},
        "false_alarms": _share(asked.unknown[known]) | {"what": "known species called unknown"},
    }


def _share(flags: Flags) -> dict[str, Any]:
    return {"share": round(float(flags.mean()), 4) if len(flags) else None, "of": len(flags), "hits": int(flags.sum())}


def conformal_shares(asked: Asked) -> dict[str, Any]:
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


def roll_up_shares(
    asked: Asked, labels: Labels, taxa: pl.DataFrame, every: pl.DataFrame | None = None
) -> dict[str, Any]:
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


def danger_shares(asked: Asked, dangerous: Flags, poisonous: Flags) -> dict[str, Any]:
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
        **_lists_together([one for one in worlds if "coverage" in one["conformal"]]),
    }


def _lists_together(worlds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Coverage and size of short lists over the worlds that have some."""
    if not worlds:
        return {}
    return {
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
    found: dict[str, Any] = {}
    for kind in ("known_species", "with_unknown_species"):
        rows = [one["roll_up"]["all"][kind] for one in worlds]
        given = np.array([one["given"] for one in rows])
        if not given.sum():
            found[kind] = {"given": 0, "right": None, "claimed": None}
            continue
        right, claimed = (np.average([one.get(n, 0.0) for one in rows], weights=given) for n in ("right", "claimed"))
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
