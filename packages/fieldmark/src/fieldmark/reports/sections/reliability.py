"""Whether stated confidence can be believed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from fieldmark.metrics.calibration import expected_calibration_error
from fieldmark.reports.charts.estimates import Share, share
from fieldmark.reports.charts.plots import BLUE, MUTED, TINT, draw, name_curve, stacked
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section

BINS = 10


@dataclass(frozen=True)
class Band:
    """The items of one bin of confidence."""

    low: float
    high: float
    confidence: float
    right: Share


class ReliabilitySection(Section):
    """Confidence against how often the answer was right."""

    name = "reliability"
    title = "Reliability"

    def applies(self, context: Context) -> bool:
        return context.confidence is not None and bool((context.confidence > 0).any())

    def render(self, context: Context) -> str:
        confidence = context.confidence
        assert confidence is not None  # applies() said so
        stated = confidence > 0  # a rule may answer "unknown" without saying how sure it is
        confidence, correct = confidence[stated], context.correct[stated]
        in_bands = bands(confidence, correct, context.unit[stated])
        figure = draw(
            "reliability-diagram",
            partial(_paint, in_bands=in_bands, noun=context.item_noun),
            width=460,
            height=480,
            description="Share correct against stated confidence in ten bins, with the number of items below.",
        )
        return render(
            "sections/reliability.html.j2",
            context=context,
            figure=figure,
            bands=in_bands,
            items=len(confidence),
            error=expected_calibration_error(confidence, correct, bins=BINS),
            mean_confidence=float(confidence.mean()),
            accuracy=float(correct.mean()),
        )


def bands(confidence: NDArray[np.float64], correct: NDArray[np.bool_], unit: NDArray[np.int32]) -> list[Band]:
    """Equal bins of [0, 1] with the share of right answers in each, empty ones left out."""
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    return [
        Band(number / BINS, (number + 1) / BINS, float(confidence[inside].mean()), share(correct[inside], unit[inside]))
        for number in range(BINS)
        if (inside := place == number).any()
    ]


def _paint(figure: Figure, *, in_bands: list[Band], noun: str) -> None:
    above, below = stacked(figure, heights=(3.2, 1))
    above.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 4)))
    for band in in_bands:
        if band.right.low is not None and band.right.high is not None:
            above.vlines(band.confidence, band.right.low, band.right.high, color=BLUE, linewidth=2)
    above.plot([band.confidence for band in in_bands], [band.right.value for band in in_bands], "o-", color=BLUE)
    name_curve(above, [0.12], [0.12], "calibrated", MUTED)
    if in_bands:
        name_curve(
            above, [band.confidence for band in in_bands], [band.right.value for band in in_bands], "this run", BLUE
        )
    above.set_title("Share correct")
    for axis in (above.yaxis, below.xaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0))
    above.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.04), xticks=np.linspace(0, 1, 6), yticks=np.linspace(0, 1, 6))
    below.bar(
        [(band.low + band.high) / 2 for band in in_bands],
        [band.right.items for band in in_bands],
        width=0.92 / BINS,
        color=TINT,
        linewidth=0,
    )
    below.set_title(f"{noun.capitalize()}s")
    below.locator_params(axis="y", nbins=3, integer=True)
    below.set_xlabel("confidence of the top prediction")


SECTION = ReliabilitySection()
