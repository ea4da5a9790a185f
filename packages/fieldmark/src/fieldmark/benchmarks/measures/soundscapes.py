"""Mean average precision of pairs of segment and species."""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.readers import Arguments
from fieldmark.benchmarks.measures.support import on_true_segments
from fieldmark.metrics import retrieval
from fieldmark.metrics.retrieval import Ties
from fieldmark.questions.any_labels import PairEvaluation

__all__ = ["cmap", "padded_cmap", "rmap"]

_TIES_TITLE = {"optimistic": "", "expected": ", ties averaged", "grouped": ", ties grouped"}

_TIES = {
    "optimistic": "right ones first among equal scores, as the organizers sort",
    "expected": "the mean over all orders of equal scores",
    "grouped": "equal scores stand or fall together",
}


def _pairs(evaluation: PairEvaluation) -> Arguments:
    segment, cls, score = evaluation.scored
    true_segment, true_cls = evaluation.true
    return {
        "segment": segment,
        "cls": cls,
        "score": score,
        "true_segment": true_segment,
        "true_cls": true_cls,
    }


def cmap(*, ties: Ties = "optimistic") -> Metric:
    """Class-wise mean average precision over segments."""
    return Metric(
        name="cmap" if ties == "optimistic" else f"cmap_{ties}",
        title=f"cmAP{_TIES_TITLE[ties]}",
        value=retrieval.cmap,
        without_each_unit=retrieval.cmap_without_each_unit,
        rests_on=on_true_segments,
        reads=_pairs,
        options={"ties": ties},
        about=f"mean over the classes of the truth of average precision; segments not listed are misses; {_TIES[ties]}",
    )


def rmap(*, ties: Ties = "optimistic") -> Metric:
    """Segment-wise mean average precision over segments with a bird."""
    return Metric(
        name="rmap" if ties == "optimistic" else f"rmap_{ties}",
        title=f"rmAP{_TIES_TITLE[ties]}",
        value=retrieval.rmap,
        without_each_unit=retrieval.rmap_without_each_unit,
        rests_on=on_true_segments,
        reads=_pairs,
        options={"ties": ties},
        about=f"mean over segments with at least one true class of average precision; {_TIES[ties]}",
    )


def _all_pairs(evaluation: PairEvaluation) -> Arguments:
    return {
        **_pairs(evaluation),
        "n_classes": evaluation.n_classes,
        "n_segments": len(evaluation.truth.items),
    }


def padded_cmap(*, padding: int = 5) -> Metric:
    """Class-wise mean average precision with a few true segments added to every class."""
    return Metric(
        name="padded_cmap",
        title="Padded cmAP",
        value=retrieval.padded_cmap,
        without_each_unit=retrieval.padded_cmap_without_each_unit,
        rests_on=on_true_segments,
        reads=_all_pairs,
        options={"padding": padding},
        about=f"mean over all classes of average precision after {padding} true segments with the score 1 were added; "
        "a class without a true segment counts 1 unless scores reach 1; equal scores stand or fall together",
    )
