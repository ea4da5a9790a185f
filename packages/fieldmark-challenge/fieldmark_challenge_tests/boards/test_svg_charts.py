from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import timedelta

import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.titles import metric_title
from fieldmark.scoring import Score
from fieldmark_challenge.boards import svg_charts
from fieldmark_challenge.boards.axes import Scale, number, span_of
from fieldmark_challenge.boards.board_charts import figure_metrics
from fieldmark_challenge.boards.planner import assumed_spread
from fieldmark_challenge.challenges.metrics import board_metric
from fieldmark_challenge_tests.hosting import START

METRIC = board_metric("folder", "top_1")
COST = board_metric("snakeclef-2020", "log_loss")
SCORES = [Score(0.6, 0.5, 0.7, "t"), Score(0.4, None, None, "none"), Score(float("nan"), None, None, "none")]
NASTY = '<script>"&'


def every_chart():
    rows = [(f"team {NASTY} {place}", [score], "rest") for place, score in enumerate(SCORES)]
    points = [svg_charts.Point(START + timedelta(days=place), s.value, NASTY) for place, s in enumerate(SCORES)]
    runs = [(f"a rather long name of a run, number {place}", [score, score]) for place, score in enumerate(SCORES)]
    return {
        "whisker": svg_charts.whisker(SCORES[0], (0.0, 1.0), "best"),
        "intervals": svg_charts.intervals("board", "Board", rows, METRIC),
        "series": svg_charts.intervals("by", "By site", [("x", SCORES[:2], "rest")], METRIC, series=("a", "b")),
        "differences": svg_charts.intervals(
            "diff", "Difference", [("x", [Score(-0.1, -0.2, 0.1, "t")], "best")], METRIC, zero=True
        ),
        "progress": svg_charts.progress("progress", "Progress", points, METRIC),
        "runs": svg_charts.run_figure("runs", "Runs", runs, [METRIC, METRIC]),
        "costs": svg_charts.run_figure("runs", "Runs", [("a", [Score(6.65, 6.0, 7.0, "t")])], [COST]),
        "curve": svg_charts.curve("curve", "Planner", assumed_spread(0.3), METRIC, units=200, entries=10),
    }


@pytest.mark.parametrize("name", list(every_chart()))
def test_charts_are_sound_described_and_styled_by_classes_alone(name):
    drawn = str(every_chart()[name])
    root = ET.fromstring(drawn)  # well-formed, whatever teams call themselves
    assert "script" not in {element.tag.rpartition("}")[2] for element in root.iter()}
    assert "style=" not in drawn and "nan" not in drawn and "fill=" not in drawn
    if name == "whisker":
        assert root.get("aria-hidden") == "true"
    else:
        ids = (root.get("aria-labelledby") or "").split()
        texts = {element.get("id"): element.text for element in root.iter() if element.get("id")}
        assert root.get("role") == "img" and all(texts[one] for one in ids) and len(ids) == 2


def test_a_better_score_is_further_right_and_the_interval_around_it():
    drawn = str(svg_charts.intervals("x", "x", [("a", [SCORES[0]], "rest"), ("b", [SCORES[1]], "rest")], METRIC))
    dots = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn)]
    ends = re.search(r'<line x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)" y2="[\d.]+" class="span', drawn)
    assert dots[0] > dots[1] and float(ends[1]) < dots[0] < float(ends[2])


def test_the_line_of_progress_only_gets_better():
    def heights(metric, values):
        points = [svg_charts.Point(START + timedelta(days=place), value, "t") for place, value in enumerate(values)]
        path = re.search(
            r'<path d="M\S+ ([\d.]+)(\S*)" class="frontier"', str(svg_charts.progress("p", "p", points, metric))
        )
        return [float(path[1]), *(float(y) for y in re.findall(r"V([\d.]+)", path[2]))]

    up = heights(METRIC, [0.3, 0.2, 0.5, 0.4, 0.6])
    assert len(up) == 3 and up == sorted(up, reverse=True)
    down = heights(replace(METRIC, higher_is_better=False), [0.5, 0.6, 0.2])
    assert len(down) == 2 and down == sorted(down)


def test_bars_stand_in_the_order_given_and_on_zero():
    drawn = str(svg_charts.run_figure("r", "r", [("a", [SCORES[0]]), ("b", [SCORES[1]])], [METRIC]))
    bars = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)" rx="1.5"', drawn)
    floors = {round(float(y) + float(height)) for _, y, height in bars}
    assert len(floors) == 1 and float(bars[0][2]) == pytest.approx(1.5 * float(bars[1][2]), rel=0.01)


@pytest.mark.parametrize("span", [(0.0, 1.0), (0.31, 0.345), (-0.2, 7.5), (0.0, 12_000.0)])
def test_ticks_are_few_round_and_inside(span):
    ticks = Scale(span, (0, 100)).ticks()
    assert 3 <= len(ticks) <= 11 and span[0] <= ticks[0] and ticks[-1] <= span[1] * (1 + 1e-9)


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_every_metric_can_be_written_and_drawn(name):
    for metric in BENCHMARKS[name].task.metrics:
        score = Score(0.5, 0.4, 0.6, "t")
        low, high = span_of([score], metric)
        assert metric.bounds[0] <= low < high <= metric.bounds[1]
        assert number(0.5, metric) in svg_charts.in_words(score, metric) and metric.title == metric_title(metric.name)


@pytest.mark.parametrize(
    ("benchmark", "printed"),
    [
        ("plantclef-2020", ["mrr", "mrr_rare"]),
        ("birdclef-2020", ["cmap_expected", "rmap_expected"]),
        ("geolifeclef-2020", ["adaptive_top_30", "recall_at_30"]),
        ("snakeclef-2020", ["macro_f1_union"]),
        ("folder", ["macro_f1_all", "top_1"]),
    ],
)
def test_runs_are_shown_by_the_metrics_that_the_overviews_print(benchmark, printed):
    task = BENCHMARKS[benchmark].task
    assert [metric.name for metric in figure_metrics(task.metrics, task.deciding)] == printed
