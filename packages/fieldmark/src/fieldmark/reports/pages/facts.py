"""What a release notes about an observation, as a reader would say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from fieldmark.reports.charts.maps import degrees
from fieldmark.tables.schema import ITEMS, RANKS

# Columns that are about the item or the answer, or that say again what others say. A page travels, so that who saw
# something is left out too.
NOT_CONTEXT = frozenset(
    ("item_id", "observation_id", "media_ids", "start_s", "end_s", "label", "scientific_name", "species", "poisonous",
     "year", "month", "day", "observer", "usage", "width_px", "height_px", "license_url", *RANKS)
)  # fmt: skip
# Whose photo it is, which is told but is no reason to tell about an observation.
RIGHTS = frozenset(("license", "rights_holder"))
# Columns that are told together with another.
TOLD_WITH = frozenset(("lat", "lon", "coordinate_uncertainty_m", "country", "region", "district"))
TITLES = {"elevation_m": "Elevation", "landcover": "Land cover", "meta_substrate": "Substrate group"}
VALUE_LENGTH = 140

# The classes of the International Geosphere-Biosphere Programme, as MODIS numbers them from 1.
LAND_COVER = (
    "evergreen needleleaf forest", "evergreen broadleaf forest", "deciduous needleleaf forest",
    "deciduous broadleaf forest", "mixed forest", "closed shrubland", "open shrubland", "woody savanna", "savanna",
    "grassland", "permanent wetland", "cropland", "urban and built-up land", "cropland and natural vegetation",
    "snow and ice", "barren", "water",
)  # fmt: skip


def context_columns(items: pl.DataFrame) -> list[str]:
    """The columns that say something about observations beyond their photos and labels, for at least one of them."""
    passed_over = NOT_CONTEXT | RIGHTS
    return [name for name in items.columns if name not in passed_over and items[name].is_not_null().any()]


def facts(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is known about one observation, in the order a reader would ask: when, where, on what, and the rest."""
    rows = [("Date", str(row["date"]) if row.get("date") is not None else ""), ("Place", place(row))]
    rows.append(("Region", ", ".join(str(row[name]) for name in ("district", "region", "country") if row.get(name))))
    declared = set(ITEMS.types)
    for name, value in row.items():
        if name not in NOT_CONTEXT and name not in TOLD_WITH and name not in declared and value is not None:
            rows.append((TITLES.get(name, _title(name)), _in_words(name, value)))
    return [(name, value) for name, value in rows if value]


def place(row: Mapping[str, Any]) -> str:
    """Coordinates, and how far off they may be.

    >>> place({"lat": 55.28044, "lon": 11.761377, "coordinate_uncertainty_m": 15.0})
    '55.2804°N 11.7614°E (±15 m)'
    """
    lat, lon, off = row.get("lat"), row.get("lon"), row.get("coordinate_uncertainty_m")
    if lat is None or lon is None:
        return ""
    around = "" if off is None else f" (±{off:,.0f} m)"
    return f"{degrees(round(lat, 4), 'N', 'S')} {degrees(round(lon, 4), 'E', 'W')}{around}"


def _in_words(name: str, value: Any) -> str:
    if name == "landcover" and isinstance(value, int) and 1 <= value <= len(LAND_COVER):
        return f"{LAND_COVER[value - 1]} (class {value})"
    if isinstance(value, float):
        unit = " m" if name.endswith("_m") else ""
        return f"{value:,.0f}{unit}" if unit else f"{value:.6g}"
    text = str(value)
    return text if len(text) <= VALUE_LENGTH else f"{text[: VALUE_LENGTH - 1]}…"


def _title(name: str) -> str:
    words = name.removesuffix("_m").replace("_", " ")
    return words[:1].upper() + words[1:]
