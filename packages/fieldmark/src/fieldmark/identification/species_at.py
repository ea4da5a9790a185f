"""Which species are to be expected at a place: the checklist of a fitted model."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.errors import MisuseError
from fieldmark.methods.places.extrapolation import Extrapolation
from fieldmark.models.place_models import PlaceModel

SIMULATED = "The model was fitted to a simulated world: this is a demonstration, and no checklist of any real place."


@dataclass(frozen=True)
class Expected:
    """One species on a checklist.

    Args:
        label: What the model calls it.
        species: Its scientific name, where that is another one.
        probability: P(species | place): of being the next record there, or of being found where somebody looks; None
            where records of presences do not tell how common it is.
        ratio: How many times as likely it is there as elsewhere.
    """

    label: str
    species: str | None
    probability: float | None
    ratio: float


@dataclass(frozen=True)
class PlaceChecklist:
    """The species to be expected at a place, likeliest first.

    Args:
        lat: Latitude in degrees.
        lon: Longitude in degrees.
        date: The day, where it was told and the model reads it.
        species: The species.
        n_known: How many species the model knows.
        extrapolation: How far the place lies from what the model has learned from.
        warnings: Where to be careful, one sentence each.
        remarks: What else to know, one sentence each.
    """

    lat: float
    lon: float
    date: datetime.date | None
    species: tuple[Expected, ...]
    n_known: int
    extrapolation: Extrapolation
    warnings: tuple[str, ...]
    remarks: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "lat": self.lat,
            "lon": self.lon,
            "date": None if self.date is None else self.date.isoformat(),
            "species": [
                {
                    "label": one.label,
                    "species": one.species,
                    "probability": None if one.probability is None else round(one.probability, 6),
                    "ratio": round(one.ratio, 4),
                }
                for one in self.species
            ],
            "species_known": self.n_known,
            "extrapolates": self.extrapolation.is_outside or self.extrapolation.is_far,
            "similarity": round(self.extrapolation.similarity, 1),
            "nearest_record_km": _number(self.extrapolation.distance_km),
            "usual_km": _number(self.extrapolation.usual_km),
            "warnings": list(self.warnings),
            "remarks": list(self.remarks),
        }


def species_at(
    lat: float,
    lon: float,
    model: str | Path,
    *,
    date: datetime.date | None = None,
    top: int = 20,
    data: str | Path | None = None,
) -> PlaceChecklist:
    """The species that a fitted model expects at a place.

    Args:
        lat: Latitude in degrees.
        lon: Longitude in degrees.
        model: The folder of a model of places, or of the run that made it.
        date: The day, for models that read dates.
        top: The number of species.
        data: The root of the release whose maps the model reads, if not the one it was fitted to.

    Raises:
        InputError: When there is no model, or the maps that it reads are not there.
        MisuseError: For an impossible place, a model of something else, or a date for one that reads none.
    """
    if not (-90 <= lat <= 90 and -180 <= lon <= 180):
        raise MisuseError(f"No such place: {lat:g}, {lon:g}: expected a latitude, then a longitude, in degrees.")
    opened = PlaceModel.open(model, "" if data is None else str(data))
    if date is not None and "date" not in opened.method.names:
        read = ", ".join(opened.method.names) or "coordinates"
        raise MisuseError(f"The model does not read dates (it reads {read}): leave --date out.")
    asked = pl.DataFrame({"lat": [lat], "lon": [lon], **({} if date is None else {"date": [date]})})
    points, remarks = opened.points(asked)
    ratios, chances = opened.log_ratios(points)[0], opened.chances(points)[0]
    knows_chances = not opened.method.several or bool(opened.arrays["survey"][0])
    best = np.argsort(-(chances if knows_chances else ratios), kind="stable")[:top]
    strange = opened.extrapolations(points)[0]
    named = [
        Expected(
            opened.model.labels.names[code],
            _other_name(opened, int(code)),
            float(chances[code]) if knows_chances else None,
            float(np.exp(ratios[code])),
        )
        for code in best
    ]
    warnings = extrapolation_warnings(opened, strange)
    if opened.model.simulated:
        remarks = (*remarks, SIMULATED)
    return PlaceChecklist(lat, lon, date, tuple(named), len(opened.model.labels), strange, warnings, remarks)


def _other_name(opened: PlaceModel, code: int) -> str | None:
    species = opened.model.taxonomy.taxon(code, "species")
    return species if species and species != opened.model.labels.names[code] else None


def extrapolation_warnings(opened: PlaceModel, strange: Extrapolation) -> tuple[str, ...]:
    """Where the model answers about what it has not seen."""
    found = []
    if strange.is_outside:
        names = opened.covariates
        name = names[strange.covariate] if strange.covariate < len(names) else "a covariate"
        found.append(
            f"EXTRAPOLATION: {name} lies outside of everything the model has learned from, by "
            f"{-strange.similarity:.0f} % of its range. The list is a guess."
        )
    if strange.is_far:
        found.append(
            f"FAR AWAY: the nearest record the model has learned from is {strange.distance_km:,.0f} km away; 99 of 100 "
            f"records have another one within {strange.usual_km:,.1f} km."
        )
    return tuple(found)


def _number(value: float) -> float | None:
    return round(value, 3) if np.isfinite(value) else None
