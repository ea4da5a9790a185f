"""The sections of a report, one module each, in the order of the page. A new one takes a module and a line here."""

from __future__ import annotations

from fieldmark.registry import Registry
from fieldmark.reports.section import Section

SECTIONS: Registry[Section] = Registry(
    "section",
    {
        "scores": ("fieldmark.reports.sections.scores:SECTION", "every run with every metric and its interval"),
        "comparison": (
            "fieldmark.reports.sections.comparison:SECTION",
            "the runs of a page compared on the same units",
        ),
        "reported": ("fieldmark.reports.sections.reported:SECTION", "what papers reported, apart from our own results"),
        "modalities": (
            "fieldmark.reports.sections.modalities:SECTION",
            "the contribution of each modality, for runs of an ablation",
        ),
        "domains": (
            "fieldmark.reports.sections.domains:SECTION",
            "species with field photos against those with sheets alone, per method",
        ),
        "nearest": ("fieldmark.reports.sections.nearest:SECTION", "photos beside the nearest sheets in training"),
        "masks": (
            "fieldmark.reports.sections.masks:SECTION",
            "masks on the photos: best, middle and worst, by part and by size, and failures",
        ),
        "soundscapes": (
            "fieldmark.reports.sections.soundscapes:SECTION",
            "clips of soundscapes to see and hear, with detections",
        ),
        "sites": ("fieldmark.reports.sections.sites:SECTION", "scores by recording site"),
        "species": ("fieldmark.reports.sections.species:SECTION", "precision and recall of each species"),
        "look": ("fieldmark.reports.sections.look:SECTION", "random photos with predictions"),
        "observations": (
            "fieldmark.reports.sections.observations:SECTION",
            "a few observations with all their data",
        ),
        "held-out": (
            "fieldmark.reports.sections.held_out:SECTION",
            "which quadrats or places are train, val and test, and how far they lie apart",
        ),
        "place-maps": (
            "fieldmark.reports.sections.place_maps:SECTION",
            "maps of richness, of one species and of error, for places",
        ),
        "place-distance": (
            "fieldmark.reports.sections.place_distance:SECTION",
            "the score by distance to the nearest place of train",
        ),
        "covariates": (
            "fieldmark.reports.sections.covariates:SECTION",
            "the importance of covariates in a model of places",
        ),
        "where-when": ("fieldmark.reports.sections.where_when:SECTION", "a map and a calendar of the observations"),
        "long-tail": ("fieldmark.reports.sections.long_tail:SECTION", "scores of rare and of common classes"),
        "tree": ("fieldmark.reports.sections.tree:SECTION", "the taxonomy as boxes, colored by recall"),
        "confusions": ("fieldmark.reports.sections.confusions:SECTION", "confusions, with photos"),
        "classes": (
            "fieldmark.reports.sections.classes:SECTION",
            "a table of all classes to sort and download, and the confusion matrix",
        ),
        "errors": ("fieldmark.reports.sections.errors:SECTION", "every wrong answer, to filter and download"),
        "unlabeled": (
            "fieldmark.reports.sections.unlabeled:SECTION",
            "labeled and unlabeled photos per species, and confusion of phyla",
        ),
        "ranks": (
            "fieldmark.reports.sections.ranks:SECTION",
            "scores by genus, or the lowest rank that groups classes",
        ),
        "unknown": (
            "fieldmark.reports.sections.unknown:SECTION",
            "how well unknown species are separated from known ones",
        ),
        "costs": (
            "fieldmark.reports.sections.costs:SECTION",
            "the cost of mistakes, and of avoiding the expensive ones",
        ),
        "venom": (
            "fieldmark.reports.sections.venom:SECTION",
            "venomous snakes called harmless, or another venomous species",
        ),
        "priors": (
            "fieldmark.reports.sections.priors:SECTION",
            "what the context adds, and what a softmax after the product does to the log loss",
        ),
        "reliability": ("fieldmark.reports.sections.reliability:SECTION", "calibration of stated confidence"),
        "season": ("fieldmark.reports.sections.season:SECTION", "errors by month"),
        "year": ("fieldmark.reports.sections.year:SECTION", "score and estimated frequencies over the year"),
        "collectors": (
            "fieldmark.reports.sections.collectors:SECTION",
            "scores by how many training records the observer has",
        ),
        "search": ("fieldmark.reports.sections.search:SECTION", "the settings that a search tried"),
        "origin": ("fieldmark.reports.sections.origin:SECTION", "how the runs were made"),
    },
    group="fieldmark.sections",
)

__all__ = ["SECTIONS"]
