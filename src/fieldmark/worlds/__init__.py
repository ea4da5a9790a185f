"""One simulated nature, and the small releases that are written from it.

A world is not nature: every release written here carries `WORLD.json` at its root, which says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fieldmark.foundation.registry import Registry

if TYPE_CHECKING:
    from fieldmark.worlds.nature.posterior import ClassPosterior

WORLDS: Registry[Callable[..., dict[str, object]]] = Registry(
    "world",
    {
        "fgvcx-fungi-2018": (
            "fieldmark.worlds.layouts.fgvcx_fungi:write",
            "invented fungi as FGVCx Fungi 2018 is released, with the organizers' solution",
        ),
        "folder": (
            "fieldmark.worlds.layouts.folder:write",
            "photos of invented fungi in folders by species, as a researcher's own photos are kept",
        ),
        "birdclef-2020": (
            "fieldmark.worlds.layouts.birdclef:write",
            "invented birds as BirdCLEF 2020 is released: focal recordings, and soundscapes of four sites",
        ),
        "birdclef-2021": (
            "fieldmark.worlds.layouts.birdclef_kaggle:write",
            "the same birds as Kaggle packs BirdCLEF 2021, rows of five seconds with their birds",
        ),
        "snakeclef-2020": (
            "fieldmark.worlds.layouts.snakeclef:write",
            "invented snakes as SnakeCLEF 2020 is released, with mimics, countries, boxes and the species of test",
        ),
        "plantclef-2020": (
            "fieldmark.worlds.layouts.plantclef:write",
            "invented plants as PlantCLEF 2020 is released: pressed on sheets, and alive in the field",
        ),
        "semi-inat-2021": (
            "fieldmark.worlds.layouts.semi:write_inat",
            "invented organisms as Semi-iNat 2021 is released: three kingdoms, few labels, many unlabeled photos",
        ),
        "semi-aves-2020": (
            "fieldmark.worlds.layouts.semi:write_aves",
            "invented animals as Semi-Aves 2020 is released: unlabeled photos in class and out of class",
        ),
        "geolifeclef-2020": (
            "fieldmark.worlds.layouts.geolifeclef:write",
            "an invented land as GeoLifeCLEF 2020 is released: two countries, 27 rasters each, patches, niches",
        ),
        **{
            f"geolifeclef-{year}": (
                f"fieldmark.worlds.layouts.surveys:WRITE_{year}",
                f"an invented land, surveyed, as GeoLifeCLEF {year} is released: surveys, records, numbers of places",
            )
            for year in (2023, 2024, 2025)
        },
        "fungiclef-2022": (
            "fieldmark.worlds.layouts.relaid:WRITE_FUNGI_2022",
            "the fungi of the world of FungiTastic as FungiCLEF 2022 is released",
        ),
        "fungiclef-2023": (
            "fieldmark.worlds.layouts.relaid:WRITE_FUNGI_2023",
            "the fungi of the world of FungiTastic as FungiCLEF 2023 is released",
        ),
        **{
            f"snakeclef-{year}": (
                f"fieldmark.worlds.layouts.relaid:WRITE_SNAKES_{year}",
                f"the snakes of the world of SnakeCLEF 2020 as SnakeCLEF {year} is released",
            )
            for year in (2021, 2022, 2023, 2024)
        },
        "plantclef-2021": (
            "fieldmark.worlds.layouts.relaid:WRITE_PLANTS_2021",
            "the plants of the world of PlantCLEF 2020 as they are",
        ),
        "plantclef-2022": (
            "fieldmark.worlds.layouts.relaid_plots:WRITE_PLANTS_2022",
            "the plants of the world of PlantCLEF 2020 as PlantCLEF 2022 is released: trusted photos, web photos",
        ),
        "plantclef-2024": (
            "fieldmark.worlds.layouts.relaid_plots:WRITE_PLOTS",
            "the plants of the world of PlantCLEF 2020: single plants, and photos of plots put together of them",
        ),
        "fathomnet-2025": (
            "fieldmark.worlds.layouts.relaid_plots:WRITE_FATHOMNET",
            "the snakes of the world of SnakeCLEF 2020 as FathomNet 2025 is released, names of two ranks",
        ),
        "fungitastic": (
            "fieldmark.worlds.layouts.fungitastic:write",
            "invented fungi as FungiTastic is released: full, Mini and few-shot, with every layer",
        ),
    },
)

# Worlds that can compute how likely each class is given the traits, item by item: the bound that no method can pass.
# Called with the size and the seed of the world.
POSTERIORS: Registry[Callable[[str, int], ClassPosterior]] = Registry(
    "posterior",
    {
        "fungitastic": (
            "fieldmark.worlds.layouts.fungitastic_posterior:open_posterior",
            "known and unknown species of test",
        ),
        "geolifeclef-2020": (
            "fieldmark.worlds.layouts.geolifeclef_posterior:open_posterior",
            "species at the places of test",
        ),
    },
)
