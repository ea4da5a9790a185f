"""Time order on five worlds: prior-online, the seasonal prior and both, against a static classifier (simulated).

Traits: worlds of size `small` (160 species) in which nothing is painted; a linear classifier reads the traits of each
observation with measurement noise as large as the spread within species, which stands for what a photo shows. Painted:
worlds of size `tiny` (32 species), whose photos EfficientNet-Lite0 sees at 160 px. The classifier learns from the years
up to 2021, everything else is settled on 2022, and 2023 is answered in time order by the harness.
Steps: temperature, max-softmax and unknown-probability for all (static), then those named. The ceilings are exact
posteriors given the traits without noise and the frequencies of 2023: without and, for worlds of traits, with the day
of the year. One thing was changed after a first look at these worlds, where prior-online lost 0.2, 0.3 and 2.2 points
on traits and 3.3, 2.4 and 6.8 on painted ones: it now adapts only where val gains more than a standard error.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import fieldmark
from fieldmark.benchmarks.declarations import Benchmark
from fieldmark.benchmarks.fungitastic_temporal import TEMPORAL, TEMPORAL_DELAYED_LABELS
from fieldmark.fitting import with_features
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.fit_part import applied, fit_steps
from fieldmark.methods.linear import Linear
from fieldmark.questions.targets import LabelTargets
from fieldmark.questions.truth import Truth
from fieldmark.releases import open_dataset
from fieldmark.runs.label_scores import LabelScores
from fieldmark.scoring import score_predictions
from fieldmark.steps import make_step
from fieldmark.steps.base import Lesson
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.views.parts import Part, View
from fieldmark_worlds.layouts.fungitastic_finds import EXTENTS, TEST_YEAR, Finds, find
from fieldmark_worlds.layouts.fungitastic_posterior import open_posterior
from fieldmark_worlds.layouts.release_files import Size, prior_over
from fieldmark_worlds.nature.nature import Nature, grow_nature
from fieldmark_worlds.nature.posterior import log_posterior

SEEDS = range(5)
SIZE: Size = "small"
PAINTED_SIZE: Size = "tiny"
EXACT = "exact posterior"
CALIBRATED = ("temperature", "max-softmax", "unknown-probability")
STATIC = "static"
VARIANTS: dict[str, tuple[Benchmark, tuple[str, ...]]] = {
    STATIC: (TEMPORAL, ()),
    "month-prior": (TEMPORAL, ("month-prior:smooth=1",)),
    "prior-online": (TEMPORAL, ("prior-online",)),
    "prior-online, then month-prior": (TEMPORAL, ("prior-online", "month-prior:smooth=1")),
    "prior-online with delayed labels": (TEMPORAL_DELAYED_LABELS, ("prior-online",)),
}
METRICS = ("macro_f1_all", "top_1", "f1_unknown")
Floats = NDArray[np.float64]


class TimeWorld(NamedTuple):
    """A world as parts of features, the truth of test, and what could be known about it."""

    view: View
    taxa: pl.DataFrame
    truth: Truth
    ceilings: dict[str, LabelScores]


def run() -> dict[str, Any]:
    """Every variant and the ceilings on each world; painted worlds may lie in a folder named in the environment."""
    about = " ".join(str(__doc__).split("\n\n", 1)[1].split())
    kept = os.environ.get("FIELDMARK_EVIDENCE_WORK")
    with tempfile.TemporaryDirectory() as folder:
        worlds = {
            "traits": [study(seed, trait_world(seed)) for seed in SEEDS],
            "painted": [study(seed, painted_world(seed, Path(kept or folder))) for seed in SEEDS],
        }
    return {"simulated": True, "sizes": {"traits": SIZE, "painted": PAINTED_SIZE}, "about": about, "worlds": worlds}


def study(seed: int, world: TimeWorld) -> dict[str, Any]:
    """One world, answered in every way."""
    view = world.view
    assert view.val is not None and view.test is not None  # worlds have both
    fitted = Linear().fit(replace(view, val=view.val.of_known_labels(), test=None))
    lesson = Lesson(TEMPORAL.task, view.labels, world.taxa, view.val, view.train)
    calibrated, val = fit_steps([make_step(name) for name in CALIBRATED], fitted.predict(view.val, view.labels), lesson)
    test = applied(calibrated, fitted.predict(view.test, view.labels), view.test.items, TEMPORAL.task, None)
    row: dict[str, Any] = {"seed": seed, "items": len(view.test), "labels": len(view.labels)}
    row |= {"runs": {}, "settings": {}}
    true_codes = view.labels.encode(world.truth.rows["label"])
    for name, (benchmark, steps) in VARIANTS.items():
        own = replace(lesson, task=benchmark.task)
        more, _ = fit_steps([make_step(step) for step in steps], val, own)
        answers = applied(more, test, view.test.items, benchmark.task, true_codes)
        row["runs"][name] = _scores(benchmark, answers, world)
        row["settings"][name] = [
            {key: getattr(step, key) for key in ("days_chosen", "strength_chosen", "exponents") if hasattr(step, key)}
            for step in more
        ]
    row["runs"] |= {name: _scores(TEMPORAL, answers, world) for name, answers in world.ceilings.items()}
    print(seed, {name: [values[metric] for metric in METRICS] for name, values in row["runs"].items()}, flush=True)
    return row


def painted_world(seed: int, folder: Path) -> TimeWorld:
    """A world with photos, as the benchmark opens it."""
    root = folder / f"painted-{seed}"
    if not root.exists():
        fieldmark.world("fungitastic", root, size=PAINTED_SIZE, seed=seed)
    opened = open_benchmark(TEMPORAL, open_dataset("fungitastic", root))
    view = with_features(opened, configured_method("linear", {"size": 160}))
    posterior = open_posterior(PAINTED_SIZE, seed)
    row_of = {name: row for row, name in enumerate(posterior.items)}
    table = opened.items["test"]
    shares = posterior.probabilities[[row_of[media[0]] for media in table["media_ids"]]]
    order = [posterior.labels.index(name) for name in view.labels.names]
    exact = _exact(tuple(table["item_id"]), view.labels, shares[:, order], shares[:, -1])
    truth = replace(opened.truth["test"], groups=pl.DataFrame())
    return TimeWorld(view, opened.dataset.taxa, truth, {EXACT: exact})


def trait_world(seed: int) -> TimeWorld:
    """The observations of a world with noisy traits as features; unknown species only in val and test."""
    extent = EXTENTS[SIZE]
    nature = grow_nature(extent.nature, seed)
    finds = find(nature, extent, seed)
    known = np.flatnonzero(finds.known)
    labels = Labels(tuple(str(number) for number in range(len(known))))
    code_of = np.full(len(nature), -1, dtype=np.int32)
    code_of[known] = np.arange(len(known))
    features = _noisy(nature, finds, np.random.default_rng([seed, 1]))
    parts, rows = {}, {}
    for split in ("train", "val", "test"):
        rows[split] = finds.of(split, finds.known if split == "train" else ~finds.few_shot)
        codes = code_of[finds.seen.species[rows[split]]]
        parts[split] = Part(_items(finds, rows[split]), LabelTargets(codes), features={"photo": features[rows[split]]})
    taxa = pl.DataFrame({"label": labels.names})
    ids = parts["test"].item_ids
    names = labels.decode(code_of[finds.seen.species[rows["test"]]])
    truth = Truth(pl.DataFrame({"item_id": ids, "label": names}), ids, ids)
    view = View(labels, Taxonomy.of(labels, taxa), parts["train"], parts["val"], None, parts["test"].unlabeled())
    ceilings = {
        EXACT: ceiling(nature, finds, rows["test"], view, with_day=False),
        f"{EXACT} with the day": ceiling(nature, finds, rows["test"], view, with_day=True),
    }
    return TimeWorld(view, taxa, truth, ceilings)


def _noisy(nature: Nature, finds: Finds, rng: np.random.Generator) -> NDArray[np.float32]:
    traits = finds.seen.traits
    blurred = traits.latents + nature.sds.mean(axis=0) * rng.standard_normal(traits.latents.shape)
    options = [np.eye(shares.shape[1])[traits.options[:, i]] for i, shares in enumerate(nature.option_probabilities)]
    return np.hstack([blurred, *options]).astype(np.float32)


def _items(finds: Finds, rows: NDArray[np.int64]) -> pl.DataFrame:
    table = finds.seen.table[rows.tolist()]
    ids = table["observation_id"].cast(pl.String)
    return pl.DataFrame({"item_id": ids, "observation_id": ids, "date": table["date"]}).with_columns(
        media_ids=pl.lit([], pl.List(pl.String)), month=pl.col("date").dt.month()
    )


def ceiling(nature: Nature, finds: Finds, test: NDArray[np.int64], view: View, *, with_day: bool) -> LabelScores:
    """What the exact traits (and the day) say about each item of test, under the frequencies of its year."""
    share = len(finds.of("test", finds.known)) / len(test)
    prior = share * prior_over(nature, [TEST_YEAR], finds.known)
    prior = prior + (1 - share) * prior_over(nature, [TEST_YEAR], finds.unknown)
    seen = finds.seen.take(test)
    joint = log_posterior(nature, seen.traits, prior=prior)
    if with_day:
        joint = joint + np.log(nature.day_probabilities).T[seen.table["day"].to_numpy()]
    shares = np.exp(joint - joint.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    assert view.test is not None  # worlds have one
    known, unknown = shares[:, finds.known], shares[:, finds.unknown].sum(axis=1)
    return _exact(view.test.item_ids, view.labels, known, unknown)


def _exact(items: tuple[str, ...], labels: Labels, known: Floats, unknown: Floats) -> LabelScores:
    """Probabilities of labels and of unknown as predictions, strange by the odds of unknown."""
    with np.errstate(divide="ignore"):
        logs, strange = np.log(known), np.log(unknown)
        odds = np.clip(strange - np.log1p(-np.minimum(unknown, 1 - 1e-15)), -700, 700)
    return LabelScores(items, labels, logs, "log_probability", unknown=odds, unknown_label=strange)


def _scores(benchmark: Benchmark, answers: Any, world: TimeWorld) -> dict[str, float]:
    task = replace(benchmark.task, by=())
    card = score_predictions(
        replace(benchmark, task=task), answers, world.truth, labels=world.view.labels, classes=world.taxa
    )
    return {name: round(card.metrics[name].value, 4) for name in (*METRICS, "roc_auc")}
