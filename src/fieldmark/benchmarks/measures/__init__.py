"""Metrics with their conventions fixed, as benchmarks declare them; one module per family."""

from fieldmark.benchmarks.measures.classification import balanced_accuracy, log_loss, macro_f1, top, top_error
from fieldmark.benchmarks.measures.costs import cost_poison, cost_unknown, fungiclef_track, venom_cost, venom_score
from fieldmark.benchmarks.measures.label_sets import adaptive_top_30, mean_set_size
from fieldmark.benchmarks.measures.masks import iou, miou
from fieldmark.benchmarks.measures.open_set import f1_known, f1_unknown, open_macro_f1, roc_auc, tnr_at_tpr
from fieldmark.benchmarks.measures.presence import species_cor, species_prg_auc, species_roc_auc
from fieldmark.benchmarks.measures.ranking import mrr, recall_at
from fieldmark.benchmarks.measures.soundscapes import cmap, rmap

__all__ = [
    "adaptive_top_30",
    "balanced_accuracy",
    "cmap",
    "cost_poison",
    "cost_unknown",
    "f1_known",
    "f1_unknown",
    "fungiclef_track",
    "iou",
    "log_loss",
    "macro_f1",
    "mean_set_size",
    "miou",
    "mrr",
    "open_macro_f1",
    "recall_at",
    "rmap",
    "roc_auc",
    "species_cor",
    "species_prg_auc",
    "species_roc_auc",
    "tnr_at_tpr",
    "top",
    "top_error",
    "venom_cost",
    "venom_score",
]
