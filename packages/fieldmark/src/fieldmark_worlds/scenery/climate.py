"""Weather of the invented country: monthly series at the places of finds, and what is typical there.

The typical year follows from the place: cold in winter, wettest in autumn. Years differ from it together, since they
are warm or wet all over the country, and every place a little on its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from fieldmark_worlds.nature.kingdom import Floats

CLIMATE_YEARS = tuple(range(2000, 2020))
VARIABLES = ("tas", "tasmin", "tasmax", "pr")

_MONTHS = 12
_WARMEST_MONTH, _WETTEST_MONTH = 6.5, 9.5
_QUARTER = 3


class Normals(NamedTuple):
    """A typical year at each place, each (n, 12): mean, least and greatest temperature in °C, and rain in mm."""

    tas: Floats
    tasmin: Floats
    tasmax: Floats
    pr: Floats


def climate_table(places: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Returns the climate of places: a column per variable, year and month, then `bio1` to `bio19`, by `observationID`.

    Args:
        places: `observationID, temperature_c, precipitation_mm, longitude`, one row per place.
        rng: The weather.
    """
    normals = _normals(*(places[name].to_numpy() for name in ("temperature_c", "precipitation_mm", "longitude")))
    series = _series(normals, len(places), rng)
    columns = {
        f"{variable}_{year}_{month + 1:02d}": series[variable][:, y, month]
        for variable in VARIABLES
        for y, year in enumerate(CLIMATE_YEARS)
        for month in range(_MONTHS)
    }
    columns |= {f"bio{number}": values for number, values in enumerate(bioclimatic(normals), start=1)}
    return pl.DataFrame({"observationID": places["observationID"], **columns})


def _normals(temperature: Floats, precipitation: Floats, longitude: Floats) -> Normals:
    month = np.arange(_MONTHS) + 0.5
    warmth = np.cos(2 * np.pi * (month - _WARMEST_MONTH) / _MONTHS)
    # The sea evens out the year: its effect fades toward the east.
    swing = 6.5 + 0.35 * (longitude[:, None] + 34)
    mean = temperature[:, None] + swing * warmth
    half_day = 3.2 + 1.2 * warmth
    wetness = 1 + 0.35 * np.cos(2 * np.pi * (month - _WETTEST_MONTH) / _MONTHS)
    return Normals(mean, mean - half_day, mean + half_day, precipitation[:, None] / _MONTHS * wetness)


def _series(normals: Normals, places: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Returns (n, years, 12) per variable; the warmer the year, the later it is, on the whole."""
    years = len(CLIMATE_YEARS)
    warming = np.linspace(-0.3, 0.3, years)[:, None]
    shared = warming + rng.normal(0, 1.3, (years, _MONTHS))
    anomaly = shared + rng.normal(0, 0.3, (places, years, _MONTHS))
    widening = np.abs(rng.normal(0, 0.4, (places, years, _MONTHS)))
    wet_shared = rng.gamma(6.0, 1 / 6, (years, _MONTHS))
    wet = wet_shared * rng.lognormal(0, 0.12, (places, years, _MONTHS))
    return {
        "tas": normals.tas[:, None] + anomaly,
        "tasmin": normals.tasmin[:, None] + anomaly - widening,
        "tasmax": normals.tasmax[:, None] + anomaly + widening,
        "pr": normals.pr[:, None] * wet,
    }


def bioclimatic(normals: Normals) -> list[Floats]:
    """Returns the 19 bioclimatic variables of typical years, each (n,), in their usual order."""
    tas, low, high, pr = normals
    warm, wet = _quarters(tas) / _QUARTER, _quarters(pr)
    place = np.arange(len(tas))
    wettest, driest, warmest, coldest = wet.argmax(1), wet.argmin(1), warm.argmax(1), warm.argmin(1)
    daily_range = (high - low).mean(axis=1)
    yearly_range = high.max(axis=1) - low.min(axis=1)
    return [
        tas.mean(axis=1),
        daily_range,
        100 * daily_range / yearly_range,
        100 * tas.std(axis=1, ddof=1),
        high.max(axis=1),
        low.min(axis=1),
        yearly_range,
        *(warm[place, quarter] for quarter in (wettest, driest, warmest, coldest)),
        pr.sum(axis=1),
        pr.max(axis=1),
        pr.min(axis=1),
        100 * pr.std(axis=1, ddof=1) / pr.mean(axis=1),
        *(wet[place, quarter] for quarter in (wettest, driest, warmest, coldest)),
    ]


def _quarters(monthly: Floats) -> Floats:
    """Returns (n, 12) sums over three months, beginning with each month in turn."""
    return np.asarray(monthly + np.roll(monthly, -1, axis=1) + np.roll(monthly, -2, axis=1))
