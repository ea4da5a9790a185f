"""What GeoLifeCLEF tells of a place besides coordinates: rasters by country, patches by id, vectors by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.releases.environment import EnvironmentColumns
from fieldmark.releases.geolifeclef.tables import COUNTRIES, DIGIT_OF, GeoEdition
from fieldmark.releases.gridded import PatchFiles, PlaceTable, Rasters
from fieldmark.storage.release import Release
from fieldmark.tables.inputs import KeyedBy, Layer
from fieldmark.tables.reader import read_csv

BIOCLIMATE: Final = tuple(f"bio_{number}" for number in range(1, 20))
SOIL: Final = ("bdticm", "bldfie", "cecsol", "clyppt", "orcdrc", "phihox", "sltppt", "sndppt")
LAYERS: Final = (*BIOCLIMATE, *SOIL)
# The value that stands for nothing; the rasters themselves do not say.
NODATA: Final = {name: -2_147_483_647.0 if name.startswith("bio") or name == "bdticm" else -32_768.0 for name in LAYERS}
# East of it lies France, west of it the United States: how the organizers choose between the rasters of a layer.
BORDER_LONGITUDE: Final = -10.0
LANDCOVER_CODES: Final = 34
VECTORS_FILE: Final = "pre-extracted/environmental_vectors.csv"
_RASTER_FOLDERS: Final = ("rasters", "", "rasters_2020")


@dataclass(frozen=True, eq=False)
class CountryRasters(Layer):
    """The 27 rasters of both countries at the places of observations.

    Args:
        france, states: The rasters of each country; None where the release has none.
        places: Latitude and longitude of each observation.
        names: The layers, in the order of the values.
        side_px: The side of the square around a place that `read` gives, in cells.
    """

    france: Rasters | None
    states: Rasters | None
    places: PlaceTable
    names: tuple[str, ...]
    side_px: int = 1
    input: ClassVar[str] = "environment"
    by: ClassVar[KeyedBy] = "observation_id"

    @classmethod
    def find(cls, release: Release, observations: pl.DataFrame) -> CountryRasters | None:
        """The rasters of a release; None where there are none."""
        folder = raster_folder(release)
        if folder is None:
            return None
        places, of_country = PlaceTable.of(observations), {}
        for code, name in COUNTRIES.items():
            paths = {layer: f"{folder}/{layer}/{layer}_{name}.tif".lstrip("/") for layer in LAYERS}
            there = {layer: path for layer, path in paths.items() if release.exists(path)}
            nodata = {path: NODATA[layer] for layer, path in there.items()}
            of_country[code] = Rasters(release, tuple(there.values()), places, nodata=nodata) if there else None
        france, states = of_country["fr"], of_country["us"]
        named = {path.rpartition("/")[2].rpartition("_")[0] for one in (france, states) if one for path in one.paths}
        return cls(france, states, places, tuple(layer for layer in LAYERS if layer in named))

    def numbers(self, ids: Sequence[str]) -> NDArray[np.float64]:
        """One row for each id, NaN where a layer has no value."""
        return self._values(ids, 1)[:, :, 0, 0].astype(np.float64)

    def read(self, ids: Sequence[str]) -> list[NDArray[np.float32] | None]:
        """Layers x side x side around each place; None where no layer has a value."""
        return [None if np.isnan(one).all() else one for one in self._values(ids, self.side_px)]

    def outside(self, ids: Sequence[str]) -> NDArray[np.bool_]:
        """Which of some observations lie beyond the edges of the rasters of their country, for at least one layer."""
        lat, lon = self.places.coordinates(ids)
        found = np.zeros(len(lat), dtype=np.bool_)
        for rasters, own in self._countries(lon):
            if rasters is None:
                found |= own
                continue
            beyond = np.zeros(int(own.sum()), dtype=np.bool_)
            for _, places in rasters.ordered(lat[own], lon[own]):
                beyond |= places.outside
            found[own] |= beyond
        return found

    def _values(self, ids: Sequence[str], side_px: int) -> NDArray[np.float32]:
        lat, lon = self.places.coordinates(ids)
        found = np.full((len(lat), len(self.names), side_px, side_px), np.nan, dtype=np.float32)
        for rasters, own in self._countries(lon):
            if rasters is None or not own.any():
                continue
            layers = [path.rpartition("/")[2].rpartition("_")[0] for path in rasters.paths]
            columns = [self.names.index(layer) for layer in layers]
            found[np.ix_(np.flatnonzero(own), np.array(columns))] = rasters.at(lat[own], lon[own], side_px)
        return found

    def _countries(self, lon: NDArray[np.float64]) -> list[tuple[Rasters | None, NDArray[np.bool_]]]:
        in_france = lon > BORDER_LONGITUDE
        return [(self.france, in_france), (self.states, ~in_france & np.isfinite(lon))]


def raster_folder(release: Release) -> str | None:
    """The folder that holds a folder for each layer; None where there is none."""
    others = [name for name in release.folders() if "raster" in name.lower()]
    for folder in dict.fromkeys((*_RASTER_FOLDERS, *others)):
        if any(layer in release.folders(folder) for layer in ("bio_1", "bdticm")):
            return folder
    return None


@dataclass(frozen=True)
class CountryPatches(PatchFiles):
    """Patches on disk in a folder for each country, by the first digit of the id.

    Args:
        folders: The folder of each country, by that digit; those of `folder` where a country has none of its own.
    """

    folders: Mapping[str, str] = None  # type: ignore[assignment]

    def path(self, observation_id: str) -> str:
        folder = self.folders.get(observation_id[:1], self.folder)
        inside = f"{observation_id[-2:]}/{observation_id[-4:-2]}/{observation_id}{self.suffix}"
        return f"{folder}/{inside}" if folder else inside


def patch_layers(release: Release, edition: GeoEdition) -> dict[str, Layer]:
    """The layers of patches: imagery, land cover and altitude; none where the release has no patches."""
    folders = {}
    for code, candidates in edition.patches.items():
        found = next((one for one in candidates if _holds_patches(release, one)), None)
        if found is not None:
            folders[DIGIT_OF[code]] = found
    if not folders:
        return {}
    some = next(iter(folders.values()))

    def of(suffix: str, name: str, **options: object) -> CountryPatches:
        return CountryPatches(release, some, suffix, name, folders=folders, **options)  # type: ignore[arg-type]

    codes = {"code_bands": (0,), "codes": LANDCOVER_CODES}
    if edition.year == 2020:
        return {
            "satellite": of(".npy", "satellite", bands=(0, 1, 2, 3)),
            "landcover": of(".npy", "landcover", bands=(4,), **codes),
            "altitude": of("_alti.npy", "elevation"),
        }
    return {
        "satellite": of("_rgb.jpg", "satellite"),
        "near_infrared": of("_near_ir.jpg", "satellite"),
        "landcover": of("_landcover.tif", "landcover", **codes),
        "altitude": of("_altitude.tif", "elevation"),
    }


def _holds_patches(release: Release, folder: str) -> bool:
    return any(len(name) == 2 and name.isdigit() for name in release.folders(folder))


def read_vectors(release: Release) -> EnvironmentColumns | None:
    """The values that the organizers took out of the rasters (2021 and 2022); None where there are none.

    Raises:
        InputError: When the table has no column of a layer, or a value is no number.
    """
    if not release.exists(VECTORS_FILE):
        return None
    where = release.where(VECTORS_FILE)
    with release.open(VECTORS_FILE) as file:
        table = read_csv(file, where, required=("observation_id",), separator=";")
    names = [name for name in LAYERS if name in table.columns]
    if not names:
        raise InputError(where, line=1, found=f"the columns {', '.join(table.columns)}", expected="bio_1 and others")
    numbers = table.select(pl.col(name).cast(pl.Float64, strict=False).fill_nan(None) for name in names)
    for name in names:
        text = table[name].str.to_lowercase()
        wrong = (numbers[name].is_null() & text.is_not_null() & ~text.is_in(["", "nan"])).arg_true()
        if len(wrong):
            row = int(wrong[0])
            raise InputError(where, line=row + 2, found=f"{table[name][row]!r} as {name}", expected="a number")
    return EnvironmentColumns.of(numbers.with_columns(table["observation_id"]), names)
