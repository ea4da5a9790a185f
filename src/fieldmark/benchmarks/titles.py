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


def metric_is_share(name: str) -> bool:
    """Whether a metric is a share, which people read in percent; a name that no benchmark has is none.

    >>> metric_is_share("top_1"), metric_is_share("log_loss"), metric_is_share("something else")
    (True, False, False)
    """
    metric = _metrics(tuple(BENCHMARKS)).get(name)
    return metric is not None and metric.is_share


@cache
def _metrics(benchmarks: tuple[str, ...]) -> dict[str, Metric]:
    return {metric.name: metric for name in benchmarks for metric in BENCHMARKS[name].task.metrics}
