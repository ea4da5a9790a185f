"""Metrics with their conventions fixed, as benchmarks declare them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from fieldmark.benchmarks.declarations import Metric
from fieldmark.metrics import classification, costs, geo, openset, probabilistic, ranking, retrieval, segmentation
from fieldmark.metrics.classification import Over
from fieldmark.metrics.costs import Track
from fieldmark.metrics.openset import Threshold, TiedPairs
from fieldmark.metrics.probabilistic import Renormalize
from fieldmark.metrics.retrieval import Ties
from fieldmark.metrics.segmentation import Empty
from fieldmark.questions.any_labels import PairEvaluation
from fieldmark.questions.masks import MaskEvaluation
from fieldmark.questions.one_label import LabelEvaluation
from fieldmark.runs.label_scores import Ties as EqualScores

_MACRO_CLASSES = {
    "all": "every class of the benchmark; a class absent from truth and answers counts 0",
    "present": "classes that occur in the truth",
    "union": "classes that occur in the truth or in the answers",
}
_ANY_COST = (0.0, math.inf)
Arguments = Mapping[str, Any]


def _first_answers(found: LabelEvaluation) -> Arguments:
    return {"truth": found.true_codes, "predicted": found.first}


def _first_answers_of_all(found: LabelEvaluation) -> Arguments:
    return {**_first_answers(found), "n_classes": found.n_classes}


def _first_answers_and_danger(found: LabelEvaluation) -> Arguments:
    return {**_first_answers(found), "dangerous": found.dangerous}


def _first_answers_and_venom(found: LabelEvaluation) -> Arguments:
    return {**_first_answers(found), "venomous": found.dangerous}


def _ranked(found: LabelEvaluation) -> Arguments:
    return {"truth": found.true_codes, "ranked": found.ranked}


def _ranked_ties_highest(found: LabelEvaluation) -> Arguments:
    return {"truth": found.true_codes, "ranked": found.ranked_ties_highest}


def _stated_rank_of_truth(found: LabelEvaluation) -> Arguments:
    return {"rank_of_truth": found.stated_rank_of_truth}


def _stated_rank_of_rare(found: LabelEvaluation) -> Arguments:
    return {"rank_of_truth": found.stated_rank_of_truth, "among": found.is_rare}


def _rank_of_truth(found: LabelEvaluation) -> Arguments:
    return {"rank_of_truth": found.rank_of_truth}


def _rank_of_rare(found: LabelEvaluation) -> Arguments:
    return {"rank_of_truth": found.rank_of_truth, "among": found.is_rare}


def _strangeness(found: LabelEvaluation) -> Arguments:
    return {"unknown_score": found.unknown_score, "is_known": found.is_known}


def _probabilities(found: LabelEvaluation) -> Arguments:
    return {"truth": found.true_codes, "probability": found.probabilities}


def _sets(found: LabelEvaluation) -> Arguments:
    return {"sets": found.sets_of_30}


def _strict_sets(found: LabelEvaluation) -> Arguments:
    return {"sets": found.strict_sets_of_30}


def _pairs(found: PairEvaluation) -> Arguments:
    segment, cls, score = found.scored
    true_segment, true_cls = found.true
    return {
        "segment": segment,
        "cls": cls,
        "score": score,
        "true_segment": true_segment,
        "true_cls": true_cls,
    }


def _pixels(found: MaskEvaluation) -> Arguments:
    return {"intersection": found.intersection, "union": found.union}


def _pixels_of_parts(found: MaskEvaluation) -> Arguments:
    parts = found.parts
    return {"intersection": found.part_table[0], "union": found.part_table[1], "parts": parts}


def _macro_title(over: Over) -> str:
    return "Macro-F1, all classes" if over == "all" else f"Macro-F1, {over}"


def macro_f1(*, over: Over) -> Metric:
    """Macro-averaged F1 over `all` classes, those `present` in the truth, or the `union` of truth and answers."""
    return Metric(
        name=f"macro_f1_{over}",
        title=_macro_title(over),
        value=classification.macro_f1,
        without_each_unit=classification.macro_f1_without_each_unit,
        reads=_first_answers_of_all,
        first_answer=True,
        options={"over": over},
        about=f"mean F1 over {_MACRO_CLASSES[over]}; first answer of each item; F1 is 0 without a true positive",
    )


_EQUALS = {
    "lowest": "equal scores are ranked by label code",
    "highest": "equal scores are ranked by falling label code, as the organizers of FGVC do",
}


def top(k: int, *, ties: EqualScores = "lowest") -> Metric:
    """Accuracy within the first `k` answers; among equal scores the label with the lowest or highest code is first."""
    lowest = ties == "lowest"
    return Metric(
        name=f"top_{k}" if lowest else f"top_{k}_ties_{ties}",
        title=f"Top {k}" if lowest else f"Top {k}, ties {ties} first",
        value=classification.top_k,
        without_each_unit=classification.top_k_without_each_unit,
        reads=_ranked if lowest else _ranked_ties_highest,
        options={"k": k},
        about=f"share of items whose label is among the first {k} answers; {_EQUALS[ties]}",
        proportion=True,
        otherwise={"ties=highest": partial(top, k, ties="highest")} if lowest else {},
    )


def top_error(k: int, *, ties: EqualScores = "lowest") -> Metric:
    """Share of items whose label is not among the first `k` answers; ties as in `top`."""
    lowest = ties == "lowest"
    return Metric(
        name=f"top_{k}_error" if lowest else f"top_{k}_error_ties_{ties}",
        title=f"Top {k} error" if lowest else f"Top {k} error, ties {ties} first",
        value=ranking.top_k_error,
        without_each_unit=ranking.top_k_error_without_each_unit,
        reads=_ranked if lowest else _ranked_ties_highest,
        options={"k": k},
        about=f"share of items whose label is not among the first {k} answers{'' if lowest else f'; {_EQUALS[ties]}'}",
        proportion=True,
        higher_is_better=False,
        otherwise={"ties=highest": partial(top_error, k, ties="highest")} if lowest else {},
    )


def recall_at(k: int) -> Metric:
    """Share of items whose label is among the first `k` that the run lists."""
    return Metric(
        name=f"recall_at_{k}",
        title=f"Recall at {k}",
        value=ranking.recall_at_k,
        without_each_unit=ranking.recall_at_k_without_each_unit,
        reads=_rank_of_truth,
        options={"k": k},
        about=f"share of observations whose label is among the first {k} answers",
        proportion=True,
    )


def mrr(*, rare: bool = False, by: Literal["score", "rank"] = "score") -> Metric:
    """Mean reciprocal rank, over all items or over those of rare classes, by score or by the stated rank alone."""
    name, title = ("mrr_rare", "MRR, rare species") if rare else ("mrr", "MRR")
    readers = (_stated_rank_of_truth, _stated_rank_of_rare) if by == "rank" else (_rank_of_truth, _rank_of_rare)
    order = "sorted by score, ties by the rank the run states"
    if by == "rank":
        order = "sorted by the rank the run states, whatever the scores, as the evaluator of 2018 does"
    return Metric(
        name=f"{name}_by_rank" if by == "rank" else name,
        title=f"{title}, by stated rank" if by == "rank" else title,
        value=ranking.mean_reciprocal_rank,
        without_each_unit=ranking.mean_reciprocal_rank_without_each_unit,
        reads=readers[rare],
        options={},
        about=f"mean of 1 / rank of the true label over {'items of rare classes' if rare else 'all items'}; "
        f"{order}; not listed counts 0",
        optional=rare,
        otherwise={"by=rank": partial(mrr, rare=rare, by="rank")} if by == "score" else {},
    )


def roc_auc(*, ties: TiedPairs = "half") -> Metric:
    """How well the unknown score tells known from unknown; a pair of equal scores counts one half or nothing."""
    half = ties == "half"
    counted = "one half" if half else "nothing, as in the organizers' code"
    return Metric(
        name="roc_auc" if half else "roc_auc_ties_zero",
        title="ROC-AUC" if half else "ROC-AUC, ties count 0",
        value=openset.known_roc_auc,
        without_each_unit=openset.known_roc_auc_without_each_unit,
        reads=_strangeness,
        options={"ties": ties},
        about=f"area under the ROC curve of known against unknown by unknown_score; equal scores count {counted}",
        groups="is_known",
        otherwise={"ties=zero": partial(roc_auc, ties="zero")} if half else {},
    )


def tnr_at_tpr(*, threshold: Threshold = "first") -> Metric:
    """Share of unknown items rejected when 95 % of known ones are accepted."""
    rule = {
        "first": "the first threshold with at least 95 %",
        "nearest": "the threshold nearest to 95 %, as in the organizers' code",
    }[threshold]
    return Metric(
        name="tnr_at_95_tpr" if threshold == "first" else f"tnr_at_95_tpr_{threshold}",
        title="TNR at 95% TPR" if threshold == "first" else f"TNR {threshold} 95% TPR",
        value=openset.tnr_at_tpr,
        resampled=openset.tnr_at_tpr_resampled,
        reads=_strangeness,
        options={"tpr": 0.95, "threshold": threshold},
        about=f"share of unknown items rejected when 95 % of the known are accepted; {rule}",
        groups="is_known",
        # With fewer the threshold is the strangest known item or the next, whose spread no sample of units shows.
        least_units=(25, 2),
    )


def open_macro_f1(*, over: Over) -> Metric:
    """Macro-averaged F1 with unknown as one more class."""
    return Metric(
        name=f"macro_f1_{over}",
        title=_macro_title(over),
        value=openset.open_macro_f1,
        without_each_unit=openset.open_macro_f1_without_each_unit,
        reads=_first_answers_of_all,
        first_answer=True,
        options={"over": over, "unknown": "averaged"},
        about=f"mean F1 over {_MACRO_CLASSES[over]}; unknown (-1) is one class more",
    )


def f1_known() -> Metric:
    """Macro-averaged F1 over the known classes alone."""
    return Metric(
        name="f1_known",
        title="Macro-F1, known classes",
        value=openset.open_macro_f1,
        without_each_unit=openset.open_macro_f1_without_each_unit,
        reads=_first_answers_of_all,
        first_answer=True,
        options={"over": "all", "unknown": "left out"},
        about="mean F1 over every known class; unknown items answered with a known class count against it",
    )


def f1_unknown() -> Metric:
    """F1 of the unknown class."""
    return Metric(
        name="f1_unknown",
        title="F1 of unknown",
        value=openset.f1_of_class,
        without_each_unit=openset.f1_of_class_without_each_unit,
        reads=_first_answers,
        first_answer=True,
        options={"cls": -1},
        about="F1 of unknown (-1)",
    )


def cost_poison() -> Metric:
    """What confusing poisonous and edible species costs."""
    return Metric(
        name="cost_poison",
        title="Cost of poison confusions",
        unit="cost",
        value=costs.poison_cost,
        without_each_unit=costs.poison_cost_without_each_unit,
        reads=_first_answers_and_danger,
        first_answer=True,
        options={"c_p": 100.0, "c_e": 1.0},
        about="mean of 100 for poisonous taken for harmless, 1 for harmless taken for poisonous; -1 counts as harmless",
        largest_cost=100.0,
        higher_is_better=False,
        bounds=_ANY_COST,
    )


def cost_unknown() -> Metric:
    """What missing the unknown costs."""
    return Metric(
        name="cost_unknown",
        title="Cost of missed unknowns",
        unit="cost",
        value=costs.unknown_cost,
        without_each_unit=costs.unknown_cost_without_each_unit,
        reads=_first_answers,
        first_answer=True,
        options={"c_u": 10.0, "c_k": 1.0},
        about="mean of 10 for an unknown item answered with a known class, 1 for any other mistake",
        largest_cost=10.0,
        higher_is_better=False,
        bounds=_ANY_COST,
    )


def fungiclef_track(track: Track) -> Metric:
    """A track of FungiCLEF 2023 and 2024 as their evaluator has it, unrounded."""
    about = {
        1: "classification error; unknown is a class",
        2: "cost of confusing poisonous and edible: 100 and 1",
        3: "track 1 plus track 2",
        4: "error with 10 for a missed unknown, 0.1 for a known taken for unknown, 1 otherwise",
    }[track]
    return Metric(
        name=f"track_{track}",
        title=f"Track {track}",
        unit="%" if track == 1 else "cost",
        value=costs.fungiclef_track,
        without_each_unit=costs.fungiclef_track_without_each_unit,
        reads=_first_answers_and_danger,
        first_answer=True,
        options={"track": track},
        about=f"{about}; the organizers round to four digits",
        largest_cost={1: None, 2: 100.0, 3: 101.0, 4: 10.0}[track],
        proportion=track == 1,
        higher_is_better=False,
        bounds=(0.0, 1.0) if track == 1 else _ANY_COST,
    )


def log_loss(*, eps: float, renormalize: Renormalize) -> Metric:
    """Logarithmic loss of stated probabilities."""
    return Metric(
        name="log_loss",
        title="Log loss",
        unit="nats",
        value=probabilistic.log_loss,
        without_each_unit=probabilistic.log_loss_without_each_unit,
        reads=_probabilities,
        options={"eps": eps, "renormalize": renormalize},
        about=f"mean of -ln p(true label); rows renormalized: {renormalize}; clipped to [{eps:g}, 1 - {eps:g}]",
        higher_is_better=False,
        bounds=_ANY_COST,
    )


def venom_cost() -> Metric:
    """Track 2 of SnakeCLEF 2023: the sum of what mistakes cost."""
    return Metric(
        name="venom_cost",
        title="Cost of venom confusions",
        unit="cost",
        value=costs.venom_cost,
        without_each_unit=costs.venom_cost_without_each_unit,
        reads=_first_answers_and_venom,
        first_answer=True,
        options={},
        about="sum over mistakes: harmless for harmless 1, for venomous 2; venomous for harmless 5, for venomous 2",
        higher_is_better=False,
        bounds=_ANY_COST,
        optional=True,
    )


def venom_score() -> Metric:
    """Track 1 of SnakeCLEF 2023: a weighted mean of macro-F1 and the shares of harmless mistakes, in percent."""
    return Metric(
        name="venom_score",
        title="Venom score",
        unit="points",
        value=costs.venom_score,
        without_each_unit=costs.venom_score_without_each_unit,
        reads=_first_answers_and_venom,
        first_answer=True,
        options={},
        about="track 1 of SnakeCLEF 2023, from 0 to 100, unrounded",
        bounds=(0.0, 100.0),
        optional=True,
    )


_TIES_TITLE = {"optimistic": "", "expected": ", ties averaged", "grouped": ", ties grouped"}
_TIES = {
    "optimistic": "right ones first among equal scores, as the organizers sort",
    "expected": "the mean over all orders of equal scores",
    "grouped": "equal scores stand or fall together",
}


def cmap(*, ties: Ties = "optimistic") -> Metric:
    """Class-wise mean average precision over segments."""
    return Metric(
        name="cmap" if ties == "optimistic" else f"cmap_{ties}",
        title=f"cmAP{_TIES_TITLE[ties]}",
        value=retrieval.cmap,
        without_each_unit=retrieval.cmap_without_each_unit,
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
        reads=_pairs,
        options={"ties": ties},
        about=f"mean over segments with at least one true class of average precision; {_TIES[ties]}",
    )


def adaptive_top_30(*, strict: bool = False) -> Metric:
    """Accuracy of sets of 30 labels on average, cut by one threshold over all scored items."""
    rule = "above the threshold" if strict else "at or above the threshold"
    return Metric(
        name="adaptive_top_30_strict" if strict else "adaptive_top_30",
        title=f"Adaptive top-30 accuracy{', strict' if strict else ''}",
        value=geo.adaptive_accuracy,
        without_each_unit=geo.adaptive_accuracy_without_each_unit,
        reads=_strict_sets if strict else _sets,
        options={},
        about=f"share of items whose label scores {rule} that leaves 30 labels per item on average; not listed: never",
        proportion=True,
    )


def mean_set_size() -> Metric:
    """How many labels the adaptive sets really hold."""
    return Metric(
        name="mean_set_size",
        title="Mean set size",
        unit="labels",
        value=geo.mean_set_size,
        reads=_sets,
        options={},
        about="mean number of labels in the sets of adaptive_top_30; above 30 where scores tie at the threshold",
        bounds=_ANY_COST,
    )


def iou(*, empty: Empty = "one") -> Metric:
    """Binary intersection over union, each photo with the same weight; empty against empty counts one or zero."""
    counted = "1" if empty == "one" else "0, as in the organizers' code"
    return Metric(
        name="iou" if empty == "one" else "iou_empty_zero",
        title="IoU" if empty == "one" else "IoU, empty counts 0",
        value=segmentation.mean_iou,
        without_each_unit=segmentation.mean_iou_without_each_unit,
        reads=_pixels,
        options={"empty": empty},
        about=f"mean over photos of intersection over union of the fruiting body; empty against empty counts {counted}",
        otherwise={"empty=zero": partial(iou, empty="zero")} if empty == "one" else {},
    )


def miou(*, background: bool) -> Metric:
    """Intersection over union of each part, pixels pooled over the set, averaged over parts."""
    included = "the background is a part" if background else "the background is no part"
    return Metric(
        name="miou_with_background" if background else "miou",
        title="mIoU with background" if background else "mIoU",
        value=segmentation.pooled_miou,
        without_each_unit=segmentation.pooled_miou_without_each_unit,
        reads=_pixels_of_parts,
        options={"background": background},
        about="mean over the parts of truth and run of pooled intersection over union; parts that never occur are "
        f"dropped; {included}",
        few_units=True,
        optional=True,
    )
