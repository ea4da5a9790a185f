"""Observations on a map: small panels of the same stretch of land, with a graticule and nothing from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, radians, sqrt

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from fieldmark.reports.charts import heat
from fieldmark.reports.charts.plots import BLUE, GREEN, HEAT, INK, ORANGE, WASH
from fieldmark.reports.markup import counted

# The colors of parts where they share a map.
HELD_OUT = {"train": BLUE, "val": GREEN, "test": ORANGE}
KM_PER_DEGREE = 111.32
# Up to here every observation is a dot; beyond, hexagons count them.
MOST_DOTS = 1500
FEW_DOTS = 400
LARGE_DOT, SMALL_DOT = 5.5, 3.6
HEXAGONS_ACROSS = 34
CELLS_ACROSS = 30
# A single place still needs some land around it.
LEAST_DEGREES = 0.02
MARGIN = 0.06
# Height of a panel by its width: flatter or taller stretches are given more land around them.
FLATTEST, TALLEST = 0.55, 1.35
# Where the cosine varies more than this across the map, no single bar tells distances.
MOST_DEGREES_FOR_SCALE = 30


@dataclass(frozen=True)
class MapPoints:
    """Where the observations of a part were made, in degrees."""

    lat: NDArray[np.float64]
    lon: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.lat)


@dataclass(frozen=True)
class MapExtent:
    """The stretch of land that a map shows, in degrees."""

    west: float
    east: float
    south: float
    north: float

    @classmethod
    def around(cls, places: Mapping[str, MapPoints]) -> MapExtent:
        """The smallest stretch of a fair shape that holds all places, with a margin."""
        lat = np.concatenate([one.lat for one in places.values()])
        lon = np.concatenate([one.lon for one in places.values()])
        middle = float(lat.min() + lat.max()) / 2, float(lon.min() + lon.max()) / 2
        shrink = _shrink(middle[0])
        tall = max(float(np.ptp(lat)), LEAST_DEGREES) * (1 + 2 * MARGIN)
        wide = max(float(np.ptp(lon)) * shrink, LEAST_DEGREES) * (1 + 2 * MARGIN)
        tall, wide = max(tall, wide * FLATTEST), max(wide, tall / TALLEST)
        return cls(
            middle[1] - wide / shrink / 2, middle[1] + wide / shrink / 2, middle[0] - tall / 2, middle[0] + tall / 2
        )

    @property
    def shrink(self) -> float:
        """How much shorter a degree of longitude is than one of latitude, in the middle of the map."""
        return _shrink((self.south + self.north) / 2)

    @property
    def shape(self) -> float:
        """Height by width, as drawn."""
        return (self.north - self.south) / ((self.east - self.west) * self.shrink)

    @property
    def scale_km(self) -> float | None:
        """A round length of about a quarter of the width; None where the map is too large for one."""
        if self.north - self.south > MOST_DEGREES_FOR_SCALE:
            return None
        quarter = (self.east - self.west) * self.shrink * KM_PER_DEGREE / 4
        power = 10.0 ** np.floor(np.log10(quarter))
        return float(power * max(digit for digit in (1, 2, 5) if digit * power <= quarter))


def uses_dots(places: Mapping[str, MapPoints]) -> bool:
    """Whether there are few enough observations to draw each."""
    return sum(len(one) for one in places.values()) <= MOST_DOTS


def paint_map(figure: Figure, *, places: Mapping[str, MapPoints], starts: tuple[int, ...] | None) -> None:
    """One panel per part.

    Args:
        figure: An empty figure.
        places: The observations of each part.
        starts: The steps of counts for hexagons (`most_in_hexagon` tells the largest); None for dots.
    """
    extent = MapExtent.around(places)
    panels = figure.subplots(1, len(places), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (part, one) in zip(panels, places.items(), strict=True):
        frame_map(axes, extent)
        axes.set_title(f"{part}: {counted(len(one), 'observation')}", fontsize=12.5)
        if starts is None:
            size = LARGE_DOT if sum(map(len, places.values())) <= FEW_DOTS else SMALL_DOT
            axes.plot(one.lon, one.lat, "o", color=BLUE, markersize=size, alpha=0.55, markeredgewidth=0)
        else:
            cells = _hexagons(axes, one, extent)
            counts = np.asarray(cells.get_array()).astype(np.int64)
            cells.set_array(None)
            cells.set_facecolor([HEAT[step] for step in heat.steps(counts, starts)])
    if extent.scale_km is not None:
        _scale_bar(panels[0], extent, extent.scale_km)


def paint_held_out(figure: Figure, *, regions: Mapping[str, Mapping[str, MapPoints]]) -> None:
    """One panel per region: what was learned from in blue, val in green, test on top in orange.

    Args:
        figure: An empty figure.
        regions: For each region the places of each part, in the order in which they are painted.
    """
    extents = {name: MapExtent.around(parts) for name, parts in regions.items()}
    widths = [extent.shape**-1 for extent in extents.values()]
    panels = figure.subplots(1, len(regions), squeeze=False, width_ratios=widths)[0]
    for axes, (name, parts) in zip(panels, regions.items(), strict=True):
        frame_map(axes, extents[name])
        axes.set_title(name, fontsize=12.5)
        many = sum(map(len, parts.values())) > FEW_DOTS
        for part, one in parts.items():
            size = 2.2 if many and part == "train" else SMALL_DOT
            # A picture inside the drawing: a dot for each of a hundred thousand quadrats would fill the page.
            axes.plot(
                one.lon, one.lat, "o", color=HELD_OUT[part], markersize=size, alpha=0.75, markeredgewidth=0,
                rasterized=len(one) > MOST_DOTS, zorder=2 + list(HELD_OUT).index(part),
            )  # fmt: skip
        scale = extents[name].scale_km
        if scale is not None:
            _scale_bar(axes, extents[name], scale)


def most_in_hexagon(places: Mapping[str, MapPoints]) -> int:
    """The largest count that a hexagon of the map holds."""
    extent = MapExtent.around(places)
    axes = Figure().subplots()
    return max(int(np.max(np.asarray(_hexagons(axes, one, extent).get_array()))) for one in places.values())


def species_per_cell(places: MapPoints, species: NDArray[np.integer]) -> tuple[NDArray[np.int64], MapExtent]:
    """How many species were met in each cell of a grid, (rows from south, columns from west), and its extent."""
    extent = MapExtent.around({"": places})
    shape = max(round(CELLS_ACROSS * extent.shape), 1), CELLS_ACROSS
    row = (places.lat - extent.south) / (extent.north - extent.south) * shape[0]
    column = (places.lon - extent.west) / (extent.east - extent.west) * shape[1]
    met = np.unique(np.column_stack([row.astype(np.int64), column.astype(np.int64), species]), axis=0)
    cells = np.zeros(shape, dtype=np.int64)
    np.add.at(cells, (met[:, 0], met[:, 1]), 1)
    return cells, extent


def paint_species(figure: Figure, *, cells: NDArray[np.int64], extent: MapExtent, starts: tuple[int, ...]) -> None:
    """A grid of cells, darker the more species were met there."""
    axes = figure.subplots()
    step = np.ma.masked_array(heat.steps(np.maximum(cells, 1), starts), mask=cells == 0)
    edges = [np.linspace(*ends, number + 1) for ends, number in zip(_ends(extent), cells.shape[::-1], strict=True)]
    axes.pcolormesh(*edges, step, cmap=ListedColormap(HEAT), vmin=-0.5, vmax=len(HEAT) - 0.5, zorder=2)
    frame_map(axes, extent)
    axes.set_title("Species met in each cell")


def _ends(extent: MapExtent) -> tuple[tuple[float, float], tuple[float, float]]:
    return (extent.west, extent.east), (extent.south, extent.north)


def _shrink(lat: float) -> float:
    return max(cos(radians(lat)), 0.1)


def _hexagons(axes: Axes, one: MapPoints, extent: MapExtent) -> PolyCollection:
    high = max(round(HEXAGONS_ACROSS * extent.shape / sqrt(3)), 1)
    return axes.hexbin(
        one.lon,
        one.lat,
        gridsize=(HEXAGONS_ACROSS, high),
        extent=(extent.west, extent.east, extent.south, extent.north),
        mincnt=1,
        linewidths=0.5,
        edgecolors="face",
    )


def frame_map(axes: Axes, extent: MapExtent) -> None:
    """Gives a panel the extent of a map, its true shape and degrees along its edges."""
    axes.set(xlim=(extent.west, extent.east), ylim=(extent.south, extent.north), aspect=1 / extent.shrink)
    axes.set_facecolor(WASH)
    axes.grid(True, axis="both")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=11)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: degrees(value, "E", "W")))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: degrees(value, "N", "S")))


def degrees(value: float, positive: str, negative: str) -> str:
    """A latitude or longitude as maps write it.

    >>> degrees(-12.5, "E", "W"), degrees(0.0, "N", "S")
    ('12.5°W', '0°')
    """
    side = "" if abs(value) < 1e-9 else positive if value > 0 else negative
    return f"{abs(round(value, 6)):g}°{side}"


def _scale_bar(axes: Axes, extent: MapExtent, length_km: float) -> None:
    length = length_km / KM_PER_DEGREE / extent.shrink
    left = extent.west + 0.05 * (extent.east - extent.west)
    low = extent.south + 0.05 * (extent.north - extent.south)
    axes.plot([left, left + length], [low, low], color=INK, linewidth=2, solid_capstyle="butt")
    axes.annotate(f"{length_km:g} km", (left, low), xytext=(0, 4), textcoords="offset points", fontsize=11)
