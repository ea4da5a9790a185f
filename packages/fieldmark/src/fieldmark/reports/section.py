"""What a section of a report is, and what it is given."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks.declarations import Task
from fieldmark.questions.targets import Shape
from fieldmark.reports.markup import label
from fieldmark.runs.provenance import Run
from fieldmark.scoring import Scorecard
from fieldmark.splits import PARTS
from fieldmark.tables.labels import UNKNOWN, Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.open_benchmark import Opened

Codes = NDArray[np.int32]
UNKNOWN_SPECIES = "unknown species"


@dataclass(frozen=True)
class ScoredRun:
    """A run and its score, under the name it has on the page, and the folder it was read from."""

    title: str
    run: Run
    scorecard: Scorecard
    folder: Path | None = None


@dataclass(frozen=True)
class Context:
    """Everything a section may show, read once. Arrays have one row per item of the scored part, in its order.

    Args:
        opened: The benchmark on its release.
        runs: All runs of the page; the sections are about the first.
        part: The part that was scored: test, or val where there is no truth for test.
        predictions: What the first run said about that part, steps applied.
        truth: The true label code of each item, or of its foremost label; -1 for unknown or none.
        unit: The independent unit of each item, numbered from 0.
        thumbnail: A small picture of an item as a data URI; None where there is none to show.
        folder: Where the first run lies, if it lies anywhere.
    """

    opened: Opened
    runs: tuple[ScoredRun, ...]
    part: str
    predictions: Any
    truth: Codes
    unit: Codes
    thumbnail: Callable[[str], str | None]
    folder: Path | None = None

    @property
    def first(self) -> ScoredRun:
        return self.runs[0]

    @property
    def simulated(self) -> bool:
        return any(scored.run.simulated for scored in self.runs) or self.opened.dataset.simulated

    @property
    def task(self) -> Task:
        return self.opened.benchmark.task

    @property
    def many_labels(self) -> bool:
        """Whether several labels may hold for an item, or none."""
        return self.task.answer.several

    @property
    def media_noun(self) -> str:
        """What the release consists of."""
        return self.opened.dataset.medium.plural

    @property
    def item_noun(self) -> str:
        """What one answer is about, as a reader would say it."""
        return self.task.items.noun_for(self.opened.dataset.medium.name)

    @property
    def unit_noun(self) -> str:
        """What the intervals leave out."""
        if self.units_assumed:
            return self.item_noun
        return self.task.unit.removesuffix("_id")

    @property
    def units_assumed(self) -> bool:
        """Whether each item counts as a unit of its own only because the release does not say what belongs together."""
        return self.task.unit == "observation_id" and not self.opened.dataset.tells_observations

    @cached_property
    def shown_metrics(self) -> list[str]:
        """The metrics of the scorecard, less those that cannot differ from one before them.

        Means over all classes, over those present and over those answered as well are one number where every class is
        present.
        """
        names = set(self.labels.encode(self.items["label"]).tolist()) - ({UNKNOWN} if not self.task.unknown else set())
        whole = len(names) == len(self.labels) + self.task.unknown
        shown: list[str] = []
        seen: set[object] = set()
        for metric in self.task.metrics:
            if metric.name in self.first.scorecard.metrics:
                rest = tuple(sorted((name, str(value)) for name, value in metric.options.items() if name != "over"))
                same = (metric.value, rest) if whole and "over" in metric.options else metric.name
                shown += [] if same in seen else [metric.name]
                seen.add(same)
        return shown

    @property
    def left_out(self) -> list[str]:
        """The metrics that are the same as one that is shown."""
        return [name for name in self.first.scorecard.metrics if name not in self.shown_metrics]

    @cached_property
    def labels(self) -> Labels:
        """The known labels; unknown (-1) is none of them, even where the run answers it."""
        return self.opened.view.labels

    @cached_property
    def _titles(self) -> dict[str, str]:
        return readable_names(self.opened.dataset.taxa)

    def title(self, label: str) -> str:
        """A label as a reader would call its class; text that is no label of the release stays as it is."""
        return self._titles.get(label, label)

    @property
    def taxonomy(self) -> Taxonomy:
        return self.opened.view.taxonomy

    @property
    def items(self) -> pl.DataFrame:
        """The items of the scored part with everything the release knows about them."""
        return self.opened.items[self.part]

    @cached_property
    def predicted(self) -> Codes:
        """The first answer for each item; -1 for unknown, and where there is none."""
        return np.asarray(np.maximum(self.predictions.top(1)[:, 0], UNKNOWN), dtype=np.int32)

    def answer(self, row: int) -> str:
        """The first answer for one item, as a label or in words."""
        if self.predicted[row] != UNKNOWN:
            return self.labels.names[int(self.predicted[row])]
        return UNKNOWN_SPECIES if self.task.unknown else "no answer"

    @cached_property
    def correct(self) -> NDArray[np.bool_]:
        return np.asarray(self.predicted == self.truth)

    @cached_property
    def probabilities(self) -> NDArray[np.float32] | None:
        """Probabilities over the known labels, or None where the scores only rank."""
        everything = self.all_probabilities
        return None if everything is None else everything[:, : len(self.labels)]

    @cached_property
    def all_probabilities(self) -> NDArray[np.float32] | None:
        """The same with unknown in a last column, where the run states a probability for it."""
        if self.predictions.scale == "score" or not self.predictions.dense:
            return None
        return np.asarray(self.predictions.probabilities())

    @cached_property
    def confidence(self) -> NDArray[np.float64] | None:
        """The probability of each first answer, or None where the scores only rank; 0 where the run states none."""
        if self.all_probabilities is None:
            return None
        first, stated = self.predictions.top(1)[:, 0], self.all_probabilities
        # Unknown stands in a last column where it competes with the labels; a rule may answer it without stating any.
        column = np.where(first >= 0, first, len(self.labels))
        padded = np.column_stack([stated, np.zeros(len(stated), dtype=stated.dtype)])
        return padded[np.arange(len(column)), column].astype(np.float64)

    @property
    def trained_parts(self) -> tuple[str, ...]:
        """The parts whose labels the model behind these answers had seen.

        A final model may have been fitted to val as well; the answers on val come from the one before it.
        """
        trained = tuple(part for part in self.first.run.trained_on if part != self.part)
        return trained or ("train",)

    @property
    def labeled_parts(self) -> tuple[str, ...]:
        """The parts whose labels are known, in the order of the benchmark."""
        items = self.opened.items
        return tuple(part for part in PARTS if part in items and items[part]["label"].is_not_null().any())

    def observations(self, part: str) -> pl.DataFrame:
        """The observations behind the items of a part, each once."""
        return self.opened.items[part].unique("observation_id", keep="first", maintain_order=True)

    @cached_property
    def training_items(self) -> pl.DataFrame:
        """The items the model learned from."""
        return pl.concat([self.opened.items[part] for part in self.trained_parts])

    @cached_property
    def train_counts(self) -> NDArray[np.int64]:
        """How many training items each label has."""
        return self.counts(*self.trained_parts)

    def counts(self, *parts: str) -> NDArray[np.int64]:
        """How many items of the given parts each label has; items without a label count nowhere."""
        total = np.zeros(len(self.labels), dtype=np.int64)
        for part in parts:
            codes = self.labels.encode(self.opened.items[part]["label"])
            total += np.bincount(codes[codes != UNKNOWN], minlength=len(self.labels))
        return total


class Section(ABC):
    """One part of the page.

    Attributes:
        name: The anchor of the section, unique on the page.
        title: Its heading.
        shapes: Which shapes of answers it is about (`questions.targets`): one label, any number of them, masks.
    """

    name: str
    title: str
    shapes: ClassVar[tuple[Shape, ...]] = ("codes",)

    def heading(self, context: Context) -> str:
        """Its heading for this run and release."""
        return self.title

    @abstractmethod
    def applies(self, context: Context) -> bool:
        """Whether there is something to show for this run and release."""

    @abstractmethod
    def render(self, context: Context) -> str:
        """The section as an HTML fragment, without its heading."""


BINOMIAL = re.compile(r"^(\w[\w-]+ (?:\N{MULTIPLICATION SIGN} ?)?[a-zà-ÿ][\w-]+)(?=\s|$)")


BELOW_SPECIES = re.compile(r"\b(?:subsp|ssp|var|subvar|f|forma)\.? [a-zà-ÿ][\w-]+(?=\s|$)")


def readable_names(taxa: pl.DataFrame) -> dict[str, str]:
    """The name of each label's class: the scientific name where the release gives it, otherwise the label itself.

    Authors are left out unless two classes would then be called the same; where even full names are, the label follows.
    Birds, whose labels are codes, go by their common names.
    """
    if "common_name" in taxa.columns:
        rows = taxa.select("label", "common_name").iter_rows()
        common = {name: called or label(name) for name, called in rows}
        times = Counter(common.values())
        return {name: called if times[called] == 1 else f"{called} ({name})" for name, called in common.items()}
    if "scientific_name" not in taxa.columns:
        return {name: label(name) for name in taxa["label"]}
    full = {name: text or label(name) for name, text in taxa.select("label", "scientific_name").iter_rows()}
    short = {name: without_authors(text) for name, text in full.items()}
    times = Counter(short.values())
    chosen = {name: text if times[text] == 1 else full[name] for name, text in short.items()}
    times = Counter(chosen.values())
    return {name: text if times[text] == 1 else f"{text} ({name})" for name, text in chosen.items()}


def without_authors(scientific_name: str) -> str:
    """A scientific name without the people who gave it.

    >>> without_authors("Amanita muscaria (L.) Lam."), without_authors("Russula nauseosa f. fuscata (Fr.) Moënne-Locc.")
    ('Amanita muscaria', 'Russula nauseosa f. fuscata')
    >>> without_authors("Fungi")
    'Fungi'
    """
    binomial = BINOMIAL.match(scientific_name)
    if binomial is None:
        return scientific_name
    return " ".join([binomial.group(1), *BELOW_SPECIES.findall(scientific_name, binomial.end())])
