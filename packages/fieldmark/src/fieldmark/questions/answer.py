"""What is given as an answer: label set, targets, comparison with the truth, default steps, a sample."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError, did_you_mean
from fieldmark.questions.items import TRUTH_FILE, Items, Layout
from fieldmark.questions.targets import Shape, Targets
from fieldmark.questions.truth import Truth
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.given_tables import LINE, GivenTable, read_given
from fieldmark.tables.labels import UNKNOWN_NAME, Labels

CLASSES_FILE = "classes.csv"
# Where the rows of a given table of classes stand, for messages.
WHERE = "given in"


@dataclass(frozen=True)
class Evaluation(ABC):
    """Answers beside the truth; metrics read from it by typed functions. Fields are computed once, when asked for."""

    truth: Truth

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """How many classes there are."""

    @property
    def class_names(self) -> Sequence[str]:
        """The classes, where there is a list of them that a run cannot change; else none."""
        return ()

    @abstractmethod
    def take(self, rows: NDArray[np.bool_]) -> Self:
        """The comparison for some of the items."""

    def with_answers(self, codes: NDArray[np.int32]) -> Self:
        """The same items with one answer each, for trying many rules on one truth."""
        raise ValueError("there is no one answer for each item here")

    def confusion(self) -> dict[str, Any] | None:
        """How often items of one group of labels are answered with another; None where that cannot be said."""
        return None


class LooseTruth(NamedTuple):
    """A truth that was given without a release.

    Args:
        truth: The truth.
        labels: The known labels.
        classes: What is known about them.
        part: What the scored part is called on the scorecard, if not as the caller says.
    """

    truth: Truth
    labels: Labels
    classes: pl.DataFrame
    part: str = ""


class Answer(ABC):
    """What is given. Subclasses are dataclasses; they take plain values and know nothing of tasks.

    Attributes:
        shape: What a method learns from (`questions.targets`).
        several: Whether any number of labels may hold for an item, none included.
        column: The column of the items that holds the label, or the foremost one.
        unknown: Whether items may be of none of the known labels; truth and answers then say -1.
        truth_file: What the file with the truth is called where it is kept by itself.
        wants: What is wanted, in a few words.
    """

    shape: ClassVar[Shape]
    several: ClassVar[bool] = False
    truth_file: ClassVar[str] = TRUTH_FILE
    wants: ClassVar[str] = "an answer"
    column: str = "label"
    unknown: bool = False

    @property
    @abstractmethod
    def default_steps(self) -> tuple[str, ...]:
        """The names of the steps that follow a method where none are asked for."""

    @abstractmethod
    def evaluate(self, predictions: Any, truth: Truth, labels: Labels, classes: pl.DataFrame, depth: int) -> Evaluation:
        """Puts answers beside the truth.

        Args:
            predictions: The answers, for at least the items of the truth.
            truth: The true labels and the units.
            labels: The known labels.
            classes: What is known about them (`poisonous`, `rare`, ...), one row per label.
            depth: How many ranks the metrics look at.
        """

    def comparable(self, names: Iterable[str]) -> set[str]:
        """Those of some names that run and truth share if they speak of the same labels: not "unknown"."""
        return set(names) - {UNKNOWN_NAME}

    def is_known(self, items: Items, dataset: Dataset, table: pl.DataFrame) -> bool:
        """Whether the release holds the answers of a part, whose items stand in `table`."""
        return items.is_labeled(table, self.column)

    def remarks(self, dataset: Dataset, table: pl.DataFrame, part: str) -> list[str]:
        """What a reader must know about the answers of a part: items that are left out, for instance."""
        return []

    def labels(self, dataset: Dataset, layout: Layout) -> Labels:
        """The known labels of a release."""
        return Labels(tuple(dataset.taxa["label"]))

    @abstractmethod
    def truth(
        self, dataset: Dataset, table: pl.DataFrame, layout: Layout, units: Sequence[str], groups: pl.DataFrame
    ) -> Truth:
        """The truth of a part of a release, whose items stand in `table`."""

    @abstractmethod
    def targets(self, dataset: Dataset, table: pl.DataFrame, layout: Layout, labels: Labels) -> Targets:
        """The same in the shape that methods learn from."""

    def given(self, items: Items, truth: Any, classes: Any, media: Any, by: Sequence[str]) -> LooseTruth:
        """The truth from files, frames or mappings of columns.

        Args:
            items: What is asked about, which reads the tables.
            truth: The table of truth.
            classes: `label` and, where they matter, `poisonous`, `rare`; None takes the labels of the truth.
            media: For soundscapes: `MediaId`, `seconds` and, where it matters, `site`.
            by: The columns that scores are shown by.
        """
        raise InputError(str(truth), found="a table", expected="what this kind of answer is scored against")

    def write_truth(
        self, items: Items, folder: Path, truth: Truth, table: pl.DataFrame, taxa: pl.DataFrame, by: Sequence[str]
    ) -> None:
        """Writes the truth of a part of a release as `given` reads it."""
        items.write_truth(folder, truth, table, by)
        taxa.write_csv(folder / CLASSES_FILE)

    def keep_truth(self, items: Items, truth: Path, folder: Path) -> None:
        """Puts a truth that somebody gave into the folder of a challenge, as `given` reads it."""
        shutil.copyfile(truth, folder / self.truth_file)

    @abstractmethod
    def sample(self, items: tuple[str, ...], labels: Labels, rng: np.random.Generator, *, dense: bool) -> Any:
        """Predictions drawn at random: an example of the run format, and what guessing scores."""


def read_classes(classes: Any, named: pl.Series, truth: GivenTable | str) -> tuple[Labels, pl.DataFrame]:
    """The known labels and what is known about them; without a table, those that the truth names.

    Args:
        classes: The table, a file or None.
        named: The labels that the truth names.
        truth: The table of truth, for the line of one that is not listed, or what to call it.

    Raises:
        InputError: For a label that is blank or listed twice, a flag that is neither true nor false, or a label of the
            truth that is not listed.
    """
    if classes is None:
        return Labels.of(named), pl.DataFrame({"label": []}, schema={"label": pl.String})
    table = read_given(classes, "classes", ("label",)).filled("label")
    table = table.once(["label"], "the label {label} again", "each label once")
    for flag in ("poisonous", "rare"):
        if flag in table:
            table = table.parsed(flag, bool)
    listed = table.frame["label"].filter(table.frame["label"] != UNKNOWN_NAME)
    labels = Labels(tuple(listed.to_list()))
    strange = named.filter(~named.is_in(listed))
    if len(strange):
        found, expected = f"the label {strange[0]!r}", f"a label listed in {table.where}"
        if isinstance(truth, str):
            raise InputError(truth, found=found, expected=expected)
        raise truth.at(int((truth.frame["label"] == strange[0]).arg_true()[0]), found, expected)
    return labels, table.frame.with_columns(pl.lit(table.where).alias(WHERE))


def lacking(classes: pl.DataFrame, name: str, expected: str) -> InputError:
    """The error for classes that do not say what a metric asks of them, with the file where somebody gave one."""
    given = WHERE in classes.columns and len(classes) > 0
    shown = [column for column in classes.columns if column not in (LINE, WHERE, name)]
    where = classes[WHERE][0] if given else "the classes"
    near = did_you_mean(name, shown).partition("Known:")[0].strip()
    found = f"the columns {', '.join(shown)}"
    return InputError(where, line=1 if given else None, found=found, expected=expected, hint=near or None)


def flags_of(labels: Labels, classes: pl.DataFrame, name: str) -> NDArray[np.bool_]:
    """One flag per known label from a column of the classes.

    In the taxa of a release labels without the flag count as False, unless none of them has it; a table that somebody
    gave must say it of each.

    Raises:
        InputError: When nothing is known of any label, or a given table leaves it blank.
    """
    given = WHERE in classes.columns
    if name not in classes.columns or (not given and len(classes) and classes[name].is_null().all()):
        raise lacking(classes, name, f"a column {name!r} with true or false")
    if given:
        for line, where in classes.filter(pl.col(name).is_null()).select(LINE, WHERE).iter_rows():
            raise InputError(where, line=line, found=f"no value for {name}", expected="true or false")
    rows = pl.DataFrame({"label": labels.names}).join(classes, on="label", how="left", maintain_order="left")
    return rows[name].fill_null(False).to_numpy().astype(np.bool_)
