"""Few labels: how photos are spread over species, what phyla are taken for each other, what unlabeled photos became."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from fieldmark.models.model import MODEL_FILE, MODEL_FOLDER, load_model
from fieldmark.reports.charts.estimates import Share, share
from fieldmark.reports.charts.plots import BLUE, GREEN, MUTED, ORANGE, draw, percent_axis
from fieldmark.reports.markup import EN_DASH, render
from fieldmark.reports.section import Context, Section
from fieldmark.tables.labels import UNKNOWN

# Species are put into at most so many bins by how many labeled photos they have.
MOST_BINS = 6


@dataclass(frozen=True)
class PhylumConfusion:
    """How photos of one phylum are answered.

    Args:
        names: The phyla, by kingdom and name.
        shares: One row per true phylum, one column per answered one; rows sum to one over answered items.
        items: How many items each true phylum has.
    """

    names: tuple[str, ...]
    shares: NDArray[np.float64]
    items: tuple[int, ...]


@dataclass(frozen=True)
class SpeciesCounts:
    """Photos of each species, most first: labeled, unlabeled in-class, unlabeled out-of-class."""

    labeled: NDArray[np.int64]
    inside: NDArray[np.int64]
    outside: NDArray[np.int64]


@dataclass(frozen=True)
class Taught:
    """What a method taught unlabeled photos as, by whether they are in-class.

    Args:
        inside, outside: How many in-class and out-of-class photos there are.
        taught_inside, taught_outside: How many of them were taught as some label.
        right: How many in-class photos were taught as what they are.
        outside_weight: The share of all weight that out-of-class photos had.
    """

    inside: int
    outside: int
    taught_inside: int
    taught_outside: int
    right: int
    outside_weight: float


@dataclass(frozen=True)
class LabelCurve:
    """Accuracy of one run by how many labeled photos a class has.

    Args:
        title: The run.
        shares: The share answered right of the items of the classes of each bin, with its interval.
    """

    title: str
    shares: tuple[Share, ...]


@dataclass(frozen=True)
class LabelCurves:
    """The curves of all runs of a page.

    Args:
        bins: The fewest and the most labeled photos of the classes of each bin.
        classes: How many classes each has.
        labels: The mean number of labeled photos of a class of each.
        curves: One for each run.
    """

    bins: tuple[tuple[int, int], ...]
    classes: tuple[int, ...]
    labels: tuple[float, ...]
    curves: tuple[LabelCurve, ...]

    @property
    def titles(self) -> tuple[str, ...]:
        """What each bin is called."""
        return tuple(str(low) if low == high else f"{low}{EN_DASH}{high}" for low, high in self.bins)


class Unlabeled(Section):
    """What there was to learn from, and what became of it."""

    name = "unlabeled"
    title = "Unlabeled photos"

    def applies(self, context: Context) -> bool:
        return not context.opened.items["unlabeled"].is_empty()

    def render(self, context: Context) -> str:
        counts, unlabeled = species_counts(context), context.opened.items["unlabeled"]
        curves = accuracy_by_labels(context)
        return render(
            "sections/unlabeled.html.j2",
            context=context,
            labeled=len(context.opened.items["train"]),
            unlabeled=len(unlabeled),
            counts=counts,
            picture=None if counts is None else draw_counts(counts),
            curves=curves,
            drawn_curves=None if curves is None else draw_curves(curves),
            confusion=phylum_confusion(context),
            taught=taught_as(context),
            learned_from=", ".join(context.first.run.learns_from) or "train",
        )


def species_counts(context: Context) -> SpeciesCounts | None:
    """Photos of each species, where the hidden labels are there to count by; else None."""
    table = context.opened.items["unlabeled"]
    hidden = [name for name in ("hidden_label", "label") if name in table.columns]
    if not hidden:
        return None
    species = table.select(pl.coalesce(hidden)).to_series()
    if species.is_null().any():
        return None
    known = set(context.labels.names)
    numbers = dict(species.value_counts().iter_rows())
    of_train = dict(context.opened.items["train"]["label"].value_counts().iter_rows())

    def sorted_counts(values: list[int]) -> NDArray[np.int64]:
        return np.array(sorted(values, reverse=True), dtype=np.int64)

    return SpeciesCounts(
        sorted_counts(list(of_train.values())),
        sorted_counts([count for name, count in numbers.items() if name in known]),
        sorted_counts([count for name, count in numbers.items() if name not in known]),
    )


def draw_counts(counts: SpeciesCounts) -> Markup:
    """Photos of each species by rank, one line for each of the three."""
    series = {
        "labeled": (counts.labeled, BLUE, "-"),
        "unlabeled, in-class": (counts.inside, GREEN, "--"),
        "unlabeled, out-of-class": (counts.outside, ORANGE, ":"),
    }

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for title, (own, color, dashes) in series.items():
            if len(own):
                axes.step(np.arange(1, len(own) + 1), own, where="mid", color=color, linestyle=dashes, label=title)
        axes.set_title("Photos of each species")
        axes.set_xlabel("Species, most photos first")
        axes.set_ylim(bottom=0)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True))
        axes.legend()

    return draw("unlabeled", paint, width=640, height=280, description="Photos of each species, most first")


def accuracy_by_labels(context: Context) -> LabelCurves | None:
    """Accuracy by labeled photos of a class, for each run that knows it item by item; None where all have as many.

    Classes are put into bins of about as many, with one number of labels in one bin.
    """
    labels = context.train_counts
    if len(np.unique(labels)) < 2:
        return None
    ends = np.unique(np.quantile(labels, np.linspace(0, 1, MOST_BINS + 1)[1:], method="higher"))
    place = np.searchsorted(ends, labels)
    curves = []
    known = context.truth != UNKNOWN
    bin_of_item = np.where(known, place[context.truth], -1)
    filled = [number for number in range(len(ends)) if (bin_of_item == number).any()]
    for scored in context.runs:
        card = scored.scorecard
        right = dict(zip(card.unit_ids, card.pseudo.get("top_1", ()), strict=False))
        values = [right.get(item) for item in context.items["item_id"]]
        if any(value is None for value in values):
            continue  # a run whose units are not the items: nothing is known of a single one
        correct = np.array(values) > 0.5
        shares = tuple(share(correct[bin_of_item == one], context.unit[bin_of_item == one]) for one in filled)
        curves.append(LabelCurve(scored.title, shares))
    inside = [labels[place == number] for number in filled]
    return (
        LabelCurves(
            bins=tuple((int(own.min()), int(own.max())) for own in inside),
            classes=tuple(len(own) for own in inside),
            labels=tuple(float(own.mean()) for own in inside),
            curves=tuple(curves),
        )
        if curves and len(filled) > 1
        else None
    )


def draw_curves(curves: LabelCurves) -> Markup:
    """Accuracy over labeled photos per class, one line for each run, with intervals."""
    colors = (BLUE, ORANGE, GREEN, MUTED)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for number, curve in enumerate(curves.curves):
            values = np.array([own.value for own in curve.shares])
            low = np.array([own.value if own.low is None else own.low for own in curve.shares])
            high = np.array([own.value if own.high is None else own.high for own in curve.shares])
            where = np.array(curves.labels) * (1 + 0.01 * number)  # beside each other, not on top
            reach = np.maximum(0, np.stack([values - low, high - values]))
            color = colors[number % len(colors)]
            axes.errorbar(where, values, reach, color=color, marker="o", capsize=3, label=curve.title)
        axes.set_xlabel("Labeled photos of a species (mean of a bin)")
        percent_axis(axes, "Accuracy, by labeled photos of a species")
        axes.legend(loc="lower right")

    return draw("labels", paint, width=640, height=300, description="Accuracy by labeled photos of a species")


def taught_as(context: Context) -> Taught | None:
    """What the first run taught unlabeled photos as; None where it does not say, or nobody knows what they are."""
    hidden = context.opened.hidden
    if hidden is None or context.folder is None or not (context.folder / MODEL_FOLDER / MODEL_FILE).exists():
        return None
    arrays = load_model(context.folder).fitted.arrays
    if "taught_weight" not in arrays or len(arrays["taught_weight"]) != len(hidden):
        return None
    weight, inside = arrays["taught_weight"].astype(np.float64), hidden >= 0
    return Taught(
        inside=int(inside.sum()),
        outside=int((~inside).sum()),
        taught_inside=int((weight[inside] > 0).sum()),
        taught_outside=int((weight[~inside] > 0).sum()),
        right=int(((weight > 0) & inside & (arrays["taught_as"] == hidden)).sum()),
        outside_weight=float(weight[~inside].sum() / max(float(weight.sum()), 1e-12)),
    )


def phylum_confusion(context: Context) -> PhylumConfusion | None:
    """How often photos of one phylum are answered with a species of another; None where there is but one phylum."""
    ranks = context.taxonomy.ranks
    if "phylum" not in ranks or len(ranks["phylum"][0]) < 2:
        return None
    taxa, taxon_of = ranks["phylum"]
    kingdom_of = {}
    if "kingdom" in ranks:
        kingdoms, own = ranks["kingdom"]
        kingdom_of = {
            int(phylum): kingdoms.names[own[label]] for label, phylum in enumerate(taxon_of) if own[label] >= 0
        }
    order = sorted(range(len(taxa)), key=lambda one: (kingdom_of.get(one, ""), taxa.names[one]))
    place = np.argsort(order)
    seen = (context.truth != UNKNOWN) & (context.predicted >= 0)
    true, answered = taxon_of[context.truth[seen]], taxon_of[context.predicted[seen]]
    both = (true >= 0) & (answered >= 0)
    counts = np.zeros((len(taxa), len(taxa)), dtype=np.int64)
    np.add.at(counts, (place[true[both]], place[answered[both]]), 1)
    totals = counts.sum(axis=1, keepdims=True)
    names = tuple(
        f"{taxa.names[one]} ({kingdom_of[one][0]})" if one in kingdom_of else taxa.names[one] for one in order
    )
    return PhylumConfusion(names, counts / np.maximum(totals, 1), tuple(int(one) for one in totals[:, 0]))


SECTION = Unlabeled()
