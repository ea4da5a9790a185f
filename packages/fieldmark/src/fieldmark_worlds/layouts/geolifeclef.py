"""A small world in the layout of GeoLifeCLEF 2020.

```
ROOT/
  occurrences_{fr,us}_train.csv     id;lat;lon;species_id
  occurrences_{fr,us}_test.csv      id;lat;lon
  species_metadata.csv              species_id;GBIF_species_id;GBIF_species_name
  patches/<CD>/<AB>/<XXXXABCD>.npy  side x side x 5: red, green, blue, near infrared, land cover (uint8)
  patches/<CD>/<AB>/<XXXXABCD>_alti.npy                  side x side heights in meters (int16)
  rasters/<name>/<name>_{FR,USA}.tif                     27 layers: bio_1 to bio_19, and eight of soil
  test_labels.csv                   id;species_id: what only the organizers have
  WORLD.json                        what this is, how it was made, and how much there is
```

The frames are those of France and the contiguous United States in degrees; ids begin with 1 and 2. Two things are
smaller than in the release, so that a world fits on any disk: rasters are coarser, and patches of 256 m have 32 or 64
pixels a side where the release has 256. Quadrats of 5 km are cut as the organizers do it; a larger share of them is
test than the 2.5 % of the release in the smaller worlds, because few observations measure nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fieldmark.metrics.geo import adaptive_accuracy, adaptive_sets
from fieldmark.registry import require
from fieldmark.releases.geolifeclef.layers import NODATA
from fieldmark.splits.grids import organizers_quadrats, quadrat_names
from fieldmark.splits.quadrats import organizers_draw
from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.work.blocks import Executor
from fieldmark_worlds.land.land_cover import codes_of, pixel_degrees, seen_from_above
from fieldmark_worlds.land.terrain import BIOCLIMATE, COUNTRIES, LAYERS, CountryFrame, Terrain
from fieldmark_worlds.land.whole_land import Notes, WholeLand
from fieldmark_worlds.layouts.release_files import Size, extent_of, finding_rng, world_mark
from fieldmark_worlds.nature.kingdom import Codes, Floats

# Counts up whenever the same size and seed would give other files than before.
GENERATOR_VERSION = 1
QUADRAT_M = 5_000.0
# The rasters of the United States end here, so that some observations of the far south lie outside them.
US_RASTERS_FROM = 25.0
_PATCHES_AT_ONCE = 128


@dataclass(frozen=True)
class LandExtent:
    """How much of a world is written.

    Attributes:
        species: How many species there are.
        notes: How many observations there are in each country.
        towns: How many towns there are in each.
        degrees: How wide the cells of the rasters of climate are in each; those of soil are half as wide.
        side_px: How many pixels the side of a patch has.
        test: The share of the quadrats that is test.
    """

    species: int
    notes: tuple[int, int]
    towns: tuple[int, int]
    degrees: tuple[float, float]
    side_px: int
    test: float


EXTENTS: dict[Size, LandExtent] = {
    "tiny": LandExtent(120, (350, 350), (6, 8), (0.2, 0.5), 32, 0.15),
    "small": LandExtent(400, (4_000, 6_000), (24, 40), (0.1, 0.2), 32, 0.10),
    "medium": LandExtent(3_000, (30_000, 50_000), (80, 160), (0.04, 0.08), 64, 0.025),
}


@dataclass(frozen=True)
class WrittenNotes:
    """The observations of a world as they are written.

    Attributes:
        table: `id, lat, lon, species, country, quadrat, part`, in the order of the notes.
        notes: What was noted.
    """

    table: pl.DataFrame
    notes: Notes


def write(
    out: Path, *, size: Size = "tiny", seed: int = 0, overwrite: bool = False, executor: Executor | None = None
) -> dict[str, object]:
    """Writes a world of the given size.

    Args:
        out: The root to be; it appears when complete.
        size: How much: 700, 10,000 or 80,000 observations of 120, 400 or 3,000 species.
        seed: Another seed is another land.
        overwrite: Whether an existing folder is replaced.
        executor: Taken for the sake of other worlds; patches are made in this process.

    Returns:
        The content of `WORLD.json`.
    """
    return write_extent(out, extent_of(EXTENTS, size), size, seed=seed, overwrite=overwrite)


def write_extent(out: Path, extent: LandExtent, size: str, *, seed: int, overwrite: bool = False) -> dict[str, object]:
    """The same for an extent of one's own, under the name of a size."""
    land = grow_land(extent, seed)
    written = note_down(land, extent, seed)
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        _write_tables(root, land, written)
        for terrain, degrees in zip(land.terrains, extent.degrees, strict=True):
            _write_rasters(root / "rasters", terrain, degrees)
        _write_patches(root / "patches", land, written, extent.side_px, seed)
        parts = {part: written.table.filter(pl.col("part") == part) for part in ("train", "test")}
        about: dict[str, object] = {
            "counts": {part: _counts(table) for part, table in parts.items()},
            "patch_side_px": extent.side_px,
            "test_quadrats": extent.test,
            "best_possible": _best_possible(land, written),
        }
        mark = world_mark("geolifeclef-2020", size=size, seed=seed, generator_version=GENERATOR_VERSION, about=about)
        mark["note"] = _NOTE
        write_json(root / "WORLD.json", mark)
    return mark


_NOTE = (
    "Simulated. These species do not exist; nothing measured here says how well a method does on real places. "
    "best_possible is what the exact probability of each species at a place reaches on test: no method can be expected "
    "to do better."
)


def grow_land(extent: LandExtent, seed: int) -> WholeLand:
    """The land of a world; seconds at most, and nothing is written."""
    return WholeLand.grown(species=extent.species, towns=extent.towns, seed=seed)


def note_down(land: WholeLand, extent: LandExtent, seed: int) -> WrittenNotes:
    """What is noted in both countries, with ids, quadrats and parts."""
    rng = finding_rng(seed)
    notes = [land.noted(number, country, rng) for country, number in enumerate(extent.notes)]
    together = Notes(
        *(
            np.concatenate([getattr(one, name) for one in notes])
            for name in ("country", "latitude", "longitude", "cover", "species")
        )
    )
    ids = np.concatenate(
        [
            one.digit * 10_000_000 + rng.choice(10_000_000, size=number, replace=False)
            for one, number in zip(COUNTRIES, extent.notes, strict=True)
        ]
    )
    quadrat = quadrat_names(*organizers_quadrats(together.latitude, together.longitude, QUADRAT_M))
    in_test = organizers_draw(quadrat, extent.test)
    table = pl.DataFrame(
        {
            "id": ids,
            "lat": together.latitude,
            "lon": together.longitude,
            "species": together.species,
            "country": [COUNTRIES[one].code for one in together.country],
            "quadrat": quadrat,
            "part": np.where(in_test, "test", "train"),
        }
    )
    return WrittenNotes(table, together)


def _write_tables(root: Path, land: WholeLand, written: WrittenNotes) -> None:
    table = written.table.with_columns(pl.col("species").alias("species_id"))
    for country in COUNTRIES:
        own = table.filter(pl.col("country") == country.code)
        train, test = (own.filter(pl.col("part") == part) for part in ("train", "test"))
        columns = ["id", "lat", "lon", "species_id"]
        train.select(columns).write_csv(root / f"occurrences_{country.code}_train.csv", separator=";")
        test.select(columns[:3]).write_csv(root / f"occurrences_{country.code}_test.csv", separator=";")
    hidden = table.filter(pl.col("part") == "test").select("id", "species_id").sort("id")
    hidden.write_csv(root / "test_labels.csv", separator=";")
    # Ids that GBIF has not given to anybody.
    names = pl.DataFrame(
        {
            "species_id": np.arange(len(land.flora)),
            "GBIF_species_id": 900_000_000 + np.arange(len(land.flora)),
            "GBIF_species_name": land.flora.names,
        }
    )
    names.write_csv(root / "species_metadata.csv", separator=";")


def _write_rasters(root: Path, terrain: Terrain, degrees: float) -> None:
    for kind, cell in (("bio", degrees), ("soil", degrees / 2)):
        names = BIOCLIMATE if kind == "bio" else LAYERS[len(BIOCLIMATE) :]
        frame = terrain.country
        south = max(frame.south, US_RASTERS_FROM) if frame.code == "us" else frame.south
        rows, columns = round((frame.north - south) / cell), round((frame.east - frame.west) / cell)
        lat: Floats = frame.north - (np.arange(rows, dtype=np.float64) + 0.5) * cell
        lon: Floats = frame.west + (np.arange(columns, dtype=np.float64) + 0.5) * cell
        values, land = _layer_values(terrain, lat, lon)
        for number, name in enumerate(LAYERS):
            if name in names:
                grid = np.where(land, np.round(values[number]), NODATA[name]).reshape(rows, columns)
                _write_raster(root / name / f"{name}_{frame.raster}.tif", grid, frame, cell)


def _layer_values(terrain: Terrain, lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
    values, land = [], []
    for latitude in lat:  # a row at a time: memory must not grow with the land
        ground = terrain.at(np.full(len(lon), latitude), lon)
        values.append(ground.layers())
        land.append(ground.land > 0)
    return np.concatenate(values, axis=1), np.concatenate(land)


def _write_raster(path: Path, grid: Floats, frame: CountryFrame, cell: float) -> None:
    rasterio: Any = require("rasterio", "Writing rasters")
    path.parent.mkdir(parents=True, exist_ok=True)
    transform = rasterio.Affine(cell, 0.0, frame.west, 0.0, -cell, frame.north)
    profile = {"driver": "GTiff", "height": grid.shape[0], "width": grid.shape[1], "count": 1, "crs": "EPSG:4326"}
    dtype = "int32" if NODATA[path.parent.name] < np.iinfo(np.int16).min else "int16"
    with rasterio.open(path, "w", dtype=dtype, transform=transform, **profile) as file:
        file.write(grid.astype(dtype), 1)


def _write_patches(root: Path, land: WholeLand, written: WrittenNotes, side_px: int, seed: int) -> None:
    ids, notes = written.table["id"].cast(pl.String).to_list(), written.notes
    for country in range(len(COUNTRIES)):
        rows = np.flatnonzero(notes.country == country)
        for start in range(0, len(rows), _PATCHES_AT_ONCE):
            block = rows[start : start + _PATCHES_AT_ONCE]
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3500, country, start)))
            colors, heights = patches_of(land, notes, block, country, side_px, rng)
            for row, color, height in zip(block, colors, heights, strict=True):
                own = ids[row]
                folder = root / own[-2:] / own[-4:-2]
                folder.mkdir(parents=True, exist_ok=True)
                np.save(folder / f"{own}.npy", color)
                np.save(folder / f"{own}_alti.npy", height)


def patches_of(
    land: WholeLand, notes: Notes, rows: Codes, country: int, side_px: int, rng: np.random.Generator
) -> tuple[Any, Any]:
    """(rows, side, side, 5) imagery and land cover, and (rows, side, side) heights, around some of the notes."""
    lat, lon = notes.latitude[rows], notes.longitude[rows]
    ground = land.terrains[country].at(lat, lon)
    cover = land.covers[country].around(lat, lon, ground, side_px)
    colors = seen_from_above(cover, rng)
    north, east = pixel_degrees(lat, side_px)
    heights = land.terrains[country].heights_around(lat, lon, ground, north, east)
    codes = codes_of(cover, country)[..., None]
    return np.concatenate([colors, codes], axis=3), np.round(heights).astype(np.int16)


def _counts(table: pl.DataFrame) -> dict[str, int]:
    return {
        "observations": table.height,
        "species": table["species"].n_unique(),
        "quadrats": table["quadrat"].n_unique(),
    }


def _best_possible(land: WholeLand, written: WrittenNotes) -> dict[str, float]:
    """What the exact probability of each species at a place gets right on test."""
    rows = np.flatnonzero((written.table["part"] == "test").to_numpy())
    notes = written.notes
    kept = Notes(*(getattr(notes, name)[rows] for name in ("country", "latitude", "longitude", "cover", "species")))
    blocks = list(land.probabilities_of(kept))
    truth = np.concatenate([kept.species[own] for own, _ in blocks])
    scores = [block.astype(np.float32) for _, block in blocks]
    sets = adaptive_sets(scores, truth, k=30)
    ranks = np.concatenate(
        [(block > block[np.arange(len(own)), kept.species[own]][:, None]).sum(axis=1) for own, block in blocks]
    )
    return {
        "test_adaptive_top_30": round(adaptive_accuracy(sets), 4),
        "test_recall_at_30": round(float((ranks < 30).mean()), 4),
        "test_top_1": round(float((ranks < 1).mean()), 4),
    }
