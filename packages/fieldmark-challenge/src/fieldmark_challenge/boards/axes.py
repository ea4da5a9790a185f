"""Where numbers fall on a chart, and how they are written there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fieldmark.benchmarks.declarations import Metric
from fieldmark.reports.markup import figure
from fieldmark.scoring import Score

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Scale:
    """Numbers to pixels.

    >>> scale = Scale((0.0, 0.5), (100.0, 200.0))
    >>> scale(0.25), scale.ticks()
    (150.0, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    """

    span: tuple[float, float]
    pixels: tuple[float, float]
    log: bool = False

    def __call__(self, value: float) -> float:
        """Where a number falls; what lies outside is moved to the edge."""
        low, high = self.span
        value = min(max(value, low), high)
        share = math.log(value / low) / math.log(high / low) if self.log else (value - low) / (high - low)
        return self.pixels[0] + share * (self.pixels[1] - self.pixels[0])

    def ticks(self) -> list[float]:
        """Five or so round numbers within the span."""
        low, high = self.span
        if self.log:
            candidates = [step * 10.0**power for power in range(7) for step in (1, 2, 5)]
            return [one for one in candidates if low <= one <= high]
        rough = (high - low) / 5
        power = 10 ** math.floor(math.log10(rough))
        step = min((one * power for one in (1, 2, 2.5, 5, 10)), key=lambda one: abs(one - rough))
        first = math.ceil(low / step - 1e-9)
        return [round(place * step, 12) for place in range(first, math.floor(high / step + 1e-9) + 1)]

    def written(self, tick: float, metric: Metric, *, signed: bool = False) -> str:
        """A tick with as many decimals as the ticks of this scale need."""
        text = number(tick, metric, signed=signed)
        if all(number(other, metric).endswith(".0") for other in self.ticks()):
            return text.removesuffix(".0")
        return text


def span_of(
    scores: Sequence[Score], metric: Metric, *, zero: bool = False, from_zero: bool = False
) -> tuple[float, float]:
    """The span that holds all scores and their intervals, with a little room, within what the metric can be.

    Args:
        scores: What is shown.
        metric: Its bounds are the widest the span can be, unless it is about differences.
        zero: Whether these are differences, so that 0 must be in sight.
        from_zero: Whether bars stand on 0.
    """
    ends = [end for score in scores for end in (score.value, score.low, score.high) if end is not None and end == end]
    if zero or from_zero:
        ends.append(0.0)
    if not ends:
        return (0.0, 1.0)
    low, high = min(ends), max(ends)
    room = 0.06 * (high - low) or 0.05 * max(abs(high), 0.1)
    low, high = low - (0 if from_zero and low == 0 else room), high + room
    if not zero:
        low, high = max(low, metric.bounds[0]), min(high, metric.bounds[1])
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def number(value: float, metric: Metric, signed: bool = False) -> str:
    """A score as `reports.markup.figure` writes it, with a real minus sign, and a plus sign where `signed`.

    >>> from fieldmark.benchmarks.measures import top
    >>> number(0.64177, top(1)), number(-0.02, top(1), signed=True), number(float("nan"), top(1))
    ('64.2', '−2.0', 'undefined')
    """
    text = figure(abs(value), metric.is_share)
    if value != value or not float(text):
        return text
    return (MINUS if value < 0 else "+" if signed else "") + text


def shortened(text: str, most: int) -> str:
    """A name cut to so many characters.

    >>> shortened("Amanita phalloides", 10)
    'Amanita p…'
    """
    return text if len(text) <= most else text[: max(most - 1, 1)] + ELLIPSIS
