from __future__ import annotations

from dataclasses import replace

from fieldmark.cli.output import print_scorecards
from fieldmark.scoring import Score, Scorecard


def _card(**values: float) -> Scorecard:
    metrics = {name: Score(value, value / 2, 1.0, "jackknife-t") for name, value in values.items()}
    return Scorecard("folder", "2", "test", 20, 10, 3, metrics, {})


def test_a_metric_with_the_same_values_by_another_convention_takes_no_column_of_its_own(capsys):
    same = _card(macro_f1_all=0.4, macro_f1_present=0.4, macro_f1_union=0.1 + 0.3, top_1=0.4)
    print_scorecards({"linear": same, "knn": same})
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["macro_f1_all", "top_1"]
    assert "macro_f1_present and macro_f1_union: the same as macro_f1_all here" in rows
    other = replace(same, metrics={**same.metrics, "macro_f1_present": Score(0.5, None, None, "none")})
    print_scorecards({"linear": same, "knn": other})
    assert capsys.readouterr().out.split()[:3] == ["macro_f1_all", "macro_f1_present", "top_1"]
