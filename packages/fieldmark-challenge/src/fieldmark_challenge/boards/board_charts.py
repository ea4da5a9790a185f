"""The charts of the pages, from boards and entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.titles import metric_title
from fieldmark.scoring import Score
from fieldmark.stats.comparison import Difference
from fieldmark_challenge.boards import planner, svg_charts
from fieldmark_challenge.boards.axes import span_of
from fieldmark_challenge.boards.leaderboard import BASELINE, Board, BoardRow, Duel, Entrant, upward
from fieldmark_challenge.boards.visibility import Sight

MOST_BARS = 60
MOST_POINTS = 500
# A breakdown into more values than this is a wall of dots.
MOST_GROUPS = 40


@dataclass(frozen=True)
class Planned:
    """What the planner's page shows."""

    plans: dict[str, planner.Plan]
    spread: planner.UnitSpread
    swap: float | None
    needed: int
    curve: Markup


def kind_of(row: BoardRow) -> str:
    """The class of a row's mark."""
    if row.entrant.unranked == BASELINE:
        return "baseline"
    return "best" if row.among_best else "rest"


def whiskers(board: Board, rows: Sequence[BoardRow] | None = None) -> dict[str, Markup]:
    """For each entry, or some of them, its score with the interval, all on the same rail."""
    span = span_of([row.score for row in board.rows], board.metric)
    shown = board.rows if rows is None else rows
    return {row.entrant.id: svg_charts.whisker(row.score, span, kind_of(row)) for row in shown}


def progress(sight: Sight, entries: Sequence[Entrant], metric: Metric) -> Markup:
    """Entries in time, with the best so far."""
    own = sight.team.name if sight.team is not None else None
    points = [
        svg_charts.Point(
            one.accepted, one.score(metric.name).value, one.team, one.team == own, one.unranked == BASELINE
        )
        for one in _telling(entries, metric, own)
    ]
    if len({point.at for point in points}) < 2:
        return Markup("")
    return svg_charts.progress("progress", "Progress over time", points, metric)


def _telling(entries: Sequence[Entrant], metric: Metric, own: str | None) -> list[Entrant]:
    """All entries, or where they are many those that tell something: records, one's own, baselines, and some others."""
    if len(entries) <= MOST_POINTS:
        return list(entries)
    kept, best, step = [], -float("inf"), -(-len(entries) // MOST_POINTS)
    for place, one in enumerate(sorted(entries, key=lambda entry: entry.accepted)):
        record = upward(one, metric) > best and not one.unranked
        best = upward(one, metric) if record else best
        if record or one.team == own or one.unranked or place % step == 0:
            kept.append(one)
    return kept


def runs(sight: Sight, entries: Sequence[Entrant], metric: Metric) -> Markup:
    """All runs as bars, by the metrics that overviews of the challenge print beside each other."""
    if len(entries) < 2 or any(metric.name not in entry.card.metrics for entry in entries):
        return Markup("")
    wanted = figure_metrics(BENCHMARKS[sight.challenge.versioned_benchmark].task.metrics, metric)
    shown = [one for one in wanted if all(one.name in entry.card.metrics for entry in entries)]
    order = sorted(entries, key=lambda one: -upward(one, metric))
    bars = [(one.name, [one.score(each.name) for each in shown]) for one in order[:MOST_BARS]]
    return svg_charts.run_figure("runs", "Scores by run", bars, shown)


def figure_metrics(declared: Sequence[Metric], metric: Metric) -> list[Metric]:
    """The metric, and beside it the next one of the benchmark that is not the same up to a convention.

    That gives the pairs of the overviews of LifeCLEF 2020: MRR on all and on difficult species (Figure 3), cmAP and
    rmAP (Figure 5), adaptive top-30 and top-30 accuracy (Figure 8), F1 alone (Figure 12: a log loss is no share).
    """
    second = next((other for other in declared if not _variants(metric, other)), None)
    if second is not None:  # under the same convention, where the benchmark has it
        same = f"{second.name}_{metric.name.rpartition('_')[2]}"
        second = next((other for other in declared if other.name == same), second)
    return [metric] if second is None or second.is_share != metric.is_share else [metric, second]


def breakdowns(entries: Sequence[Entrant], metric: Metric) -> list[tuple[str, Markup]]:
    """The score by each value of each column the benchmark names: site, month."""
    charts = []
    for column, by_value in entries[0].card.groups.items():
        values = [value for value, scores in by_value.items() if metric.name in scores][:MOST_GROUPS]
        rows = []
        for value in values:
            others = [one.card.groups.get(column, {}).get(value, {}).get(metric.name) for one in entries]
            scores = [score or Score(float("nan"), None, None, "none") for score in others]
            rows.append((value, scores, "rest"))
        if len(rows) > 1:
            title = f"{metric.title} by {column}"
            names = [one.name for one in entries]
            chart = svg_charts.intervals(f"by-{column}", title, rows, metric, series=names)
            charts.append((column, chart))
    return charts


def differences(duel: Duel) -> Markup:
    """The difference of two entries by each metric, with its interval around no difference."""
    declared = {metric.name: metric for metric in BENCHMARKS[duel.first.card.versioned_benchmark].task.metrics}
    pairs: dict[str, Difference] = {} if duel.difference is None else {duel.metric.name: duel.difference}
    pairs |= {name: pair for name, pair in duel.others.items() if declared[name].is_share == duel.metric.is_share}
    if not pairs:
        return Markup("")
    rows = []
    for name, pair in pairs.items():
        score = Score(pair.value, pair.interval.low, pair.interval.high, pair.interval.method)
        rows.append((metric_title(name), [score], "best" if pair.p_value < 0.05 else "rest"))
    title = f"{duel.first.name} minus {duel.second.name}"
    return svg_charts.intervals("difference", title, rows, duel.metric, zero=True)


def planned(
    spread: planner.UnitSpread, parts: Mapping[str, int], metric: Metric, *, entries: int, difference: float
) -> Planned:
    """The plans for all parts that have units, and what follows for a difference of interest."""
    plans = {name: planner.plan(units, spread, entries=entries) for name, units in parts.items() if units}
    swap = None
    if len(plans) == len(parts):
        swap = planner.chance_of_swap(difference, spread, public=parts["public"], private=parts["private"])
    needed = planner.units_for(difference, spread, entries=entries)
    curve = svg_charts.curve(
        "curve", "Smallest separable difference", spread, metric, units=parts["all"], entries=entries
    )
    return Planned(plans, spread, swap, needed, curve)


def _variants(metric: Metric, other: Metric) -> bool:
    """Whether two metrics are the same up to a convention (macro_f1_all and macro_f1_union, cmap and cmap_expected)."""
    names = [one.name.removesuffix("_expected") for one in (metric, other)]
    stems = [name.rpartition("_")[0] for name in names]
    return names[0] == names[1] or (stems[0] == stems[1] != "")
