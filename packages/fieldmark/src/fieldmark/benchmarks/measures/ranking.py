"""How early a ranked list names the true label."""

from __future__ import annotations

from functools import partial
from typing import Literal

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.measures.readers import Arguments
from fieldmark.benchmarks.measures.support import on_chosen, on_classes
from fieldmark.metrics import ranking
from fieldmark.questions.one_label import LabelEvaluation

__all__ = ["mrr", "recall_at", "species_mrr"]


def _stated_rank_of_truth(evaluation: LabelEvaluation) -> Arguments:
    return {"rank_of_truth": evaluation.stated_rank_of_truth}


def _stated_rank_of_rare(evaluation: LabelEvaluation) -> Arguments:
    return {"rank_of_truth": evaluation.stated_rank_of_truth, "among": evaluation.is_rare}


def _rank_of_truth(evaluation: LabelEvaluation) -> Arguments:
    return {"rank_of_truth": evaluation.rank_of_truth}


def _rank_of_rare(evaluation: LabelEvaluation) -> Arguments:
    return {"rank_of_truth": evaluation.rank_of_truth, "among": evaluation.is_rare}


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
        rests_on=on_chosen if rare else None,
        reads=readers[rare],
        about=f"mean of 1 / rank of the true label over {'items of rare classes' if rare else 'all items'}; "
        f"{order}; not listed counts 0",
        optional=rare,
        otherwise={"by=rank": partial(mrr, rare=rare, by="rank")} if by == "score" else {},
    )


def _rank_and_species(evaluation: LabelEvaluation) -> Arguments:
    return {"rank_of_truth": evaluation.rank_of_truth, "truth": evaluation.true_codes}


def species_mrr() -> Metric:
    """Mean reciprocal rank, every species of the truth with the same weight."""
    return Metric(
        name="species_mrr",
        title="MRR, mean over species",
        value=ranking.species_mean_reciprocal_rank,
        without_each_unit=ranking.species_mean_reciprocal_rank_without_each_unit,
        rests_on=on_classes,
        reads=_rank_and_species,
        about="mean over the species of the truth of the mean of 1 / rank of their items; sorted by score, ties by the "
        "rank the run states; not listed counts 0",
    )
