"""From herbarium sheets to photos in the field, on real pictures of sixty species of PlantCLEF 2020.

600 sheets of 60 species, 518 field photos of 36 of them, and other field photos to recognize; photos of one plant stay
on one side. Frozen features of EfficientNet-Lite0.
Unseen: each of the 36 species in turn is treated as having sheets only (its field photos are hidden from the method,
which is not told), and its field photos are recognized among all 60; mean reciprocal rank by photo and by plant,
averaged over species; paired differences over species. Seen: fitted to all of train, on the photos of the 36 species in
the test folder. `align` chooses its settings by leaving species out of what it is given, inside each fold. That a map,
relatives and a bias help, and that closer views do, was seen on the outer folds before the method was written; that the
harmonic mean leaves too little to seen species was seen on test. How strong each is, is chosen inside. That 512
dimensions are kept instead of 256 was seen on both. The 32 test photos of the 24 species without field photos were
scored along the way as well. In second order, `align` is at its defaults on each packaged network; the mean of their
probabilities is what `auto` can fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.features.alignment import BIASES
from fieldmark.features.settings import PACKAGED, FeatureSettings
from fieldmark.methods.align import SHARPNESS, Align
from fieldmark.methods.base import Fitted, Method, truth_of
from fieldmark.methods.centroid import Centroid
from fieldmark.methods.linear import Linear
from fieldmark.methods.prototypes import Prototypes
from fieldmark.models.supply.sources import FeatureSource, with_features
from fieldmark.questions.targets import LabelTargets
from fieldmark.releases import open_dataset
from fieldmark.runs.label_scores import log_softmax
from fieldmark.stats.comparison import compare
from fieldmark.stats.intervals import interval
from fieldmark.views.open_benchmark import Opened, open_benchmark
from fieldmark.views.parts import Part, View
from fieldmark.work.progress import progress
from studies.evidence.grids import kept_arrays
from studies.evidence.results import read_result, real_data, write_result

FOLDER = "plants_sheets_and_field"
FEATURES = {"zooms": FeatureSettings(views="zooms")}
# What `auto` tries where species have sheets only: `align` on each packaged network, in second order, and their mean.
NETWORKS = {name: FeatureSettings(name, views="zooms", output="second-order") for name in PACKAGED}
MEAN = "mean of the three"
BASELINE = "sheet prototypes"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A method, and whether it learns from sheets alone."""

    method: Method
    sheets_only: bool = False


CANDIDATES = {
    BASELINE: Candidate(Centroid(), sheets_only=True),
    "align": Candidate(Align()),
    "linear": Candidate(Linear(l2=0.03, iterations=40)),
    "prototypes": Candidate(Prototypes(shrinkage=0.5, borrow=1.0)),
    "align by=mean": Candidate(Align(by="mean")),
    "align by=mean relatives=0 bias=0": Candidate(Align(by="mean", shrinkage=0.9, relatives=0.0, bias=0.0)),
}


def run(made: Mapping[str, Mapping[str, NDArray[np.float32]]] | None = None) -> dict[str, Any] | None:
    """Every candidate on each set of features; what is there already is not computed again.

    Args:
        made: Features by settings and file, where the same code has made them elsewhere.
    """
    root = real_data(FOLDER)
    if root is None:
        return None
    result = read_result("plants") or {}
    about = " ".join(str(__doc__).split("\n\n", 1)[1].split())
    result |= {"simulated": False, "about": about, "features": result.get("features", {})}
    for name, settings in FEATURES.items():
        view, test = supplied(root, settings, made[settings.views] if made else None)
        done = result["features"].setdefault(name, {"unseen": {}, "seen": {}})
        for called, candidate in CANDIDATES.items():
            if called not in done["unseen"]:
                done["unseen"][called] = unseen(view, candidate)
                done["seen"][called] = seen(view, test, candidate)
                write_result("plants", result)
        done["compared"] = compared(done)
        done.setdefault("curve", curve(view, test))
        write_result("plants", result)
    if "networks" not in result:
        result["networks"] = networks(root)
        write_result("plants", result)
    return result


def networks(root: Path) -> dict[str, Any]:
    """`align` on each packaged network in second order, and the mean of their probabilities."""
    answers = kept_arrays("plants", {name: name for name in NETWORKS}, lambda name: network_answers(root, name))
    _, view, test = in_parts(root)
    field, labels = in_field(view.train), truth_of(view.train)
    photographed = np.isin(truth_of(test), labels[field])
    table: dict[str, Any] = {}
    for called, members in {**{name: [name] for name in NETWORKS}, MEAN: list(NETWORKS)}.items():
        means: dict[str, dict[str, float]] = {"by photo": {}, "by plant": {}}
        for one in np.unique(labels[field]):
            held = view.train.take(field & (labels == one))
            for unit, values in measured(_mean(answers, members, f"unseen-{one}"), held).items():
                means[unit] |= values
        on_test = _mean(answers, members, "test")
        groups = {"with field photos": photographed, "without": ~photographed}
        said = {name: measured(on_test[rows], test.take(rows)) for name, rows in groups.items()}
        for unit, own in means.items():
            rows = {"unseen": summary(own), **{name: summary(each[unit]) for name, each in said.items()}}
            table.setdefault(unit, {})[called] = rows
    return table


def network_answers(root: Path, name: str) -> dict[str, NDArray[np.float32]]:
    """Scores of `align` on one network: of each species that is left out in turn, and of test."""
    _, view, test = in_parts(root)
    source = FeatureSource(NETWORKS[name]).fit(view.train)
    view, test = replace(view, train=source.supply(view.train)), source.supply(test)
    field, labels = in_field(view.train), truth_of(view.train)
    everything = Align().fit(view)
    answers = {"test": everything.method.scores(everything.arrays, test)}
    for one in np.unique(labels[field]):
        fold = view.hold_out(field & (labels == one))
        model = Align().fit(fold.view)
        answers[f"unseen-{one}"] = model.method.scores(model.arrays, fold.held_out)
    return answers


def _mean(answers: Mapping[str, Any], members: Sequence[str], name: str) -> Floats:
    """The logarithm of the mean probability; of one member, what it says itself."""
    logs = np.stack([log_softmax(answers[one][name].astype(np.float64)) for one in members])
    return np.asarray(np.log(np.exp(logs).mean(axis=0)))


def supplied(
    root: Path, settings: FeatureSettings, made: Mapping[str, NDArray[np.float32]] | None = None
) -> tuple[View, Part]:
    """All of train with features and labels, and test with its labels."""
    opened, view, test = in_parts(root)

    def supply(part: Part) -> Part:
        if made is None or part.media is None:
            return FeatureSource(settings).supply(part)
        rows = [made[opened.media_paths[ids[0]]] for ids in part.items["media_ids"]]
        return with_features(part, "photo", np.stack(rows))

    return replace(view, train=supply(view.train)), supply(test)


def in_parts(root: Path) -> tuple[Opened, View, Part]:
    """All of train with its labels, and test with its own; without features."""
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", root))
    view = opened.view.with_val_in_train()
    assert view.test is not None
    label_of = dict(opened.truth_of("test").rows.select("item_id", "label").iter_rows())
    targets = LabelTargets(opened.view.labels.encode([label_of[one] for one in view.test.item_ids]))
    return opened, replace(view, test=None), replace(view.test, targets=targets)


def in_field(part: Part) -> NDArray[np.bool_]:
    """Which items are field photos; those of test do not say so, and are."""
    return (part.items["domain"].fill_null("photo") == "photo").to_numpy()


def fitted(view: View, candidate: Candidate) -> Fitted:
    """The candidate fitted to a view, or to its sheets."""
    train = view.train.take(~in_field(view.train)) if candidate.sheets_only else view.train
    return candidate.method.fit(replace(view, train=train))


def reciprocal_ranks(scores: NDArray[np.floating], truth: NDArray[np.integer]) -> Floats:
    """1 / rank of the true label of each row; equal scores count against it."""
    own = scores[np.arange(len(truth)), truth]
    return np.asarray(1 / (scores >= own[:, None]).sum(axis=1))


def measured(scores: NDArray[np.floating], part: Part) -> dict[str, dict[str, float]]:
    """Mean reciprocal rank of each label, by photo and by plant (the mean of the scores of its photos)."""
    truth = truth_of(part)
    plants = pl.DataFrame({"plant": part.items["observation_id"], "row": np.arange(len(part))})
    groups = [rows.to_list() for rows in plants.group_by("plant", maintain_order=True).agg("row")["row"]]
    pooled = np.stack([scores[rows].mean(axis=0) for rows in groups])
    of_plants = truth[[rows[0] for rows in groups]]
    means = {}
    for unit, values, labels in (
        ("by photo", reciprocal_ranks(scores, truth), truth),
        ("by plant", reciprocal_ranks(pooled, of_plants), of_plants),
    ):
        means[unit] = {str(one): round(float(values[labels == one].mean()), 5) for one in np.unique(labels)}
    return means


def unseen(view: View, candidate: Candidate) -> dict[str, dict[str, float]]:
    """Each species with field photos in turn treated as having sheets only."""
    field, labels = in_field(view.train), truth_of(view.train)
    means: dict[str, dict[str, float]] = {"by photo": {}, "by plant": {}}
    species = np.unique(labels[field])
    with progress("leaving species out", len(species)) as tick:
        for one in species:
            fold = view.hold_out(field & (labels == one))
            model = fitted(fold.view, candidate)
            for unit, values in measured(model.method.scores(model.arrays, fold.held_out), fold.held_out).items():
                means[unit] |= values
            tick(1)
    return means


def seen(view: View, test: Part, candidate: Candidate) -> dict[str, dict[str, dict[str, float]]]:
    """Fitted to all of train: test photos of species with field photos, and of those without."""
    photographed = np.isin(truth_of(test), truth_of(view.train)[in_field(view.train)])
    model = fitted(view, candidate)
    parts = {"with field photos": test.take(photographed), "without": test.take(~photographed)}
    return {name: measured(model.method.scores(model.arrays, part), part) for name, part in parts.items()}


def summary(means: Mapping[str, float]) -> list[float | None]:
    """The mean over species with its interval."""
    values = np.array(list(means.values()))
    around = interval(float(values.mean()), values)
    numbers = (float(values.mean()), around.low, around.high)
    return [None if number is None else round(number, 4) for number in numbers]


def compared(done: Mapping[str, Any]) -> dict[str, Any]:
    """Means with intervals, and paired differences over species from the sheet prototypes and from linear."""
    table: dict[str, Any] = {}
    for unit in ("by photo", "by plant"):
        rows: dict[str, Any] = {}
        for name, means in done["unseen"].items():
            own: dict[str, Any] = {"unseen": summary(means[unit])}
            for group in ("with field photos", "without"):
                own[group] = summary(done["seen"][name][group][unit])
            low, high = own["unseen"][0] or 0.0, own["with field photos"][0] or 0.0
            own["harmonic"] = round(2 * low * high / max(low + high, 1e-9), 4)
            own["over sheet prototypes"] = difference(means[unit], done["unseen"][BASELINE][unit])
            rows[name] = own
        table[unit] = rows
    return table


def difference(first: Mapping[str, float], second: Mapping[str, float]) -> list[float | None] | None:
    """The paired difference over species with its interval; None for a method and itself."""
    if first == second:
        return None
    pair = np.array([[one[name] for name in first] for one in (first, second)])
    apart = compare(pair.mean(axis=1), pair).differences[0]
    numbers = (apart.value, apart.interval.low, apart.interval.high)
    return [None if number is None else round(number, 4) for number in numbers]


def curve(view: View, test: Part) -> list[dict[str, float]]:
    """What each bias would have reached: unseen on the outer folds, seen on test, and their harmonic mean, by photo.

    All other settings are those that each fold has chosen. For looking at; nothing is chosen by it.
    """
    field, labels = in_field(view.train), truth_of(view.train)
    held: list[tuple[Floats, NDArray[np.bool_], int]] = []
    for one in np.unique(labels[field]):
        fold = view.hold_out(field & (labels == one))
        held.append((*_unbiased(fold.view, fold.held_out), int(one)))
    on_test, raised = _unbiased(view, test)
    truth = truth_of(test)
    photographed = np.isin(truth, labels[field])
    points = []
    for bias in BIASES:
        values = [
            reciprocal_ranks(scores + bias * others, np.full(len(scores), one)).mean() for scores, others, one in held
        ]
        ranks = reciprocal_ranks(on_test + bias * raised, truth)[photographed]
        own = truth[photographed]
        with_photos = float(np.mean([ranks[own == one].mean() for one in np.unique(own)]))
        without = float(np.mean(values))
        point = {"bias": bias, "unseen": without, "seen": with_photos}
        point["harmonic"] = 2 * without * with_photos / (without + with_photos)
        points.append({name: round(value, 4) for name, value in point.items()})
    return points


def _unbiased(view: View, part: Part) -> tuple[Floats, NDArray[np.bool_]]:
    """Cosines without any bias, and the labels that a bias would raise."""
    model = Align().fit(view)
    scores = model.method.scores(model.arrays, part).astype(np.float64) / SHARPNESS
    return scores - model.arrays["bias"], ~model.arrays["photographed"]
