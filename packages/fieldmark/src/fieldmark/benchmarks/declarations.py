"""The nouns of a benchmark: what is asked, of which data, and how the answer is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from fieldmark.errors import MisuseError
from fieldmark.questions.answer import Answer
from fieldmark.questions.items import Items
from fieldmark.runs.formats import RunFormat
from fieldmark.splits import Official

# What a method or a step looks at besides the item it answers; each includes the item itself.
Sees = Literal["item", "unit", "past", "test set"]
# What a method or a step learns from besides nothing: labels of train, of val, photos without labels, labels of higher
# ranks. A few numbers that hold for all labels (a temperature, a weight) are tuned on val, not learned from it.
LearnsFrom = Literal["train", "val", "unlabeled", "coarse", "hidden labels"]
Unit = Literal["%", "cost", "labels", "points", "nats"]
# Which units an interval rests on: all of them; the scarcer of two groups where a metric compares two; or those that
# the metric rests on, by their weight.
Intervals = Literal["all units", "scarcer group", "supporting units"]
# The weight of each item in a metric, given what the metric reads and the number of items.
RestsOn = Callable[[Mapping[str, Any], int], Any]
# Whether a table of truth that contradicts itself, or lacks what a metric needs, is refused or taken as it is.
GivenTruth = Literal["checked", "as given"]


@dataclass(frozen=True)
class Metric:
    """A metric with its conventions fixed.

    Args:
        name: As it appears on scorecards.
        title: As the field writes it, for pages, boards and terminals.
        value: The function that computes it.
        reads: Takes what the functions need from a comparison of answers with the truth, by keyword.
        about: The conventions in words.
        options: The conventions, by keyword as well.
        without_each_unit: The function that computes it with each unit left out in turn.
        resampled: In its place, for metrics that rest on a quantile: the function that computes it for samples of the
            units (`times`). With neither it describes the run and has no interval.
        proportion: Whether it is a share of items, so that shares near 0 and 1 get exact intervals.
        higher_is_better: Which way is up.
        bounds: Between which numbers it lies.
        unit: What it is counted in; shares are shown in percent.
        first_answer: Whether it depends on the first answer of each item and on no other, so that a rule that decides
            for one can be fitted for its sake.
        largest_cost: For mean costs, what the costliest mistake costs: rare dear mistakes get an interval of their own.
        summed: Whether costs are summed over the items, not averaged.
        rests_on: How much of the metric rests on each item; on all alike if None. Intervals, cautions and minima count
            the units of these items.
        borrowing: Whether items that weigh much and happen to be all right are taken to vary as much as all items do.
        few_units: By earlier conventions: whether it may rest on few of its units (a part that few photos show), so
            that fewer degrees of freedom are counted on.
        groups: For metrics that set two groups of items against each other: the keyword under which it reads which
            group an item is in. By an earlier convention, and where there is no `without_each_unit`, the interval
            rests on the units of the scarcer group.
        least_units: Only with `groups`: how many units each must have for an interval to be given, the group for which
            that keyword is true first.
        otherwise: The same metric by other conventions, by what a person writes to ask for them ("ties=zero").
        optional: Whether it is left off the scorecard where what it reads is not given (a list of rare species).
        needs: The columns that a table of truth must have for it, beside `id` and `label`.
        remarks: What a reader must know of the truth or the classes that it reads, in sentences.
    """

    name: str
    title: str
    value: Callable[..., float]
    reads: Callable[[Any], Mapping[str, Any]]
    about: str
    options: Mapping[str, Any] = field(default_factory=dict)
    without_each_unit: Callable[..., Any] | None = None
    resampled: Callable[..., Any] | None = None
    proportion: bool = False
    higher_is_better: bool = True
    bounds: tuple[float, float] = (0.0, 1.0)
    largest_cost: float | None = None
    summed: bool = False
    rests_on: RestsOn | None = None
    borrowing: bool = False
    few_units: bool = False
    groups: str = ""
    least_units: tuple[int, int] = (2, 2)
    optional: bool = False
    needs: tuple[str, ...] = ()
    remarks: Callable[[Any], Sequence[str]] | None = None
    unit: Unit = "%"
    first_answer: bool = False
    otherwise: Mapping[str, Callable[[], Metric]] = field(default_factory=dict)

    def arguments(self, evaluation: Any) -> dict[str, Any]:
        """What the functions take for a comparison of answers with the truth: what it reads, and the conventions."""
        return {**self.reads(evaluation), **self.options}

    def said(self, evaluation: Any) -> Sequence[str]:
        """What a reader must know of this comparison."""
        return () if self.remarks is None else self.remarks(evaluation)

    @property
    def is_share(self) -> bool:
        """Whether it lies between 0 and 1, so that it reads well in percent."""
        return self.unit == "%"


@dataclass(frozen=True)
class TimeOrder:
    """Items are handed out in time order: to answer a day, a method knows what strictly earlier days have shown it.

    Args:
        day_together: Whether items of one day see each other (`day-batch`); else each is answered by itself.
        labels_after_days: After how many days the labels of a day become known (`delayed-labels`); None for never.
    """

    day_together: bool = False
    labels_after_days: int | None = None


@dataclass(frozen=True)
class Task:
    """All that a scorer or a server needs to know.

    Args:
        items: What one answer is about.
        answer: What is given.
        unit: The column of the items that tells what is independent.
        inputs: What a method may read, by the names under which datasets declare it.
        run: The format of the run file.
        metrics: What is measured, the primary metric first.
        time_order: How items are handed out in time order; None where a method gets the test set at once.
        sees: What methods and steps may look at when they answer.
        learns_from: What methods and steps may learn from.
        coarse: Ranks whose labels come with items that have no label (kingdom, phylum).
        by: Columns of the truth by whose values the metrics are shown as well (month, site, split).
        decides: The metric that ranks the entries of a challenge, where the primary one could be gamed.
        intervals: Which units the intervals rest on.
        given: What is done with a table of truth that contradicts itself, or lacks what a metric needs.
        units_within: The column of the truth within which the name of a unit stands for one thing (an individual of
            one dataset); empty where it does everywhere.
        unit_is_label: Whether units are what the labels name, so that a unit has one label and a label one unit.
    """

    items: Items
    answer: Answer
    unit: str
    inputs: tuple[str, ...]
    run: RunFormat
    metrics: tuple[Metric, ...]
    time_order: TimeOrder | None = None
    sees: tuple[Sees, ...] = ("item", "unit", "test set")
    learns_from: tuple[LearnsFrom, ...] = ("train", "val", "unlabeled", "coarse")
    coarse: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    decides: str = ""
    intervals: Intervals = "supporting units"
    given: GivenTruth = "checked"
    units_within: str = ""
    unit_is_label: bool = False

    @property
    def unknown(self) -> bool:
        """Whether items may be of none of the known labels; truth and answers then say -1."""
        return self.answer.unknown

    @property
    def deciding(self) -> Metric:
        """The metric that ranks the entries of a challenge: the one named by `decides`, or else the primary one."""
        return next(metric for metric in self.metrics if self.decides in ("", metric.name))


class Reported:
    """A result that a paper reported, with its source; never mixed with our own.

    >>> Reported("BEiT-B/16, 384 px", source="FungiTastic, table 8", top_1=0.753).values
    {'top_1': 0.753}
    """

    def __init__(self, what: str, *, source: str, **values: float) -> None:
        self.what, self.source, self.values = what, source, values


@dataclass(frozen=True)
class Benchmark:
    """A task on the parts of a dataset, with the results papers reported on it.

    Args:
        name: As runs and scorecards name it.
        version: It rises whenever a number would change.
        dataset: The release.
        subset: Which of its subsets.
        split: The parts by the names they have there.
        task: What is asked.
        reported: Results of papers, with their sources.
        without_open_set: The benchmark that is meant where the release has no open set of this subset.
        world_bound: Under which name a simulated release keeps what its exact posterior gets right on test; empty
            where it keeps nothing for this benchmark.
        provisional: What of the metric or the format rests on nothing that organizers published; pages that show the
            benchmark say so. Empty where the metric is founded on their code or their pages.
        not_known: What else nobody outside knows about the edition, a sentence each.
        earlier: How the task read in earlier versions, for `at`: what scored then still scores the same by name.
    """

    name: str
    version: str
    dataset: str
    split: Official
    task: Task
    subset: str = "all"
    reported: tuple[Reported, ...] = field(default=())
    without_open_set: Benchmark | None = None
    world_bound: str = ""
    provisional: str = ""
    not_known: tuple[str, ...] = ()
    earlier: Mapping[str, Callable[[Task], Task]] = field(default_factory=dict)

    @property
    def versions(self) -> tuple[str, ...]:
        """All versions that can still be scored, the current one last."""
        return (*self.earlier, self.version)

    def at(self, version: str) -> Benchmark:
        """The benchmark as it was in an earlier version, with the conventions of then.

        Raises:
            MisuseError: When there is no such version.
        """
        if version == self.version:
            return self
        if version not in self.earlier:
            raise MisuseError(f"{self.name} has no version {version!r}, only {', '.join(self.versions)}.")
        closed = self.without_open_set
        return replace(
            self,
            version=version,
            task=self.earlier[version](self.task),
            without_open_set=closed.at(version) if closed is not None and version in closed.versions else closed,
        )


def with_intervals(convention: Intervals) -> Callable[[Task], Task]:
    """The task as it was with intervals by another convention, as a step back for `Benchmark.earlier`.

    Tables of truth were taken as they were given then.
    """
    return partial(replace, intervals=convention, given="as given")


def steps_back(*steps: Callable[[Task], Task]) -> Callable[[Task], Task]:
    """Several steps back, one after the other."""
    return partial(_in_turn, steps)


def _in_turn(steps: Sequence[Callable[[Task], Task]], task: Task) -> Task:
    for step in steps:
        task = step(task)
    return task
