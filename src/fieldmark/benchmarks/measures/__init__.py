"""Metrics with their conventions fixed, as benchmarks declare them; one module per family."""

from fieldmark.benchmarks.measures.classification import (
    balanced_accuracy,
    country_macro_f1,
    log_loss,
    macro_f1,
    top,
    top_error,
)
from fieldmark.benchmarks.measures.costs import cost_poison, cost_unknown, fungiclef_track, venom_cost, venom_score
from fieldmark.benchmarks.measures.individuals import adjusted_rand, known_and_new
from fieldmark.benchmarks.measures.label_sets import adaptive_top_30, mean_set_size
from fieldmark.benchmarks.measures.masks import iou, miou
from fieldmark.benchmarks.measures.open_set import f1_known, f1_unknown, open_macro_f1, roc_auc, tnr_at_tpr
from fieldmark.benchmarks.measures.presence import species_cor, species_prg_auc, species_roc_auc
from fieldmark.benchmarks.measures.ranking import mrr, recall_at, species_mrr
from fieldmark.benchmarks.measures.soundscapes import cmap, padded_cmap, rmap
from fieldmark.benchmarks.measures.species_lists import balanced_decisions, list_macro_f1, pooled_f1, sample_f1
from fieldmark.benchmarks.measures.taxonomy import tree_distance

__all__ = [
    "adaptive_top_30",
    "adjusted_rand",
    "balanced_accuracy",
    "balanced_decisions",
    "cmap",
    "cost_poison",
    "cost_unknown",
    "country_macro_f1",
    "f1_known",
    "f1_unknown",
    "fungiclef_track",
    "iou",
    "known_and_new",
    "list_macro_f1",
    "log_loss",
    "macro_f1",
    "mean_set_size",
    "miou",
    "mrr",
    "open_macro_f1",
    "padded_cmap",
    "pooled_f1",
    "recall_at",
    "rmap",
    "roc_auc",
    "sample_f1",
    "species_cor",
    "species_mrr",
    "species_prg_auc",
    "species_roc_auc",
    "tnr_at_tpr",
    "top",
    "top_error",
    "tree_distance",
    "venom_cost",
    "venom_score",
]
