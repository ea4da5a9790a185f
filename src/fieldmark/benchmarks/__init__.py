"""Benchmarks: one module per challenge, declarations without logic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldmark.foundation.late_imports import late_imports
from fieldmark.foundation.registry import Registry

if TYPE_CHECKING:
    from fieldmark.benchmarks.declarations import Benchmark


class Benchmarks(Registry["Benchmark"]):
    """The benchmarks by name; `name@version` is one as it was in an earlier version."""

    def __contains__(self, name: object) -> bool:
        plain, at, version = str(name).partition("@")
        return super().__contains__(plain) and (not at or version in super().__getitem__(plain).versions)

    def __getitem__(self, name: str) -> Benchmark:
        plain, at, version = name.partition("@")
        benchmark = super().__getitem__(plain)
        return benchmark.at(version) if at else benchmark

    def about(self, name: str) -> str:
        return super().about(name.partition("@")[0])


BENCHMARKS = Benchmarks(
    "benchmark",
    {
        "folder": ("fieldmark.benchmarks.folder:FOLDER", "your own photos or recordings, closed set"),
        "folder/segmentation": ("fieldmark.benchmarks.folder:FOLDER_SEGMENTATION", "your own photos with masks"),
        "occurrences": ("fieldmark.benchmarks.occurrences:OCCURRENCES", "your own occurrences, species from photos"),
        "occurrences/places": ("fieldmark.benchmarks.occurrences:PLACES", "your own occurrences, species from place"),
        "occurrences/presence": (
            "fieldmark.benchmarks.occurrences:PRESENCE",
            "your own region: presence and absence at sites, learned from records",
        ),
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
        "fungiclef-2023": ("fieldmark.benchmarks.fungiclef:FUNGICLEF_2023", "FungiCLEF 2023, four tracks"),
        "fungiclef-2025": ("fieldmark.benchmarks.fungiclef:FUNGICLEF_2025", "FungiCLEF 2025, recall at 5"),
        "fgvcx-fungi-2018": ("fieldmark.benchmarks.fgvcx:FUNGI_2018", "FGVCx Fungi 2018"),
        "plantclef-2020": ("fieldmark.benchmarks.plantclef:PLANTCLEF_2020", "PlantCLEF 2020, across domains"),
        "birdclef-2020": ("fieldmark.benchmarks.birdclef:BIRDCLEF_2020", "BirdCLEF 2020, soundscapes"),
        "geolifeclef-2020": (
            "fieldmark.benchmarks.geolifeclef:GEOLIFECLEF_2020",
            "GeoLifeCLEF 2020, species from place",
        ),
        "snakeclef-2020": ("fieldmark.benchmarks.snakeclef:SNAKECLEF_2020", "SnakeCLEF 2020, with geography"),
        "fungiclef-2022": ("fieldmark.benchmarks.fungiclef:FUNGICLEF_2022", "FungiCLEF 2022, open set by observation"),
        "fungiclef-2024": ("fieldmark.benchmarks.fungiclef:FUNGICLEF_2024", "FungiCLEF 2024, four tracks"),
        "plantclef-2021": ("fieldmark.benchmarks.plantclef:PLANTCLEF_2021", "PlantCLEF 2021, across domains"),
        "plantclef-2022": ("fieldmark.benchmarks.plantclef:PLANTCLEF_2022", "PlantCLEF 2022, 80,000 species"),
        "plantclef-2023": (
            "fieldmark.benchmarks.plantclef:PLANTCLEF_2023",
            "PlantCLEF 2023, the same test observations",
        ),
        "plantclef-2024": ("fieldmark.benchmarks.plantclef:PLANTCLEF_2024", "PlantCLEF 2024, all species of a plot"),
        "plantclef-2024/single-plants": (
            "fieldmark.benchmarks.plantclef:SINGLE_PLANTS",
            "PlantCLEF 2024 to 2026, the single plants to learn from",
        ),
        "plantclef-2025": (
            "fieldmark.benchmarks.plantclef:PLANTCLEF_2025",
            "PlantCLEF 2025, all species of a quadrat, by transect",
        ),
        "plantclef-2026": (
            "fieldmark.benchmarks.plantclef:PLANTCLEF_2026",
            "PlantCLEF 2026, second round on the same data",
        ),
        "birdclef-2021": ("fieldmark.benchmarks.birdclef:BIRDCLEF_2021", "BirdCLEF 2021, lists of birds"),
        "birdclef-2022": ("fieldmark.benchmarks.birdclef:BIRDCLEF_2022", "BirdCLEF 2022, yes or no for rare birds"),
        "birdclef-2023": ("fieldmark.benchmarks.birdclef:BIRDCLEF_2023", "BirdCLEF 2023, padded average precision"),
        "birdclef-2024": ("fieldmark.benchmarks.birdclef:BIRDCLEF_2024", "BirdCLEF 2024, mean ROC-AUC"),
        "birdclef-2025": (
            "fieldmark.benchmarks.birdclef:BIRDCLEF_2025",
            "BirdCLEF 2025, mean ROC-AUC, not birds alone",
        ),
        "birdclef-2026": (
            "fieldmark.benchmarks.birdclef:BIRDCLEF_2026",
            "BirdCLEF 2026, mean ROC-AUC, not birds alone",
        ),
        "geolifeclef-2021": (
            "fieldmark.benchmarks.geolifeclef:GEOLIFECLEF_2021",
            "GeoLifeCLEF 2021, 30 species from place",
        ),
        "geolifeclef-2022": (
            "fieldmark.benchmarks.geolifeclef:GEOLIFECLEF_2022",
            "GeoLifeCLEF 2022, the same with other species ids",
        ),
        "geolifeclef-2023": (
            "fieldmark.benchmarks.geolifeclef:GEOLIFECLEF_2023",
            "GeoLifeCLEF 2023, all plants of a plot",
        ),
        "geolifeclef-2024": (
            "fieldmark.benchmarks.geolifeclef:GEOLIFECLEF_2024",
            "GeoLifeCLEF 2024, all plants of a plot",
        ),
        "geolifeclef-2025": (
            "fieldmark.benchmarks.geolifeclef:GEOLIFECLEF_2025",
            "GeoLifeCLEF 2025, all plants of a plot",
        ),
        "snakeclef-2021": ("fieldmark.benchmarks.snakeclef:SNAKECLEF_2021", "SnakeCLEF 2021, macro-F1 by country"),
        "snakeclef-2022": ("fieldmark.benchmarks.snakeclef:SNAKECLEF_2022", "SnakeCLEF 2022, by observation"),
        "snakeclef-2023": ("fieldmark.benchmarks.snakeclef:SNAKECLEF_2023", "SnakeCLEF 2023, venom score"),
        "snakeclef-2024": (
            "fieldmark.benchmarks.snakeclef:SNAKECLEF_2024",
            "SnakeCLEF 2024, venom score on other countries",
        ),
        "animalclef-2025": (
            "fieldmark.benchmarks.animalclef:ANIMALCLEF_2025",
            "AnimalCLEF 2025, known individuals and new ones",
        ),
        "animalclef-2026": (
            "fieldmark.benchmarks.animalclef:ANIMALCLEF_2026",
            "AnimalCLEF 2026, clusters of individuals",
        ),
        "fathomnet-2025": ("fieldmark.benchmarks.fathomnet:FATHOMNET_2025", "FathomNet 2025, distance in the taxonomy"),
        "semi-inat-2021": ("fieldmark.benchmarks.semi:SEMI_INAT_2021", "Semi-iNat 2021"),
        "semi-aves-2020": ("fieldmark.benchmarks.semi:SEMI_AVES_2020", "Semi-Aves 2020"),
    },
    group="fieldmark.benchmarks",
)

__getattr__ = late_imports(__name__, "fieldmark.benchmarks.declarations:Benchmark")
__all__ = ["BENCHMARKS", "Benchmark"]
