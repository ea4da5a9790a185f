"""Scores of the photo study of snakes: every method with every finder, venom costs, and paired differences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.measures import macro_f1, top, venom_cost, venom_score
from fieldmark.methods import METHODS
from fieldmark.releases import open_dataset
from fieldmark.runs.label_scores import LabelScores
from fieldmark.scoring import Scorecard, score_predictions
from fieldmark.steps.costs import costs_by_rule
from fieldmark.steps.temperature import Temperature, best_temperature
from fieldmark.tables.labels import Labels
from fieldmark.views.open_benchmark import Opened, open_benchmark
from fieldmark.views.parts import Part, View
from studies.evidence.finetuning import ahead
from studies.evidence.results import real_data, rounded
from studies.evidence.snake_photos import DATA, FINDERS, LISTING, PARTS

ON_FEATURES = ("centroid", "knn", "ridge", "lda", "linear")
METRICS = (top(1), macro_f1(over="union"), venom_score(), venom_cost())


def scored(folder: Path) -> dict[str, Any] | None:
    """Everything that the GPU has made, scored on test."""
    data = real_data(DATA)
    if data is None:
        return None
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", data), seed=0)
    listed = json.loads((folder / LISTING).read_text())
    boxes = json.loads((folder / "boxes.json").read_text())
    answers: dict[str, dict[str, list[LabelScores]]] = {}
    for finder in FINDERS:
        features = np.load(folder / f"features-{finder}.npz")
        for method in ON_FEATURES:
            val, test = _answered(opened, listed, features, method)
            answers.setdefault(method, {})[finder] = [test]
            if method == "linear":
                answers.setdefault(f"{method}, min-cost", {})[finder] = [_cheapest(opened, val, test)]
    facts, logits = json.loads((folder / "runs.json").read_text()), np.load(folder / "logits.npz")
    for number, fact in enumerate(facts):
        val, test = _of_network(opened, logits[f"arr_{number}"])
        answers.setdefault("finetune", {}).setdefault(fact["finder"], []).append(test)
        cheap = answers.setdefault("finetune, min-cost", {}).setdefault(fact["finder"], [])
        cheap.append(_cheapest(opened, val, test))
    answers = {method: {finder: by[finder] for finder in FINDERS} for method, by in answers.items()}
    cards = {
        method: {finder: [_card(opened, one) for one in runs] for finder, runs in by.items()}
        for method, by in answers.items()
    }
    tallies = {
        method: {finder: venom_table(opened, runs) for finder, runs in by.items()} for method, by in answers.items()
    }
    photos = sum(len(listed[part]["photos"]) for part in PARTS)
    return {
        "simulated": False,
        "photos": photos,
        "test": len(opened.items["test"]),
        "venomous_test": tallies["linear"]["none"]["venomous"],
        "boxes": {finder: len(boxes[finder]) for finder in FINDERS},
        "seeds": len(cards["finetune"]["none"]),
        "scores": {method: {finder: _mean(these) for finder, these in by.items()} for method, by in cards.items()},
        "venom": tallies,
        "top_1_ahead_of_whole": {
            method: {finder: ahead(by[finder], by["none"]) for finder in FINDERS if finder != "none"}
            for method, by in cards.items()
        },
        "top_1_finetune_ahead_of_linear": {
            finder: ahead(cards["finetune"][finder], cards["linear"][finder]) for finder in FINDERS
        },
    }


def _answered(opened: Opened, listed: dict[str, Any], features: Any, method: str) -> tuple[LabelScores, LabelScores]:
    """A method on features, its answers on val and test; what it leaves open is chosen on val."""
    view = opened.view
    assert view.val is not None and view.test is not None
    order = {part: _order(opened, listed, part) for part in PARTS}

    def supplied(part: Part, name: str) -> Part:
        return replace(part, features={"photo": features[name].astype(np.float32)[order[name]]})

    shown = View(view.labels, view.taxonomy, supplied(view.train, "train"), supplied(view.val, "val"), None, None)
    fitted = METHODS[method]().fit(shown)
    return fitted.predict(supplied(view.val, "val"), view.labels), fitted.predict(
        supplied(view.test, "test"), view.labels
    )


def _cheapest(opened: Opened, val: LabelScores, test: LabelScores) -> LabelScores:
    """Test with the answers of least expected cost by the rule of 2023, after a temperature from val."""
    labels = opened.view.labels
    temperature = Temperature(best_temperature(val, labels.encode(opened.items["val"]["label"])))
    calibrated = temperature.apply(test, opened.items["test"])
    return calibrated.decided(costs_by_rule("venom", labels, _venomous(opened)).best(calibrated.probabilities()))


def _venomous(opened: Opened) -> NDArray[np.bool_]:
    flags = dict(opened.dataset.taxa.select("label", "poisonous").iter_rows())
    return np.array([bool(flags[name]) for name in opened.view.labels.names])


def _order(opened: Opened, listed: dict[str, Any], part: str) -> NDArray[np.int64]:
    """For each item of a part its row in the listing."""
    path_of = dict(zip(opened.dataset.media["media_id"], opened.dataset.media["path"], strict=True))
    row_of = {path: row for row, path in enumerate(listed[part]["photos"])}
    return np.array([row_of[path_of[item]] for item in opened.items[part]["item_id"]], dtype=np.int64)


def _of_network(opened: Opened, logits: NDArray[Any]) -> tuple[LabelScores, LabelScores]:
    """The logits of val and test, one after the other, as answers."""
    made, first = [], 0
    for part in ("val", "test"):
        items = tuple(opened.items[part]["item_id"])
        rows = logits[first : first + len(items)].astype(np.float32)
        made.append(LabelScores(items, opened.view.labels, rows, "logit"))
        first += len(items)
    return made[0], made[1]


def _card(opened: Opened, predictions: LabelScores) -> Scorecard:
    benchmark = replace(opened.benchmark, task=replace(opened.benchmark.task, metrics=METRICS))
    truth, taxa = opened.truth["test"], opened.dataset.taxa
    return score_predictions(
        benchmark, predictions, truth, labels=opened.view.labels, split="test", run=None, classes=taxa
    )


def _mean(cards: list[Scorecard]) -> dict[str, Any]:
    """Value and interval of one run; of several, the mean value and the range over seeds."""
    if len(cards) == 1:
        return dict(rounded(cards[0]))
    values = {name: [card.metrics[name].value for card in cards] for name in cards[0].metrics}
    return {
        name: [round(float(np.mean(each)), 4), round(min(each), 4), round(max(each), 4)]
        for name, each in values.items()
    }


def venom_table(opened: Opened, runs: list[LabelScores]) -> dict[str, Any]:
    """How many venomous photos are called harmless, or taken for another venomous species; means over runs.

    The bound is the exact one-sided 95 % bound of a share (Clopper and Pearson) for the mean number of misses, rounded
    up: no miss among 89 photos still allows 3.3 %.
    """
    labels: Labels = opened.view.labels
    venomous = _venomous(opened)
    truth = labels.encode(opened.items["test"]["label"])
    missed, confused = [], []
    for run in runs:
        answer = run.top(1)[:, 0]
        missed.append(int((venomous[truth] & ~venomous[answer]).sum()))
        confused.append(int((venomous[truth] & venomous[answer] & (truth != answer)).sum()))
    n, mean = int(venomous[truth].sum()), float(np.mean(missed))
    most = int(np.ceil(mean))
    bound = 1.0 if most >= n else float(beta.ppf(0.95, most + 1, n - most))
    return {
        "venomous": n,
        "called_harmless": round(mean, 2),
        "other_venomous": round(float(np.mean(confused)), 2),
        "called_harmless_per_1000": round(1000 * mean / n, 1),
        "other_venomous_per_1000": round(1000 * float(np.mean(confused)) / n, 1),
        "called_harmless_at_most": round(bound, 4),
    }
