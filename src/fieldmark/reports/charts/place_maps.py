"""Numbers over a stretch of land: small panels of cells, each with its own scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fieldmark.reports.charts.maps import MapExtent, MapPoints, frame_map
from fieldmark.reports.charts.plots import HEAT

CELLS_ACROSS = 24


@dataclass(frozen=True)
class CellMap:
    """The mean of a number in each cell of a map.

    Args:
        title: What is shown.
        cells: Rows from the south, columns from the west; NaN where there is no place.
        extent: The stretch of land.
    """

    title: str
    cells: NDArray[np.float64]
    extent: MapExtent

    @classmethod
    def of(cls, title: str, places: MapPoints, values: NDArray[np.float64]) -> CellMap:
        """The means of values at places."""
        extent = MapExtent.around({"": places})
        shape = max(round(CELLS_ACROSS * extent.shape), 1), CELLS_ACROSS
        row = ((places.lat - extent.south) / (extent.north - extent.south) * shape[0]).astype(np.int64)
        column = ((places.lon - extent.west) / (extent.east - extent.west) * shape[1]).astype(np.int64)
        cell = np.clip(row, 0, shape[0] - 1) * shape[1] + np.clip(column, 0, shape[1] - 1)
        number = np.bincount(cell, minlength=shape[0] * shape[1])
        total = np.bincount(cell, weights=values, minlength=len(number))
        means = np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0)
        return cls(title, means.reshape(shape), extent)

    @property
    def steps(self) -> NDArray[np.float64]:
        """Edges of as many steps as there are colors, in even steps from the least to the most."""
        there = self.cells[np.isfinite(self.cells)]
        low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 1.0)
        return np.linspace(low, high if high > low else low + 1e-6, len(HEAT) + 1)


def paint_cells(figure: Figure, *, maps: Sequence[CellMap], where: str = "") -> None:
    """One panel per map, side by side, each with its scale below; the land is named before the titles."""
    panels = figure.subplots(1, len(maps), squeeze=False)[0]
    for axes, one in zip(panels, maps, strict=True):
        edges = [
            np.linspace(*ends, number + 1)
            for ends, number in zip(
                ((one.extent.west, one.extent.east), (one.extent.south, one.extent.north)),
                one.cells.shape[::-1],
                strict=True,
            )
        ]
        norm = BoundaryNorm(one.steps, len(HEAT))
        mesh = axes.pcolormesh(*edges, np.ma.masked_invalid(one.cells), cmap=ListedColormap(HEAT), norm=norm, zorder=2)
        frame_map(axes, one.extent)
        axes.set_title(f"{where}: {one.title}" if where else one.title, fontsize=12.5)
        bar = figure.colorbar(mesh, ax=axes, orientation="horizontal", pad=0.1, fraction=0.05, aspect=30)
        bar.set_ticks(one.steps.tolist(), labels=[f"{edge:.3g}" for edge in one.steps])
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=10.5, length=0)
