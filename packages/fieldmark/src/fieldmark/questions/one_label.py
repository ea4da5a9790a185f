"""One label per item, or "unknown"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError, MisuseError
from fieldmark.metrics.classification import SharedCounts
from fieldmark.metrics.geo import AdaptiveSets, adaptive_sets, adaptive_sets_of_lists
from fieldmark.metrics.ranking import rank_of_truth
from fieldmark.questions.answer import Answer, Evaluation, LooseTruth, flags_of, read_classes
from fieldmark.questions.items import TRUTH_FILE, Items, Layout, TruthRows
from fieldmark.questions.targets import LabelTargets, Shape
from fieldmark.questions.truth import Truth
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.label_scores import LabelScores, Scores
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.labels import UNKNOWN, UNKNOWN_NAME, Labels
from fieldmark.tables.schema import TRUTH
from fieldmark.tables.text_columns import column_of

# Whether the species of an item is poisonous, in a table of truth and in the items of a release.
POISONOUS, SPECIES_POISONOUS = "poisonous", "species_poisonous"
SET_SIZE = 30
SAMPLE_LABELS = 10


@dataclass(frozen=True)
class OneLabel(Answer):
    """Every item has one label.

    Args:
        column: The column of the items that holds it. Labels are those of the release's taxa, or, for another column
            (genus, morph), the values that occur there.
        unknown: Whether an item may be of none of the known labels.
    """

    column: str = "label"
    unknown: bool = False
    shape: ClassVar[Shape] = "codes"
    wants: ClassVar[str] = "one label"

    @property
    def default_steps(self) -> tuple[str, ...]:
        return ("temperature", "max-softmax") if self.unknown else ("temperature",)

    def labels(self, dataset: Dataset, layout: Layout) -> Labels:
        if self.column == "label":
            return super().labels(dataset, layout)
        return Labels.of(layout.table[self.column].drop_nulls())

    def truth(
        self, dataset: Dataset, table: pl.DataFrame, layout: Layout, units: Sequence[str], groups: pl.DataFrame
    ) -> Truth:
        rows = TRUTH.check(table.select("item_id", label=self.column), "truth")
        poisonous = table[SPECIES_POISONOUS] if self.unknown and SPECIES_POISONOUS in table.columns else None
        return Truth(rows, tuple(table["item_id"]), tuple(units), groups, poisonous=poisonous)

    def targets(self, dataset: Dataset, table: pl.DataFrame, layout: Layout, labels: Labels) -> LabelTargets:
        return LabelTargets(labels.encode(table[self.column]))

    def given(self, items: Items, truth: Any, classes: Any, media: Any, by: Sequence[str]) -> LooseTruth:
        rows = items.read_truth(truth, media, by)
        given = rows.table.filled("label")
        if len(rows.items) < len(given.frame):
            given.once(["item_id"], "the id {item_id} again", "each id once")
        if not self.unknown:
            self._refuse_unknown(rows)
        named = rows.rows.filter(pl.col("label") != UNKNOWN_NAME)["label"] if self.unknown else rows.rows["label"]
        labels, table = read_classes(classes, named, rows.table)
        poisonous = given.parsed(POISONOUS, bool).frame[POISONOUS] if self.unknown and POISONOUS in given else None
        true = Truth(
            rows.rows.select("item_id", "label"),
            rows.items,
            rows.units,
            rows.groups,
            poisonous=poisonous,
            given=rows.table,
        )
        return LooseTruth(true, labels, table)

    def write_truth(
        self, items: Items, folder: Path, truth: Truth, table: pl.DataFrame, taxa: pl.DataFrame, by: Sequence[str]
    ) -> None:
        super().write_truth(items, folder, truth, table, taxa, by)
        if truth.poisonous is not None and truth.poisonous.is_not_null().any():
            written = pl.read_csv(folder / TRUTH_FILE, infer_schema=False)
            written.with_columns(truth.poisonous.alias(POISONOUS)).write_csv(folder / TRUTH_FILE)

    def _refuse_unknown(self, given: TruthRows) -> None:
        unknown = (given.rows["label"] == UNKNOWN_NAME).arg_true()
        if len(unknown):
            expected = "a known label: nothing is unknown in this benchmark"
            raise given.table.at(int(unknown[0]), f"the label {UNKNOWN_NAME!r}, which stands for unknown", expected)

    def evaluate(
        self, predictions: LabelScores, truth: Truth, labels: Labels, classes: pl.DataFrame, depth: int
    ) -> LabelEvaluation:
        return LabelEvaluation(truth, predictions.coded_by(labels), labels, classes, depth, self.unknown)

    def sample(self, items: tuple[str, ...], labels: Labels, rng: np.random.Generator, *, dense: bool) -> LabelScores:
        return random_scores(items, labels, rng, dense=dense, unknown=self.unknown)


def random_scores(
    items: tuple[str, ...], labels: Labels, rng: np.random.Generator, *, dense: bool, unknown: bool = False
) -> LabelScores:
    """Labels drawn at random: a score for every label, or short lists."""
    n = len(labels) + unknown
    strange = rng.random(len(items), dtype=np.float32)
    if dense:
        scores = rng.dirichlet(np.ones(n), size=len(items)).astype(np.float32)[:, : len(labels)]
        return LabelScores(items, labels, scores, "score", unknown=strange)
    width = min(SAMPLE_LABELS, n)
    codes = (rng.integers(n, size=(len(items), 1)) + np.arange(width)) % n  # in a row, so that none comes twice
    codes = np.where(codes < len(labels), codes, UNKNOWN)
    lists = CodeSets(codes.astype(np.int32).ravel(), np.arange(len(items) + 1, dtype=np.int64) * width)
    ranks = np.tile(1 - np.arange(width) / width, len(items))
    return LabelScores.listed(items, labels, lists, ranks, unknown=strange)


@dataclass(frozen=True)
class LabelEvaluation(Evaluation):
    """Answers beside the one true label of each item.

    Args:
        predictions: The answers, for at least the items of the truth.
        labels: The known labels.
        classes: What is known about them, one row per label.
        depth: How many ranks the metrics look at.
        unknown: Whether an item may be of none of the known labels.
    """

    predictions: LabelScores
    labels: Labels
    classes: pl.DataFrame
    depth: int
    unknown: bool

    @property
    def n_classes(self) -> int:
        return len(self.labels)

    @property
    def class_names(self) -> Sequence[str]:
        return self.labels.names

    def take(self, rows: NDArray[np.bool_]) -> Self:
        return replace(self, truth=self.truth.take(rows))

    def with_answers(self, codes: NDArray[np.int32]) -> Self:
        lists = CodeSets.single(codes)
        one_each = LabelScores.listed(self.truth.items, self.labels, lists, np.ones(len(codes)))
        other = replace(self, predictions=one_each, depth=1)
        other.__dict__["true_codes"] = self.true_codes  # encoded once
        return other

    @cached_property
    def selected(self) -> LabelScores:
        """The predictions of the items of the truth, in their order."""
        return self.predictions.select(self.truth.items)

    @cached_property
    def true_codes(self) -> NDArray[np.int32]:
        """The code of the true label of each item, -1 for unknown."""
        asked, rows = column_of(self.truth.items, "item_id"), self.truth.rows
        if rows["item_id"].equals(asked):
            names = rows["label"]
        else:
            rows = rows.unique("item_id", keep="last")
            names = asked.to_frame().join(rows, on="item_id", how="left", maintain_order="left")["label"]
        codes = names.cast(pl.Enum(self.labels.names), strict=False).to_physical().cast(pl.Int32)
        strange = codes.is_null() & ~((names == UNKNOWN_NAME) & self.unknown).fill_null(False)
        if strange.any():
            row = int(strange.arg_max() or 0)
            item, name = self.truth.items[row], names[row]
            raise MisuseError(f"Item {item!r} has the label {name!r}, which the predictions do not know.")
        return codes.fill_null(UNKNOWN).to_numpy()

    @cached_property
    def ranked(self) -> NDArray[np.int32]:
        """The codes of the best answers, best first; -1 for unknown, -2 where there are fewer."""
        return self.selected.top(self.depth)

    @cached_property
    def ranked_ties_highest(self) -> NDArray[np.int32]:
        """The same, with the highest code first among equal scores."""
        return self.selected.top(self.depth, ties="highest")

    @cached_property
    def first(self) -> NDArray[np.int32]:
        """The first answer of each item."""
        return np.ascontiguousarray(self.ranked[:, 0])

    @cached_property
    def shared_counts(self) -> SharedCounts:
        """What several averages of the first answers share."""
        return SharedCounts()

    @cached_property
    def rank_of_truth(self) -> NDArray[np.int64]:
        """The rank of the true label among all that a run lists, from 1; 0 where it is not listed."""
        ranks = self.selected.rank_of(self.true_codes)
        return np.where(self.true_codes == UNKNOWN, 0, ranks)

    @cached_property
    def stated_rank_of_truth(self) -> NDArray[np.int64]:
        """The rank of the true label by the ranks that the run states, whatever the scores; 0 where it is not listed.

        Raises:
            InputError: When the run states none.
        """
        stated = self.selected.stated_ranks
        if stated is None:
            raise InputError("the run", found="no ranks", expected="a rank beside each score, as a run file states it")
        item, label, _ = self.selected.pairs()
        return rank_of_truth(item, label, -stated, self.true_codes)

    @property
    def is_known(self) -> NDArray[np.bool_]:
        return np.asarray(self.true_codes != UNKNOWN)

    @cached_property
    def unknown_score(self) -> NDArray[np.floating[Any]]:
        """How strange each item looks."""
        if self.selected.unknown is None:
            raise InputError("the run", found="no unknown_score", expected="the novelty of each item")
        return self.selected.unknown

    @cached_property
    def probabilities(self) -> Scores:
        """One column per known label: probabilities where the predictions have them, else their scores."""
        if not self.selected.dense:
            raise InputError("the run", found="a list of labels", expected="a score for every label")
        return self.selected.chances()

    @cached_property
    def sets_of_30(self) -> AdaptiveSets:
        """The adaptive sets of 30 labels on average; equal scores at the threshold are in."""
        return self._sets(strict=False)

    @cached_property
    def strict_sets_of_30(self) -> AdaptiveSets:
        """The same, equal scores at the threshold left out."""
        return self._sets(strict=True)

    def _sets(self, *, strict: bool) -> AdaptiveSets:
        if self.selected.dense:
            return adaptive_sets([self.selected.scores], self.true_codes, k=SET_SIZE, strict=strict)
        return adaptive_sets_of_lists(*self.selected.pairs(), self.true_codes, k=SET_SIZE, strict=strict)

    @cached_property
    def dangerous(self) -> NDArray[np.bool_]:
        """For each known label whether it is poisonous or venomous."""
        return flags_of(self.labels, self.classes, POISONOUS)

    @cached_property
    def truly_dangerous(self) -> NDArray[np.bool_]:
        """For each item whether its species is: known labels by what the classes say, unknown species by the truth.

        An unknown species of which the truth says nothing counts as harmless.
        """
        said = self.truth.poisonous
        unknown = np.zeros(len(self.truth.items), dtype=bool) if said is None else said.fill_null(False).to_numpy()
        return np.where(self.is_known, np.append(self.dangerous, False)[self.true_codes], unknown)

    @cached_property
    def is_rare(self) -> NDArray[np.bool_]:
        """For each item whether its true label is listed as rare."""
        return flags_of(self.labels, self.classes, "rare")[self.true_codes]

    def confusion(self) -> dict[str, Any] | None:
        """How often items of one group of labels are answered with another, where the classes name a `group`.

        Returns:
            `groups`, and `counts` with one row per true group and one column per answered one; unknown and unanswered
            items stand in none.
        """
        if "group" not in self.classes.columns:
            return None
        group_of = dict(self.classes.select("label", "group").drop_nulls().iter_rows())
        groups = Labels.of(group_of.values())
        codes = groups.encode([group_of.get(name) for name in self.labels.names])
        seen = (self.true_codes >= 0) & (self.first >= 0)
        true, answered = codes[self.true_codes[seen]], codes[self.first[seen]]
        both = (true != UNKNOWN) & (answered != UNKNOWN)
        counts = np.zeros((len(groups), len(groups)), dtype=np.int64)
        np.add.at(counts, (true[both], answered[both]), 1)
        return {"groups": list(groups.names), "counts": counts.tolist()}
