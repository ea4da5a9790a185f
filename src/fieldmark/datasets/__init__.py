"""Releases as tables. One module or package per release; each opens real files and never writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldmark.errors import InputError
from fieldmark.foundation.late_imports import late_imports
from fieldmark.foundation.registry import Registry

if TYPE_CHECKING:
    from pathlib import Path

    from fieldmark.datasets.base import Dataset, DatasetOpener
    from fieldmark.release import Release

DATASETS: Registry[DatasetOpener] = Registry(
    "dataset",
    {
        "fgvcx-fungi-2018": ("fieldmark.datasets.fgvcx_fungi:open_fgvcx_fungi", "FGVCx Fungi 2018"),
        "folder": ("fieldmark.datasets.folder:open_folder", "your own photos or recordings, one folder per class"),
        "folder-masks": ("fieldmark.datasets.folder_masks:open_folder_masks", "your own photos with masks"),
        "birdclef-2020": ("fieldmark.datasets.birdclef:open_birdclef", "BirdCLEF 2020: focal recordings, soundscapes"),
        "birdclef-2021": (
            "fieldmark.datasets.birdclef_kaggle:OPEN_2021",
            "BirdCLEF 2021: focal recordings, soundscapes where there are annotated ones",
        ),
        "birdclef-2022": (
            "fieldmark.datasets.birdclef_kaggle:OPEN_2022",
            "BirdCLEF 2022: focal recordings, soundscapes where there are annotated ones",
        ),
        "birdclef-2023": (
            "fieldmark.datasets.birdclef_kaggle:OPEN_2023",
            "BirdCLEF 2023: focal recordings, soundscapes where there are annotated ones",
        ),
        "birdclef-2024": (
            "fieldmark.datasets.birdclef_kaggle:OPEN_2024",
            "BirdCLEF 2024: focal recordings, soundscapes where there are annotated ones",
        ),
        "birdclef-2025": (
            "fieldmark.datasets.birdclef_kaggle:OPEN_2025",
            "BirdCLEF 2025: focal recordings, soundscapes where there are annotated ones",
        ),
        "birdclef-2026": (
            "fieldmark.datasets.birdclef_kaggle:OPEN_2026",
            "BirdCLEF 2026: focal recordings, soundscapes where there are annotated ones",
        ),
        "fungitastic": ("fieldmark.datasets.fungitastic:open_fungitastic", "FungiTastic: full, Mini and FewShot"),
        "snakeclef-2020": (
            "fieldmark.datasets.snakeclef.opening:open_snakeclef_2020",
            "SnakeCLEF 2020: photos of snakes, by country",
        ),
        "snakeclef-2021": (
            "fieldmark.datasets.snakeclef.opening:open_snakeclef_2021",
            "tables of SnakeCLEF 2021: species, country, source, venomous, boxes",
        ),
        "snakeclef-2022": ("fieldmark.datasets.snakeclef.later:OPEN_2022", "SnakeCLEF 2022: 1,572 species, by region"),
        "snakeclef-2023": ("fieldmark.datasets.snakeclef.later:OPEN_2023", "SnakeCLEF 2023: with venomous species"),
        "snakeclef-2024": ("fieldmark.datasets.snakeclef.later:OPEN_2024", "SnakeCLEF 2024: another test"),
        "plantclef-2020": (
            "fieldmark.datasets.plantclef:open_plantclef",
            "PlantCLEF 2020: herbarium sheets to learn from, field photos to recognize",
        ),
        "plantclef-2021": (
            "fieldmark.datasets.plantclef:open_plantclef_2021",
            "PlantCLEF 2021: the pictures of 2020",
        ),
        "plantclef-2022": (
            "fieldmark.datasets.plantclef_tables:OPEN_2022",
            "PlantCLEF 2022 and 2023: trusted photos and those of the web, 80,000 species",
        ),
        "plantclef-2024": (
            "fieldmark.datasets.plantclef_tables:open_plots",
            "PlantCLEF 2024 to 2026: single plants to learn from, photos of plots to answer",
        ),
        "fungiclef-2022": ("fieldmark.datasets.fungiclef:OPEN_2022", "FungiCLEF 2022: fungi of Denmark, open set"),
        "fungiclef-2023": ("fieldmark.datasets.fungiclef:OPEN_2023", "FungiCLEF 2023 and 2024: the same, val open too"),
        "fathomnet-2025": (
            "fieldmark.datasets.fathomnet:open_fathomnet",
            "FathomNet 2025: animals of the deep sea, cut out of photos",
        ),
        "semi-inat-2021": (
            "fieldmark.datasets.semi.inat:open_semi_inat",
            "Semi-iNat 2021: few labeled photos, many unlabeled ones, three kingdoms",
        ),
        "semi-aves-2020": (
            "fieldmark.datasets.semi.aves:open_semi_aves",
            "Semi-Aves 2020: birds, few labeled photos, unlabeled ones of these and other species",
        ),
        "geolifeclef-2020": (
            "fieldmark.datasets.geolifeclef.opening:open_geolifeclef_2020",
            "GeoLifeCLEF 2020: species by place, with 27 rasters and patches of two countries",
        ),
        "geolifeclef-2021": (
            "fieldmark.datasets.geolifeclef.opening:open_geolifeclef_2021",
            "GeoLifeCLEF 2021: the same data packed again, with vectors of the environment",
        ),
        "geolifeclef-2022": (
            "fieldmark.datasets.geolifeclef.opening:open_geolifeclef_2022",
            "GeoLifeCLEF 2022: a filtered set with species numbered anew",
        ),
        **{
            f"geolifeclef-{year}": (
                f"fieldmark.datasets.geolifeclef.surveys:OPEN_{year}",
                f"GeoLifeCLEF {year}: surveys of plots, records of single plants",
            )
            for year in (2023, 2024, 2025)
        },
        "animalclef-2025": (
            "fieldmark.datasets.animalclef:open_animalclef_2025",
            "AnimalCLEF 2025: photos of known individuals and of new ones",
        ),
        "animalclef-2026": (
            "fieldmark.datasets.animalclef:open_animalclef_2026",
            "AnimalCLEF 2026: photos of individuals to be put together",
        ),
        "occurrences": (
            "fieldmark.datasets.occurrences.opening:open_occurrences",
            "any table of occurrences: CSV, Darwin Core Archive, GBIF download, iNaturalist export",
        ),
    },
    group="fieldmark.datasets",
)
# Datasets whose root may also be one file: a zip, or a table.
OF_ONE_FILE = frozenset({"folder", "folder-masks", "occurrences", "geolifeclef-2020"})


def release_of(name: str, root: str | Path) -> Release:
    """The files that a dataset is opened from: a folder, and for some datasets a single file."""
    from fieldmark.release import Release

    return Release(root, single_file=name in OF_ONE_FILE)


def open_dataset(name: str, root: str | Path, subset: str = "all") -> Dataset:
    """Opens a release (or a world in its layout) by the name of its dataset.

    Raises:
        InputError: When there is no such release, or a world in the layout of another dataset.
    """
    opener, release = DATASETS[name], release_of(name, root)
    made_as = (release.world or {}).get("dataset", name)
    if made_as != name:
        hint = f"Ask about {made_as}, or make another: fieldmark world {name} OUT."
        raise InputError(release.root, found=f"a world of {made_as}", expected=f"one of {name}", hint=hint)
    return opener(release, subset)


__getattr__ = late_imports(__name__, "fieldmark.datasets.base:Dataset")
__all__ = ["DATASETS", "Dataset", "open_dataset", "release_of"]
