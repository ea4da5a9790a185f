"""An invented country and its observers.

It lies in the open Atlantic, so that no simulated find is ever taken for a real one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldmark_worlds.nature.kingdom import Codes, Floats

SOUTH, NORTH, WEST, EAST = 42.0, 48.0, -34.0, -26.0
_ROWS, _COLUMNS = 36, 40
_LAND_SHARE = 0.7


@dataclass(frozen=True)
class Country:
    """The land of the country as a list of grid cells.

    Attributes:
        latitude: Center of each cell, degrees.
        longitude: Center of each cell, degrees.
        elevation_m: Mean height.
        temperature_c: Mean over the year.
        precipitation_mm: Sum over the year.
    """

    latitude: Floats
    longitude: Floats
    elevation_m: Floats
    temperature_c: Floats
    precipitation_mm: Floats

    cell_height_deg = (NORTH - SOUTH) / _ROWS
    cell_width_deg = (EAST - WEST) / _COLUMNS

    def __len__(self) -> int:
        return len(self.latitude)

    def squared_distance_deg2(self, latitude: Floats, longitude: Floats) -> Floats:
        """Returns (places, cells): squared distances with longitudes shortened as they are at this latitude."""
        shortening = np.cos(np.deg2rad((SOUTH + NORTH) / 2))
        south_north = latitude[:, None] - self.latitude[None, :]
        west_east = (longitude[:, None] - self.longitude[None, :]) * shortening
        squared: Floats = south_north**2 + west_east**2
        return squared


@dataclass(frozen=True)
class Observers:
    """People who report finds.

    Attributes:
        names: One per observer.
        activity: Share of all observations, long-tailed.
        travel: (observers, cells) how readily each is found in each cell, summing to one.
        blur_px: Softness of the observer's camera.
        noise: Standard deviation of its noise, as a share of full scale.
        warmth: Its white balance: above 0 redder, below 0 bluer.
        exposure: Its brightness, as a factor.
    """

    names: tuple[str, ...]
    activity: Floats
    travel: Floats
    blur_px: Floats
    noise: Floats
    warmth: Floats
    exposure: Floats


def grow_country(rng: np.random.Generator) -> Country:
    """Returns a country with a ragged coast, hills, a cold north and a wet west."""
    latitude = SOUTH + (np.arange(_ROWS) + 0.5) * (NORTH - SOUTH) / _ROWS
    longitude = WEST + (np.arange(_COLUMNS) + 0.5) * (EAST - WEST) / _COLUMNS
    lat, lon = (grid.ravel() for grid in np.meshgrid(latitude, longitude, indexing="ij"))
    from_center = np.hypot((lat - (SOUTH + NORTH) / 2) / 3.0, (lon - (WEST + EAST) / 2) / 4.0)
    shape = _rolling_field(rng, lat, lon) - 2.2 * from_center**2
    land = shape >= np.quantile(shape, 1 - _LAND_SHARE)
    hills = _rolling_field(rng, lat, lon)
    elevation = 700 / (1 + np.exp(-1.5 * (hills - 0.5)))
    temperature = 11.5 - 0.7 * (lat - (SOUTH + NORTH) / 2) - 0.0065 * elevation
    precipitation = 900 + 0.45 * elevation - 45 * (lon - (WEST + EAST) / 2) + 60 * _rolling_field(rng, lat, lon)
    return Country(lat[land], lon[land], elevation[land], temperature[land], precipitation[land])


def gather_observers(rng: np.random.Generator, country: Country, count: int) -> Observers:
    """Returns observers who mostly report near home; few of them report most."""
    activity = 1.0 / np.arange(1, count + 1) ** 0.8 * rng.lognormal(0, 0.3, count)
    homes = rng.choice(len(country), size=count)
    squared = country.squared_distance_deg2(country.latitude[homes], country.longitude[homes])
    reach = rng.uniform(0.3, 1.2, size=(count, 1))
    near = np.exp(-squared / (2 * reach**2))
    # Everybody travels now and then: without this share no observer could report a species that lives far from home.
    travel = 0.75 * near / near.sum(axis=1, keepdims=True) + 0.25 / len(country)
    return Observers(
        names=tuple(f"observer-{number:03d}" for number in rng.permutation(count) + 1),
        activity=activity / activity.sum(),
        travel=travel,
        blur_px=rng.gamma(2.0, 0.18, count),
        noise=rng.uniform(0.004, 0.02, count),
        warmth=rng.normal(0, 0.03, count),
        exposure=rng.lognormal(0, 0.08, count),
    )


def scatter(rng: np.random.Generator, country: Country, cells: Codes) -> tuple[Floats, Floats]:
    """Returns a latitude and a longitude within each of the cells."""
    latitude = country.latitude[cells] + rng.uniform(-0.5, 0.5, len(cells)) * Country.cell_height_deg
    longitude = country.longitude[cells] + rng.uniform(-0.5, 0.5, len(cells)) * Country.cell_width_deg
    return latitude, longitude


def _rolling_field(rng: np.random.Generator, lat: Floats, lon: Floats) -> Floats:
    """Returns a smooth random field of about unit variance: a sum of waves in all directions."""
    waves = 12
    direction = rng.uniform(0, 2 * np.pi, waves)
    frequency = rng.uniform(0.5, 2.2, waves)
    phase = rng.uniform(0, 2 * np.pi, waves)
    along = np.outer(lat, np.sin(direction) * frequency) + np.outer(lon, np.cos(direction) * frequency)
    field: Floats = np.sin(along + phase).sum(axis=1) * np.sqrt(2 / waves)
    return field
