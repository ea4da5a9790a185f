"""One model of a suite on a page of its own: where it is strong, which species it misses, whether to believe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.registry import require
from fieldmark.scoring import Score
from fieldmark.stats.intervals import interval
from fieldmark.suites.declarations import Suite
from fieldmark.suites.ranking import ModelRow, suite_table
from fieldmark.suites.results import SuiteResult
from fieldmark.version import __version__

# The species that are shown: those with the fewest right answers, of at least so many items.
WORST, FEWEST_ITEMS = 20, 3
NO_STRENGTHS = "answers by species were not kept; run the cell again"


@dataclass(frozen=True)
class AnsweredGroup:
    """Items of one kind and how many were answered rightly; the interval takes items for independent."""

    cell: str
    name: str
    items: int
    right: int

    @property
    def score(self) -> Score:
        hits = np.repeat([1.0, 0.0], [self.right, self.items - self.right])
        around = interval(self.right / self.items, hits, proportion=True)
        return Score(self.right / self.items, around.low, around.high, around.method)


@dataclass(frozen=True)
class CellCalibration:
    """How far stated probabilities agree with what held, in one cell: rows of items, said and held; and the error."""

    cell: str
    bands: tuple[tuple[int, float, float], ...]

    @property
    def error(self) -> float:
        """The mean over items of the distance between what was said and what held."""
        items = sum(band[0] for band in self.bands)
        return sum(count * abs(said - held) for count, said, held in self.bands) / items

    @property
    def boasts(self) -> float:
        """By how much the mean probability is above the share of right answers; below zero for a modest model."""
        items = sum(band[0] for band in self.bands)
        return sum(count * (said - held) for count, said, held in self.bands) / items


@dataclass(frozen=True)
class ModelProfile:
    """One model of a suite.

    Args:
        row: As in the table.
        models: How many models the table has.
        ranks: Its rank among them in each cell, from 1.
        kingdoms: Mean score by kingdom, and over how many cells.
        groups: By the coarsest rank that makes groups, worst first.
        worst: The species with the fewest right answers.
        calibration: By cell, where probabilities were stated.
        lacking: Cells without answers by species.
    """

    row: ModelRow
    models: int
    ranks: dict[str, int]
    kingdoms: dict[str, tuple[float, int]]
    groups: tuple[AnsweredGroup, ...]
    worst: tuple[AnsweredGroup, ...]
    calibration: tuple[CellCalibration, ...]
    lacking: tuple[str, ...]


def model_profile(suite: Suite, results: Sequence[SuiteResult], model: str) -> ModelProfile:
    """What the results of a suite tell of one model.

    Raises:
        MisuseError: When there is no such model.
    """
    table = suite_table(suite, results)
    rows = {row.model: row for row in table.rows}
    if model not in rows:
        raise MisuseError(f"No model of the suite {suite.name} is called {model!r}. {did_you_mean(model, rows)}")
    row = rows[model]
    own = {one.cell: one for one in results if one.data["suite"] == suite.name and one.model == model}
    ranks = {
        cell: 1 + sum(other.scores[cell].value > score.value for other in table.rows if cell in other.scores)
        for cell, score in row.scores.items()
    }
    by_kingdom: dict[str, list[float]] = {}
    for cell, score in row.scores.items():
        by_kingdom.setdefault(table.kingdoms[cell] or "several", []).append(score.value)
    told = {cell: one.strengths for cell, one in own.items() if one.strengths is not None}
    groups, worst, calibration = [], [], []
    for cell, strengths in told.items():
        coarsest: list[list[Any]] = next(iter(strengths["groups"].values()), [])
        groups += [AnsweredGroup(cell, *given) for given in coarsest]
        worst += [AnsweredGroup(cell, *given) for given in strengths["labels"] if given[1] >= FEWEST_ITEMS]
        if strengths.get("calibration"):
            calibration.append(CellCalibration(cell, tuple(tuple(band) for band in strengths["calibration"])))
    return ModelProfile(
        row=row,
        models=len(rows),
        ranks=ranks,
        kingdoms={name: (sum(values) / len(values), len(values)) for name, values in sorted(by_kingdom.items())},
        groups=tuple(sorted(groups, key=lambda one: (one.cell, one.right / one.items))),
        worst=tuple(sorted(worst, key=lambda one: (one.right / one.items, -one.items))[:WORST]),
        calibration=tuple(calibration),
        lacking=tuple(cell for cell in own if cell not in told),
    )


def model_page(profile: ModelProfile, suite: Suite) -> str:
    """The page of a model, which needs no other file."""
    markup: Any = require("fieldmark.reports.markup", "A page")
    from markupsafe import Markup

    style = resources.files("fieldmark.reports").joinpath("templates", "page.css").read_text(encoding="utf-8")
    page: str = markup.render(
        "suite_model.html.j2",
        profile=profile,
        suite=suite,
        style=Markup(style),
        version=__version__,
        no_strengths=NO_STRENGTHS,
    )
    return page
