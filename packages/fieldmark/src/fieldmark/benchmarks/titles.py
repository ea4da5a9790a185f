"""What metrics are called where only their names are known, as on a scorecard that was read from a file.

A name means the same metric in every benchmark, so that the first benchmark that has it answers. Those that are loaded
are asked first: whoever has opened a benchmark loads no other one for its titles. Among them, those of other packages
come before ours, since they may call a metric otherwise.
"""

from __future__ import annotations

from functools import cache

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.selection import conventions


def metric_title(name: str, benchmark: str = "") -> str:
    """The title of a metric, from its name on scorecards; a name that no benchmark has stays as it is.

    Args:
        name: The metric.
        benchmark: Where it was measured, if that is known: asked before all others.

    >>> metric_title("macro_f1_all"), metric_title("mrr"), metric_title("tnr_at_95_tpr")
    ('Macro-F1, all classes', 'MRR', 'TNR at 95% TPR')
    """
    metric = _metric(name, benchmark, tuple(BENCHMARKS))
    return name if metric is None else metric.title


def metric_is_share(name: str, benchmark: str = "") -> bool:
    """Whether a metric is a share, which people read in percent; a name that no benchmark has is none.

    >>> metric_is_share("top_1"), metric_is_share("log_loss", "folder"), metric_is_share("something else")
    (True, False, False)
    """
    metric = _metric(name, benchmark, tuple(BENCHMARKS))
    return metric is not None and metric.is_share


@cache
def _metric(name: str, benchmark: str, benchmarks: tuple[str, ...]) -> Metric | None:
    others_first = benchmarks[::-1]
    ordered = sorted(others_first, key=lambda one: (one != benchmark, not BENCHMARKS.is_loaded(one)))
    declared = (metric for one in ordered for metric in conventions(BENCHMARKS[one]).values())
    return next((metric for metric in declared if metric.name == name), None)
