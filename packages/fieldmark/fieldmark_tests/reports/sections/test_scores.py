"""The table of runs."""

from __future__ import annotations

from pathlib import Path

from fieldmark.reports.markup import EN_DASH
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.sections import SECTIONS
from fieldmark_tests.reports.by_hand import MakeRun, noisy, perfect


def test_runs_stand_in_the_table_best_first(fungi: Path, make_run: MakeRun) -> None:
    worse, best = make_run(fungi, noisy, name="worse"), make_run(fungi, perfect, name="best")
    context = load_context([worse, best])
    html = SECTIONS["scores"].render(context)
    assert html.index(">best<") < html.index(">worse<")
    for scored in context.runs:
        for score in scored.scorecard.metrics.values():
            assert f"{100 * score.value:.1f}%" in html
            assert score.low is None or f"{100 * score.low:.1f}{EN_DASH}{100 * score.high:.1f}" in html
    assert f"leaving out one of {context.first.scorecard.units} observations at a time" in " ".join(html.split())
    for convention in context.first.scorecard.conventions.values():
        assert convention[1:] in html
