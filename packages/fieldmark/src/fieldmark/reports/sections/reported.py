"""What papers reported on this benchmark, apart from our own results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from fieldmark.benchmarks.declarations import Reported
from fieldmark.questions.targets import Shape
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section


@dataclass(frozen=True)
class Result:
    """One result as papers printed it.

    Args:
        what: The model.
        sources: Every place that prints exactly these values.
        values: The values by the name of the metric.
        disputed: Whether another place prints other values for the same model.
    """

    what: str
    sources: tuple[str, ...]
    values: dict[str, float]
    disputed: bool


class ReportedResults(Section):
    """Figures of others, with their source."""

    name = "reported"
    title = "Reported in papers"
    shapes: ClassVar[tuple[Shape, ...]] = ("codes", "pairs", "masks")

    def applies(self, context: Context) -> bool:
        return bool(context.opened.benchmark.reported)

    def render(self, context: Context) -> str:
        reported = results(context.opened.benchmark.reported)
        measured = {metric.name for metric in context.task.metrics}
        named = dict.fromkeys(name for result in reported for name in result.values)
        order = [metric.name for metric in context.task.metrics if metric.name in named]
        return render(
            "sections/reported.html.j2",
            context=context,
            results=reported,
            metrics=[*order, *(name for name in named if name not in measured)],
        )


def results(reported: Iterable[Reported]) -> list[Result]:
    """The results, models in the order of their declaration; places that print the same are named together."""
    sources: dict[tuple[str, tuple[tuple[str, float], ...]], list[str]] = {}
    for one in reported:
        sources.setdefault((one.what, tuple(one.values.items())), []).append(one.source)
    times = Counter(what for what, _ in sources)
    rows = [
        Result(what, tuple(dict.fromkeys(places)), dict(values), times[what] > 1)
        for (what, values), places in sources.items()
    ]
    order = list(times)
    return sorted(rows, key=lambda result: order.index(result.what))


SECTION = ReportedResults()
