"""Scores of rare and of common classes, and how far the class frequencies of a part lie from those of train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from fieldmark.reports.charts.estimates import Share, share
from fieldmark.reports.charts.plots import BLUE, GREEN, MUTED, ORANGE, TINT, draw, percent_axis, stacked
from fieldmark.reports.markup import EN_DASH, count, render
from fieldmark.reports.section import Codes, Context, Section
from fieldmark.tables.labels import UNKNOWN

SHUFFLES = 20
SEED = 0
# The lower ends of the bins of training items per class.
BIN_STARTS = (0, 1, 5, 10, 20, 50, 100, 500)
# More columns than this cannot be told apart; beyond it neighbors in frequency share one.
MOST_COLUMNS = 200
# The most common class has at least so many times as many items as the one in the middle.
LONG_TAIL = 5
# With no more classes than this their names fit below the plot.
MOST_NAMES = 30
NAME_LENGTH = 24
# Shape and color of the parts that stand as marks on the bars of train.
MARKERS = {"val": ("o", BLUE), "test": ("D", ORANGE)}


@dataclass(frozen=True)
class Bin:
    """Classes with a similar number of training items, and how many of their items were answered right."""

    title: str
    classes: int
    recall: Share | None


@dataclass(frozen=True)
class Column:
    """One class (or a few neighbors) by training frequency.

    Args:
        name: The class; empty where several share the column.
        training: Training items per class.
        further: Items per class in each part other than train.
        recall: The mean recall of the classes that have scored items, NaN where none has.
    """

    name: str
    training: float
    further: Mapping[str, float]
    recall: float


class LongTail(Section):
    """How much a class gains from being common."""

    name = "long-tail"
    title = "Class frequencies"

    def heading(self, context: Context) -> str:
        return "The long tail" if has_long_tail(context) else self.title

    def applies(self, context: Context) -> bool:
        return True

    def render(self, context: Context) -> str:
        columns, size_bins = frequency_columns(context), bins(context)
        scored = context.counts(context.part)
        return render(
            "sections/long_tail.html.j2",
            context=context,
            tail=_draw_tail(context, columns),
            by_frequency=_draw_bins(context, size_bins) if len(size_bins) > 1 else None,
            bins=size_bins,
            long_tail=has_long_tail(context),
            grouped=len(columns) < len(context.labels),
            without_items=int((scored == 0).sum()),
            trained=" + ".join(context.trained_parts),
            parts=part_frequencies(context),
        )


def has_long_tail(context: Context) -> bool:
    """Whether the most common class has many times as many training items as the class in the middle."""
    counts = context.train_counts
    return bool(counts.max() >= LONG_TAIL * max(float(np.median(counts)), 1.0))


def recall_by_class(context: Context) -> NDArray[np.float64]:
    """The share of each class's items that were answered right; NaN for classes without items."""
    size = len(context.labels)
    known = context.truth != UNKNOWN
    items = np.bincount(context.truth[known], minlength=size)
    hits = np.bincount(context.truth[context.correct & known], minlength=size)
    return np.asarray(np.divide(hits, items, out=np.full(size, np.nan), where=items > 0), dtype=np.float64)


def frequency_columns(context: Context) -> list[Column]:
    """The classes, most training items first, in at most `MOST_COLUMNS` columns."""
    training, recall = context.train_counts, recall_by_class(context)
    further = {part: context.counts(part) for part in context.labeled_parts if part != "train"}
    order = np.lexsort((np.arange(len(training)), -training))
    columns = []
    for classes in np.array_split(order, min(len(order), MOST_COLUMNS)):
        recalls = recall[classes][~np.isnan(recall[classes])]
        columns.append(
            Column(
                name=context.labels.names[classes[0]] if len(classes) == 1 else "",
                training=float(training[classes].mean()),
                further={part: float(counts[classes].mean()) for part, counts in further.items()},
                recall=float(recalls.mean()) if len(recalls) else float("nan"),
            )
        )
    return columns


def bins(context: Context) -> list[Bin]:
    """Recall by how often a class occurs in training; empty bins are left out."""
    place_of_class = np.searchsorted(BIN_STARTS, context.train_counts, side="right") - 1
    place = np.where(context.truth == UNKNOWN, UNKNOWN, place_of_class[context.truth])
    made = []
    for number in np.unique(place_of_class):
        inside = place == number
        recall = share(context.correct[inside], context.unit[inside]) if inside.any() else None
        made.append(Bin(_bin_title(int(number)), int((place_of_class == number).sum()), recall))
    return made


def _bin_title(number: int) -> str:
    start = BIN_STARTS[number]
    if number + 1 == len(BIN_STARTS):
        return f"{start}+"
    last = BIN_STARTS[number + 1] - 1
    return str(start) if last == start else f"{start}{EN_DASH}{last}"


def _draw_tail(context: Context, columns: list[Column]) -> Markup:
    named = len(columns) <= MOST_NAMES
    return draw(
        "long-tail-classes",
        partial(_paint_tail, context=context, columns=columns, named=named),
        width=1036,
        height=520 if named else 440,
        description=(
            f"Above: {context.item_noun}s per class in each part, most frequent class of training first. "
            "Below: the recall of the same classes."
        ),
    )


def _paint_tail(figure: Figure, *, context: Context, columns: list[Column], named: bool) -> None:
    above, below = stacked(figure, heights=(1.15, 1))
    place = np.arange(len(columns))
    _paint_counts(above, context, columns, place)
    recall = np.array([column.recall for column in columns])
    has_recall = ~np.isnan(recall)
    size = 5.0 if len(columns) <= 60 else 3.2
    below.vlines(place[has_recall], 0, recall[has_recall], color=GREEN, alpha=0.35, linewidth=size / 2)
    below.plot(place[has_recall], recall[has_recall], "o", color=GREEN, markersize=size)
    if (~has_recall).any():
        below.plot(place[~has_recall], np.zeros((~has_recall).sum()), "x", color=MUTED, markersize=size)
    percent_axis(below, f"Recall on {context.part}")
    below.set_xlim(-0.7, len(columns) - 0.3)
    if named:
        names = [context.title(column.name) for column in columns]
        short = [name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…" for name in names]
        below.set_xticks(place, short, rotation=45, ha="right", rotation_mode="anchor", fontsize=10.5)
    else:
        below.set_xticks([])
        below.set_xlabel(f"{count(len(context.labels))} classes, most training {context.item_noun}s first")


def _paint_counts(axes: Axes, context: Context, columns: list[Column], place: NDArray[np.int64]) -> None:
    training = np.array([column.training for column in columns])
    axes.bar(place, training, width=0.92, color=TINT, linewidth=0, label=" + ".join(context.trained_parts))
    size = 8.0 if len(columns) <= MOST_NAMES else 5.0 if len(columns) <= 60 else 3.2
    positive = [training[training > 0]]
    for part in columns[0].further:
        counts = np.array([column.further[part] for column in columns])
        shown = counts > 0
        shape, color = MARKERS.get(part, ("s", MUTED))
        axes.plot(place[shown], counts[shown], shape, color=color, markersize=size * 0.8, label=part)
        positive.append(counts[shown])
    values = np.concatenate(positive)
    axes.set_yscale("log")
    axes.set_ylim(min(0.7, float(values.min()) * 0.7), float(values.max()) * 1.5)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if values.max() < 200 else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title(f"{context.item_noun.capitalize()}s per class (log scale)")
    *markers, bars = axes.get_legend_handles_labels()[0]
    axes.legend(
        handles=[bars, *markers], loc="lower right", bbox_to_anchor=(1, 1), ncols=4, borderaxespad=0, handletextpad=0.5
    )


def _draw_bins(context: Context, size_bins: list[Bin]) -> Markup:
    return draw(
        "long-tail-bins",
        partial(_paint_bins, context=context, size_bins=size_bins),
        width=460,
        height=300,
        description=f"Recall on {context.part} by the number of training {context.item_noun}s of a class.",
    )


def _paint_bins(figure: Figure, *, context: Context, size_bins: list[Bin]) -> None:
    axes = figure.subplots()
    for place, group in enumerate(size_bins):
        recall = group.recall
        if recall is not None and recall.low is not None and recall.high is not None:
            axes.vlines(place, recall.low, recall.high, color=GREEN, linewidth=2)
    filled = [(place, group.recall.value) for place, group in enumerate(size_bins) if group.recall]
    axes.plot(*np.array(filled).T, "o-", color=GREEN, markersize=7)
    percent_axis(axes, f"Recall on {context.part}")
    axes.set_xlim(-0.5, len(size_bins) - 0.5)
    axes.set_xticks(range(len(size_bins)), [group.title for group in size_bins])
    axes.set_xlabel(f"training {context.item_noun}s of the class")


SECTION = LongTail()


@dataclass(frozen=True)
class PartFrequencies:
    """One part of the benchmark.

    Args:
        part: Its name.
        items, units, classes: How many of each it has, items of unknown species left out.
        shift: The share of its items that would have to change class to match train; None for train itself.
        by_chance: The shift to expect if units had been dealt to train and this part at random.
    """

    part: str
    items: int
    units: int
    classes: int
    shift: float | None = None
    by_chance: float | None = None


def part_frequencies(context: Context) -> list[PartFrequencies]:
    """Every part whose labels are known, train first; all counts are of the items of known classes."""
    codes, units = {}, {}
    for part in context.labeled_parts:
        items = context.opened.items[part]
        every = context.labels.encode(items["label"])
        codes[part] = every[every != UNKNOWN]
        units[part] = items[context.task.unit].to_numpy()[every != UNKNOWN]
    frequencies = []
    for part, labels in codes.items():
        shifts: tuple[float | None, float | None] = (None, None)
        if part != "train":
            numbered = np.unique(np.concatenate([units["train"], units[part]]), return_inverse=True)[1]
            shifts = shift_and_chance(codes["train"], labels, numbered, len(context.labels))
        classes = len(np.unique(labels))
        frequencies.append(PartFrequencies(part, len(labels), len(np.unique(units[part])), classes, *shifts))
    return frequencies


def total_variation(one: NDArray[np.integer], other: NDArray[np.integer]) -> float:
    """Half the summed difference of the shares that counts stand for.

    >>> total_variation(np.array([3, 1]), np.array([1, 1]))
    0.25
    """
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def shift_and_chance(train: Codes, part: Codes, unit: NDArray[np.integer], size: int) -> tuple[float, float]:
    """The total variation between two parts, and its mean when whole units are dealt to them at random.

    Args:
        train: The label code of each item of train.
        part: The label code of each item of the other part.
        unit: The unit of each item, those of train first, numbered from 0.
        size: How many labels there are.
    """

    def distance(in_part: NDArray[np.bool_]) -> float:
        counts = [np.bincount(codes[side & known], minlength=size) for side in (~in_part, in_part)]
        return total_variation(*counts) if all(one.any() for one in counts) else 0.0

    codes = np.concatenate([train, part])
    known = codes != UNKNOWN
    belongs = np.arange(len(codes)) >= len(train)
    n_units = int(unit.max()) + 1
    n_dealt = len(np.unique(unit[belongs]))
    rng = np.random.default_rng(SEED)
    chance = []
    for _ in range(SHUFFLES):
        dealt = np.zeros(n_units, dtype=bool)
        dealt[rng.permutation(n_units)[:n_dealt]] = True
        chance.append(distance(dealt[unit]))
    return distance(belongs), float(np.mean(chance))
