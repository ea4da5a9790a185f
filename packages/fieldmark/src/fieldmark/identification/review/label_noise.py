"""Labels of a release that models doubt which have not learned from them (`fieldmark check --labels`)."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Benchmark
from fieldmark.errors import MisuseError
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.fit_part import readable_inputs, supplied_view, supply_of
from fieldmark.identification.review.answer_folders import AnsweredEntry, AnswerFolder, refuse_occupied, table_of
from fieldmark.methods.linear import Linear
from fieldmark.runs.label_scores import log_softmax
from fieldmark.stats.label_doubts import Doubts, label_doubts
from fieldmark.storage.addresses import is_address, place_text
from fieldmark.tables.labels import Labels
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release
from fieldmark.views.parts import Part, View
from fieldmark.work.progress import progress

METHOD: Final = "linear"
# Of a class with fewer items nothing is left to learn from, or next to nothing, when one is held out.
FEWEST: Final = 3


@dataclass(frozen=True)
class LabelDoubts:
    """What out-of-fold models say about the labels of a release.

    Args:
        answers: The doubted labels, the strongest doubt first, as the review page shows them.
        items: How many labels were held against the models.
        few: How many are of classes with fewer than three items, about which nothing is said.
        agree: The share of labels that the models name themselves.
        simulated: Whether the release is a world.
    """

    answers: AnswerFolder
    items: int
    few: int
    agree: float
    simulated: bool

    def to_json(self) -> dict[str, Any]:
        """The doubts as plain data."""
        return {
            "items": self.items,
            "few": self.few,
            "agree": round(self.agree, 4),
            "simulated": self.simulated,
            "doubted": [
                {
                    "file": place_text(self.answers.path_of(entry.files[0])),
                    "label": entry.given,
                    "suggested": entry.name,
                    "probability": entry.probability,
                }
                for entry in self.answers.entries()
            ],
        }

    def write(self, folder: Path) -> None:
        """Writes the doubted labels for `fieldmark review`.

        Raises:
            MisuseError: When the folder is there already, or the release lies at an address: a review shows its files.
        """
        refuse_far_review(self.answers.root)
        refuse_occupied(folder)
        self.answers.write(folder)


def refuse_far_review(root: str | Path) -> None:
    """Refuses to prepare a review of a release at an address.

    Raises:
        MisuseError: Says what to do in its place.
    """
    if is_address(root):
        told = f"A review shows files of a local disk, not of {place_text(root)}."
        raise MisuseError(f"{told} Copy the release and check the copy, or leave --out away to see the list.")


def doubt_labels(
    name: str,
    data: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    folds: int = 5,
    seed: int = 0,
    store: Path | None = None,
) -> LabelDoubts:
    """Fits a linear classifier on frozen features to all folds but one, in turn, and lists the labels it doubts.

    All labeled parts take part. Observations, units and photos with the same bytes are never parted.

    Args:
        name: The dataset, or one of its benchmarks.
        data: The root of the release.
        settings: Settings of the classifier and of its features.
        folds: How many folds.
        seed: The seed of the folds, and of parts that are drawn.
        store: The feature store, if not the user's cache.

    Raises:
        MisuseError: When the release does not give one label to each item.
    """
    benchmark = _benchmark(name)
    opened = open_benchmark(benchmark, open_release(benchmark, data), seed=seed)
    configured = configured_method(METHOD, settings or {}, seed).on_release(readable_inputs(opened))
    view = supplied_view(opened, supply_of(configured, opened, store))
    assert isinstance(configured.method, Linear)  # by the name above
    probabilities, whole = out_of_fold(configured.method, all_labeled(opened, view), folds=folds, seed=seed)
    assert whole.truth is not None  # all of them are labeled
    count = np.bincount(whole.truth, minlength=len(view.labels))
    enough = count[whole.truth] >= FEWEST
    doubts = label_doubts(probabilities, whole.truth)
    doubted = np.flatnonzero(doubts.doubted & enough)
    order = doubted[np.argsort(doubts.margin[doubted], kind="stable")]
    return LabelDoubts(
        _answers(opened, view.labels, whole, probabilities, doubts, order),
        len(whole),
        int((~enough).sum()),
        float((probabilities.argmax(axis=1) == whole.truth).mean()),
        opened.dataset.simulated,
    )


def out_of_fold(method: Linear, view: View, *, folds: int, seed: int) -> tuple[NDArray[np.float32], Part]:
    """The probabilities of each item by a model that has not seen it, and the items, train and val together.

    A penalty that is left open is chosen on val first.
    """
    if view.val is not None and not method.l2:
        chosen = method.fit(view).method
        assert isinstance(chosen, Linear)  # the same with its choice made
        method = chosen
    whole = replace(view.with_val_in_train(), test=None, unlabeled=None)
    probabilities = np.zeros((len(whole.train), len(view.labels)), dtype=np.float32)
    numbers = whole.fold_numbers("unit", folds, seed)
    with progress("fitting without each fold", folds) as tick:
        for fold in range(folds):
            rest, held_out = whole.hold_out(numbers == fold)
            fitted = method.fit(rest)
            probabilities[numbers == fold] = np.exp(log_softmax(method.scores(fitted.arrays, held_out)))
            tick(1)
    return probabilities, whole.train


def _benchmark(name: str) -> Benchmark:
    """The benchmark that asks for one label of each item of a dataset."""
    named = [BENCHMARKS[name]] if name in BENCHMARKS else []
    same = [BENCHMARKS[one] for one in BENCHMARKS if one.partition("/")[0] == name]
    for benchmark in (*named, *same):
        task = benchmark.task
        if task.answer.shape == "codes" and task.items.noun != "place" and task.time_order is None:
            return benchmark
    raise MisuseError(f"{name} does not give one label to each photo or recording, so that no label can be doubted.")


def all_labeled(opened: Opened, view: View) -> View:
    """The view with everything that is labeled in train and val; labels of test count, for nothing is scored here."""
    answer, dataset = opened.benchmark.task.answer, opened.dataset
    assert view.val is not None  # `open_benchmark` refuses a release without
    train = view.train.of_known_labels()
    if view.test is not None and "test" in opened.truth:
        targets = answer.targets(dataset, opened.items["test"], opened.layout, view.labels)
        train = Part.concat([train, replace(view.test, targets=targets).of_known_labels()])
    return replace(view, train=train, val=view.val.of_known_labels())


def _answers(
    opened: Opened,
    labels: Labels,
    whole: Part,
    probabilities: NDArray[np.float32],
    doubts: Doubts,
    order: Sequence[int] | NDArray[np.int64],
) -> AnswerFolder:
    assert whole.media is not None and whole.truth is not None  # photos or recordings with labels
    paths = opened.media_paths
    entries = []
    for row in order:
        best = np.argsort(-probabilities[row], kind="stable")[:5]
        suggested = int(doubts.suggested[row])
        entries.append(
            AnsweredEntry(
                observation_id=whole.item_ids[row],
                files=[paths[one] for one in whole.items["media_ids"][int(row)].to_list()],
                name=labels.names[suggested],
                probability=round(float(probabilities[row, suggested]), 6),
                certainty=float(doubts.margin[row]),
                names=[labels.names[code] for code in best],
                probabilities=[round(float(probabilities[row, code]), 6) for code in best],
                given=labels.names[whole.truth[row]],
            )
        )
    taxa = opened.dataset.taxa
    kept = [name for name in ("label", "species", "genus", "family", "common_name") if name in taxa.columns]
    about = {
        "question": "labels",
        "model": f"{METHOD}, out of fold, on {opened.dataset.name}",
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "simulated": opened.dataset.simulated,
        "kind": opened.dataset.medium.name,
    }
    chosen = taxa.filter(pl.col("label").is_in(list(labels.names))).select(kept).to_dicts()
    root = Path(opened.dataset.release.root)
    return AnswerFolder(table_of(entries), root if is_address(root) else root.absolute(), about, chosen)
