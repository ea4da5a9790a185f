"""Charts as SVG, drawn on the server: no script, no inline style, colors from the page's style sheet.

Every mark has a class, so that charts follow the light or dark theme of the page; every chart has a title and a
description for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from markupsafe import Markup, escape

from fieldmark.benchmarks.declarations import Metric
from fieldmark.scoring import Score
from fieldmark_challenge.boards.axes import Scale, number, shortened, span_of
from fieldmark_challenge.boards.planner import UnitSpread, plan

WIDTH = 760
ROW = 30
# About how wide a character of the 13 px text is; names that would not fit are cut, and given in full as a title.
CHARACTER = 7.2
LONGEST_LABEL = 26
SERIES = ("series-1", "series-2", "series-3")


@dataclass(frozen=True)
class Point:
    """One submission in time."""

    at: datetime
    value: float
    team: str
    own: bool = False
    baseline: bool = False


def _svg(
    name: str, width: float, height: float, title: str, description: str, body: Sequence[str], cls: str = "chart"
) -> Markup:
    return Markup(
        f'<svg class="{cls}" role="img" aria-labelledby="{name}-title {name}-about" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-about">{escape(description)}</desc>'
        + "".join(body)
        + "</svg>"
    )


def _text(x: float, y: float, text: str, cls: str = "", *, anchor: str = "start", full: str | None = None) -> str:
    title = f"<title>{escape(full)}</title>" if full is not None and full != text else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{cls}" text-anchor="{anchor}">{title}{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, cls: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{cls}"/>'


def _dot(x: float, y: float, cls: str, title: str = "", radius: float = 5) -> str:
    inside = f"<title>{escape(title)}</title>" if title else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{cls}">{inside}</circle>'


def whisker(score: Score, span: tuple[float, float], kind: str) -> Markup:
    """A score with its interval on a rail, small enough for a cell of a table; decoration beside the numbers.

    Args:
        score: What is shown.
        span: Where the rail begins and ends.
        kind: The class of the mark: `best`, `rest` or `baseline`.
    """
    scale = Scale(span, (6, 174))
    parts = [_line(0, 11, 180, 11, "rail")]
    if score.low is not None and score.high is not None:
        parts.append(_line(scale(score.low), 11, scale(score.high), 11, f"span {kind}"))
    if score.value == score.value:
        parts.append(_dot(scale(score.value), 11, f"dot {kind}"))
    inside = "".join(parts)
    return Markup(
        f'<svg class="whisker" viewBox="0 0 180 22" width="180" height="22" '
        f'preserveAspectRatio="xMinYMid" aria-hidden="true" '
        f'xmlns="http://www.w3.org/2000/svg">{inside}</svg>'
    )


def intervals(
    name: str,
    title: str,
    rows: Sequence[tuple[str, Sequence[Score], str]],
    metric: Metric,
    *,
    series: Sequence[str] = (),
    zero: bool = False,
) -> Markup:
    """Names down the left, a score with its interval beside each: a leaderboard, or one run by site or month.

    Args:
        name: Unique on the page.
        title: What is shown.
        rows: For each row its name, its scores (one per series) and its class.
        metric: How numbers are written.
        series: The names of the series, where there is more than one.
        zero: Whether the axis is about a difference, with a line at no difference.
    """
    scores = [score for _, own, _ in rows for score in own]
    left = min(max((len(label) for label, _, _ in rows), default=4) * CHARACTER + 12, 240)
    top = 30 if len(series) > 1 else 12
    per_row = ROW + (8 if len(series) > 1 else 0)
    bottom = top + per_row * len(rows)
    scale = Scale(span_of(scores, metric, zero=zero), (left + 10, WIDTH - 60))
    body = []
    for tick in scale.ticks():
        body.append(_line(scale(tick), top - 4, scale(tick), bottom, "zero" if zero and tick == 0 else "grid"))
        body.append(_text(scale(tick), bottom + 18, scale.written(tick, metric, signed=zero), "tick", anchor="middle"))
    for place, label in enumerate(series if len(series) > 1 else ()):
        body += [_dot(left + 16 + 200 * place, 12, f"dot {SERIES[place]}"), _text(left + 27 + 200 * place, 16, label)]
    for place, (label, own, kind) in enumerate(rows):
        middle = top + per_row * (place + 0.5)
        short = shortened(label, int((left - 8) / CHARACTER))
        body.append(_text(left - 2, middle + 4, short, "name", anchor="end", full=label))
        for step, score in enumerate(own):
            cls = SERIES[step] if len(series) > 1 else kind
            at = middle + (step - (len(own) - 1) / 2) * 12
            body.append(_mark(scale, at, score, cls, f"{label}: {in_words(score, metric, signed=zero)}"))
        if len(own) == 1:
            body.append(_text(WIDTH - 50, middle + 4, number(own[0].value, metric, signed=zero), "value"))
    described = "; ".join(f"{label} {in_words(own[0], metric, signed=zero)}" for label, own, _ in rows[:12])
    return _svg(name, WIDTH, bottom + 28, title, described, body)


def _mark(scale: Scale, y: float, score: Score, cls: str, title: str) -> str:
    if score.value != score.value:
        return ""
    whole = ""
    if score.low is not None and score.high is not None:
        whole = _line(scale(score.low), y, scale(score.high), y, f"span {cls}")
    return whole + _dot(scale(score.value), y, f"dot {cls}", title)


def progress(name: str, title: str, points: Sequence[Point], metric: Metric) -> Markup:
    """Every submission in time, and the best so far as a line that only ever gets better."""
    height, left, bottom = 300, 52, 262
    shown = sorted((point for point in points if point.value == point.value), key=lambda point: point.at)
    if not shown:
        return Markup("")
    spare = max((shown[-1].at - shown[0].at) * 0.04, timedelta(minutes=1))
    first, last = shown[0].at - spare, shown[-1].at + spare
    across = Scale((first.timestamp(), last.timestamp()), (left + 10, WIDTH - 20))
    up = Scale(span_of([Score(p.value, None, None, "none") for p in shown], metric), (bottom, 16))
    body = []
    for tick in up.ticks():
        body += [_line(left, up(tick), WIDTH - 10, up(tick), "grid")]
        body += [_text(left - 8, up(tick) + 4, up.written(tick, metric), "tick", anchor="end")]
    for step in range(5):
        at = first + (last - first) * (step / 4)
        written = at.strftime("%b %-d") if last - first > timedelta(days=4) else at.strftime("%b %-d, %H:%M")
        anchor = ("start", "middle", "middle", "middle", "end")[step]
        if written not in body[-1]:
            body.append(_text(across(at.timestamp()), bottom + 24, written, "tick", anchor=anchor))
    best: list[tuple[float, float]] = []
    for point in (point for point in shown if not point.baseline):
        ahead = not best or (point.value > best[-1][1] if metric.higher_is_better else point.value < best[-1][1])
        if ahead:
            best.append((point.at.timestamp(), point.value))
    if best:
        path = f"M{across(best[0][0]):.1f} {up(best[0][1]):.1f}"
        for (_, _), (x, y) in pairwise(best):
            path += f"H{across(x):.1f}V{up(y):.1f}"
        body.append(f'<path d="{path}H{WIDTH - 20}" class="frontier"/>')
    for point in shown:
        kind = "baseline" if point.baseline else "own" if point.own else "rest"
        what = f"{point.team}, {point.at:%Y-%m-%d %H:%M} UTC: {number(point.value, metric)}"
        body.append(_dot(across(point.at.timestamp()), up(point.value), f"dot {kind}", what, 4.5))
    described = f"{len(shown)} submissions from {shown[0].at:%Y-%m-%d} to {shown[-1].at:%Y-%m-%d}" + (
        f"; the best rose from {number(best[0][1], metric)} to {number(best[-1][1], metric)}" if best else ""
    )
    return _svg(name, WIDTH, height, title, described, body)


def run_figure(name: str, title: str, runs: Sequence[tuple[str, Sequence[Score]]], metrics: Sequence[Metric]) -> Markup:
    """All runs as bars, best first, as the overviews of LifeCLEF print them (their Figures 3, 5, 8 and 12).

    Args:
        name: Unique on the page.
        title: What is shown.
        runs: The name of each run and its scores by each metric, best first.
        metrics: Up to three, of which the first decides the order.
    """
    top, plot = 40, 250
    longest = CHARACTER * min(max((len(label) for label, _ in runs), default=4), LONGEST_LABEL)
    # Labels lean to the left by 50 degrees: this much to the side, this much down.
    left = max(52, 0.66 * longest - 20)
    per_run = min(max((WIDTH - left - 30) / max(len(runs), 1), 15 * len(metrics) + 12), 72)
    width = max(left + 30 + per_run * len(runs), 60 + 240 * len(metrics))
    scores = [score for _, own in runs for score in own]
    low, high = span_of(scores, metrics[0], from_zero=True)
    up = Scale((low, high), (top + plot, top))
    body = []
    for tick in up.ticks():
        body.append(_line(left, up(tick), width - 10, up(tick), "grid"))
        body.append(_text(left - 8, up(tick) + 4, up.written(tick, metrics[0]), "tick", anchor="end"))
    for place, metric in enumerate(metrics):
        at = left + 6 + place * 230
        body.append(f'<rect x="{at}" y="8" width="12" height="12" rx="2" class="bar {SERIES[place]}"/>')
        body.append(_text(at + 18, 18, metric.title))
    bar = min((per_run - 10) / len(metrics), 26)
    for place, (label, own) in enumerate(runs):
        start = left + 8 + place * per_run
        for step, score in enumerate(own):
            if score.value == score.value:
                body.append(_bar(up, start + step * (bar + 1), bar, score, SERIES[step], label, metrics[step]))
        x, y = start + (bar * len(own)) / 2 + 4, top + plot + 16
        short = shortened(label, LONGEST_LABEL)
        full = f"<title>{escape(label)}</title>" if short != label else ""
        body.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="name" text-anchor="end" '
            f'transform="rotate(-50 {x:.1f} {y:.1f})">{full}{escape(short)}</text>'
        )
    described = f"{len(runs)} runs, best first: " + "; ".join(
        f"{label} {in_words(own[0], metrics[0])}" for label, own in runs[:12]
    )
    return _svg(name, width, top + plot + 30 + 0.8 * longest, title, described, body, "chart natural")


def _bar(up: Scale, x: float, width: float, score: Score, cls: str, label: str, metric: Metric) -> str:
    y, floor = up(score.value), up(up.span[0])
    title = escape(f"{label}, {metric.title}: {in_words(score, metric)}")
    drawn = (
        f'<rect x="{x:.1f}" y="{min(y, floor):.1f}" width="{width:.1f}" height="{abs(floor - y):.1f}" rx="1.5" '
        f'class="bar {cls}"><title>{title}</title></rect>'
    )
    if score.low is not None and score.high is not None:
        drawn += _line(x + width / 2, up(score.low), x + width / 2, up(score.high), "error")
    return drawn


def curve(name: str, title: str, spread: UnitSpread, metric: Metric, *, units: int, entries: int) -> Markup:
    """The smallest difference that can be separated against the number of units, with a mark at this test set."""
    left, bottom, height = 58, 262, 306
    most = max(units * 3, 60)
    counts = sorted({max(3, round(most ** (step / 60) * 8 ** (1 - step / 60))) for step in range(61)} | {units})
    plans = {count: plan(count, spread, entries=entries) for count in counts if count <= most}
    across = Scale((float(min(plans)), float(most)), (left + 10, WIDTH - 24), log=True)
    values = [value for one in plans.values() for value in (one.pair, one.among_all) if value is not None]
    top_value = min(max(values, default=1.0), 4 * (plans[units].among_all or max(values, default=1.0)))
    up = Scale((0.0, top_value), (bottom, 16))
    body = []
    for tick in up.ticks():
        body += [_line(left, up(tick), WIDTH - 10, up(tick), "grid")]
        body += [_text(left - 8, up(tick) + 4, up.written(tick, metric), "tick", anchor="end")]
    for tick in across.ticks():
        body.append(_text(across(tick), bottom + 20, f"{tick:,.0f}", "tick", anchor="middle"))
    body.append(_text((left + WIDTH) / 2, bottom + 40, "independent units", "tick", anchor="middle"))
    for cls, pick in (("series-2", "among_all"), ("series-1", "pair")):
        differences: dict[int, float | None] = {count: getattr(one, pick) for count, one in plans.items()}
        inside = [(across(count), up(value)) for count, value in differences.items() if value and value <= top_value]
        if inside:
            body.append(f'<path d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in inside)}" class="curve {cls}"/>')
        here = differences[units]
        if here is not None:
            body.append(_dot(across(units), up(here), f"dot {cls}", f"{units} units: {number(here, metric)}"))
    body += [_dot(WIDTH - 300, 16, "dot series-1"), _text(WIDTH - 288, 20, "two entries, compared once")]
    body += [_dot(WIDTH - 300, 38, "dot series-2"), _text(WIDTH - 288, 42, f"{entries} entries, every pair")]
    separable = plans[units].pair
    said = "nothing is separable" if separable is None else f"{number(separable, metric)} for two entries"
    described = f"With {units} units: {said}"
    return _svg(name, WIDTH, height, title, described, body)


def in_words(score: Score, metric: Metric, *, signed: bool = False) -> str:
    """A score with its interval in a sentence."""
    if score.value != score.value:
        return "undefined"
    value = number(score.value, metric, signed=signed)
    if score.low is None or score.high is None:
        return value
    return f"{value} (95% interval {number(score.low, metric)} to {number(score.high, metric)})"
