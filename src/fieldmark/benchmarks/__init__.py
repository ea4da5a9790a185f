"""Benchmarks: one module per challenge, declarations without logic."""

from __future__ import annotations

from fieldmark.benchmarks.declarations import Benchmark
from fieldmark.foundation.registry import Registry

BENCHMARKS: Registry[Benchmark] = Registry(
    "benchmark",
    {
        "folder": ("fieldmark.benchmarks.folder:FOLDER", "your own photos or recordings, closed set"),
        "folder/segmentation": ("fieldmark.benchmarks.folder:FOLDER_SEGMENTATION", "your own photos with masks"),
        "occurrences": ("fieldmark.benchmarks.occurrences:OCCURRENCES", "your own occurrences, species from photos"),
        "occurrences/places": ("fieldmark.benchmarks.occurrences:PLACES", "your own occurrences, species from place"),
        "fungitastic/closed": ("fieldmark.benchmarks.fungitastic:CLOSED", "FungiTastic, closed set"),
        "fungitastic/dna": ("fieldmark.benchmarks.fungitastic:DNA", "FungiTastic, DNA-sequenced test photos"),
        "fungitastic/open": ("fieldmark.benchmarks.fungitastic:OPEN", "FungiTastic, open set"),
        "fungitastic/temporal": (
            "fieldmark.benchmarks.fungitastic_temporal:TEMPORAL",
            "FungiTastic, open set in time order",
        ),
        "fungitastic/temporal-day-batch": (
            "fieldmark.benchmarks.fungitastic_temporal:TEMPORAL_DAY_BATCH",
            "the same, and items of one day see each other",
        ),
        "fungitastic/temporal-delayed-labels": (
            "fieldmark.benchmarks.fungitastic_temporal:TEMPORAL_DELAYED_LABELS",
            "the same, and labels become known two weeks later",
        ),
        "fungitastic/cost-poison": (
            "fieldmark.benchmarks.fungitastic:COST_POISON",
            "FungiTastic, poisonous for edible costs 100",
        ),
        "fungitastic/cost-unknown": (
            "fieldmark.benchmarks.fungitastic:COST_UNKNOWN",
            "FungiTastic, a missed unknown costs 10",
        ),
        "fungitastic-fewshot": ("fieldmark.benchmarks.fungitastic:FEW_SHOT", "FungiTastic, few shots"),
        "fungitastic-mini/open": ("fieldmark.benchmarks.fungitastic:MINI_OPEN", "FungiTastic-Mini, open set"),
        "fungitastic-mini/temporal": (
            "fieldmark.benchmarks.fungitastic_temporal:MINI_TEMPORAL",
            "FungiTastic-Mini in time order; closed set where the release has no open one",
        ),
        "fungitastic-mini/temporal-day-batch": (
            "fieldmark.benchmarks.fungitastic_temporal:MINI_TEMPORAL_DAY_BATCH",
            "the same, and items of one day see each other",
        ),
        "fungitastic-mini/temporal-delayed-labels": (
            "fieldmark.benchmarks.fungitastic_temporal:MINI_TEMPORAL_DELAYED_LABELS",
            "the same, and labels become known two weeks later",
        ),
        "fungitastic-mini/temporal-closed": (
            "fieldmark.benchmarks.fungitastic_temporal:MINI_CLOSED_TEMPORAL",
            "FungiTastic-Mini in time order, closed set",
        ),
        "fungitastic-mini/temporal-closed-day-batch": (
            "fieldmark.benchmarks.fungitastic_temporal:MINI_CLOSED_TEMPORAL_DAY_BATCH",
            "the same, and items of one day see each other",
        ),
        "fungitastic-mini/temporal-closed-delayed-labels": (
            "fieldmark.benchmarks.fungitastic_temporal:MINI_CLOSED_TEMPORAL_DELAYED_LABELS",
            "the same, and labels become known two weeks later",
        ),
        "fungitastic-mini/segmentation": (
            "fieldmark.benchmarks.fungitastic:SEGMENTATION",
            "FungiTastic-Mini, fruiting bodies and their parts",
        ),
        "fungitastic-mini/closed": ("fieldmark.benchmarks.fungitastic:MINI_CLOSED", "FungiTastic-Mini, closed set"),
        "fungitastic-mini/dna": (
            "fieldmark.benchmarks.fungitastic:MINI_DNA",
            "FungiTastic-Mini, DNA-sequenced test photos",
        ),
        "fungiclef-2023": ("fieldmark.benchmarks.fungiclef:FUNGICLEF_2023", "FungiCLEF 2023 and 2024, four tracks"),
        "fungiclef-2025": ("fieldmark.benchmarks.fungiclef:FUNGICLEF_2025", "FungiCLEF 2025, recall at 5"),
        "fgvcx-fungi-2018": ("fieldmark.benchmarks.fgvcx:FUNGI_2018", "FGVCx Fungi 2018"),
        "plantclef-2020": ("fieldmark.benchmarks.plantclef:PLANTCLEF_2020", "PlantCLEF 2020, across domains"),
        "birdclef-2020": ("fieldmark.benchmarks.birdclef:BIRDCLEF_2020", "BirdCLEF 2020, soundscapes"),
        "geolifeclef-2020": (
            "fieldmark.benchmarks.geolifeclef:GEOLIFECLEF_2020",
            "GeoLifeCLEF 2020, species from place",
        ),
        "snakeclef-2020": ("fieldmark.benchmarks.snakeclef:SNAKECLEF_2020", "SnakeCLEF 2020, with geography"),
        "semi-inat-2021": ("fieldmark.benchmarks.semi:SEMI_INAT_2021", "Semi-iNat 2021"),
        "semi-aves-2020": ("fieldmark.benchmarks.semi:SEMI_AVES_2020", "Semi-Aves 2020"),
    },
    group="fieldmark.benchmarks",
)

__all__ = ["BENCHMARKS", "Benchmark"]
