"""What metrics are called where only their names are known, as on a scorecard that was read from a file."""

from __future__ import annotations

from functools import cache

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Metric


def metric_title(name: str) -> str:
    """The title of a metric, from its name on scorecards; a name that no benchmark has stays as it is.

    >>> metric_title("macro_f1_all"), metric_title("mrr"), metric_title("tnr_at_95_tpr")
    ('Macro-F1, all classes', 'MRR', 'TNR at 95% TPR')
    """
    metric = _metrics(tuple(BENCHMARKS)).get(name)
    return name if metric is None else metric.title


@cache
def _metrics(benchmarks: tuple[str, ...]) -> dict[str, Metric]:
    return {metric.name: metric for name in benchmarks for metric in BENCHMARKS[name].task.metrics}
