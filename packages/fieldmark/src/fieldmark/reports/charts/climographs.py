"""The typical year at a place: monthly temperature and precipitation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fieldmark.reports.charts.plots import ORANGE, TINT, draw, stacked

# Climate tables hold degrees Celsius, kelvin or tenths of a kelvin; no place on earth leaves the first range.
LARGEST_CELSIUS, LARGEST_KELVIN = 90.0, 400.0
FREEZING_KELVIN = 273.15
MONTHS = 12

Series = Mapping[tuple[int, int], Any]


def typical_year(series: Series) -> NDArray[np.float64] | None:
    """The mean of each month over the years, NaN for a month without values; None without any value."""
    values: list[list[float]] = [[] for _ in range(MONTHS)]
    for (_, month), value in series.items():
        if isinstance(value, (int, float)) and np.isfinite(value):
            values[month - 1].append(float(value))
    if not any(values):
        return None
    return np.array([np.mean(month) if month else np.nan for month in values])


def temperature(monthly: Mapping[str, Series]) -> NDArray[np.float64] | None:
    """The typical year of the mean temperature in degrees Celsius; the middle of the extremes where it is not given."""
    means = typical_year(monthly.get("tas", {}))
    if means is None:
        low, high = typical_year(monthly.get("tasmin", {})), typical_year(monthly.get("tasmax", {}))
        if low is None or high is None:
            return None
        means = (low + high) / 2
    largest = float(np.nanmax(np.abs(means)))
    if largest > LARGEST_KELVIN:
        means = means / 10
    return means if largest <= LARGEST_CELSIUS else means - FREEZING_KELVIN


def draw_climate(name: str, climate: Mapping[str, Any]) -> Markup | None:
    """A small figure of the typical year; None where there is nothing to show.

    Args:
        name: Unique on the page.
        climate: What the layer `climate` tells: `monthly` holds series by variable.
    """
    monthly = climate.get("monthly", {})
    warm, wet = temperature(monthly), typical_year(monthly.get("pr", {}))
    if warm is None and wet is None:
        return None
    return draw(
        name,
        partial(_paint, warm=warm, wet=wet),
        width=330,
        height=250 if warm is not None and wet is not None else 140,
        description="Mean temperature and precipitation of each month, over all years.",
    )


def _paint(figure: Figure, *, warm: NDArray[np.float64] | None, wet: NDArray[np.float64] | None) -> None:
    months = np.arange(1, MONTHS + 1)
    both = warm is not None and wet is not None
    above, below = stacked(figure, heights=(1, 1)) if both else (figure.subplots(),) * 2
    if warm is not None:
        above.plot(months, warm, "o-", color=ORANGE, markersize=3.5)
        above.set_title("Temperature, °C", fontsize=12)
        above.locator_params(axis="y", nbins=4)
    if wet is not None:
        below.bar(months, np.nan_to_num(wet), width=0.72, color=TINT, linewidth=0)
        below.set_title("Precipitation, mm", fontsize=12)
        below.locator_params(axis="y", nbins=4)
    below.set_xticks(months, list("JFMAMJJASOND"))
    below.set_xlim(0.4, MONTHS + 0.6)
