"""Regions, districts and zones of the invented country.

All of them are there before anybody looks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldmark_worlds.nature.kingdom import Codes, Floats
from fieldmark_worlds.nature.latin_names import Namer
from fieldmark_worlds.nature.nature import Nature

# Codes from XA to XZ are set aside for private use: no country will ever have one.
COUNTRY_CODE = "XF"
_REGIONS, _DISTRICTS = 5, 24


@dataclass(frozen=True)
class Regions:
    """Districts with their regions; every cell of the country belongs to the nearest district seat.

    Attributes:
        region: (cells,) name of the region of each cell.
        district: (cells,) name of the district of each cell.
        zone: (cells,) the biogeographical region of each cell.
    """

    region: tuple[str, ...]
    district: tuple[str, ...]
    zone: tuple[str, ...]


def divide(nature: Nature, rng: np.random.Generator) -> Regions:
    """Divides the country of a nature."""
    country, namer = nature.country, Namer(rng)
    seats = rng.choice(len(country), size=_DISTRICTS, replace=False)
    capitals = seats[:_REGIONS]
    district_of = _nearest(nature, np.arange(len(country)), seats)
    region_of_district = _nearest(nature, seats, capitals)
    regions = [namer.place() for _ in capitals]
    districts = [namer.place() for _ in seats]
    far_west = country.longitude < np.quantile(country.longitude, 0.25)
    zone = np.where(country.elevation_m > 480, "alpine", np.where(far_west, "atlantic", "continental"))
    return Regions(
        region=tuple(regions[region_of_district[district]] for district in district_of),
        district=tuple(districts[district] for district in district_of),
        zone=tuple(zone.tolist()),
    )


def _nearest(nature: Nature, cells: Codes, seats: Codes) -> Codes:
    latitude: Floats = nature.country.latitude[cells]
    distance = nature.country.squared_distance_deg2(latitude, nature.country.longitude[cells])[:, seats]
    nearest: Codes = distance.argmin(axis=1)
    return nearest
