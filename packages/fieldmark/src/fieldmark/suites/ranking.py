"""Results of a suite as a table: models by cells, means, and the ranks that models may really have."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fieldmark.errors import MisuseError
from fieldmark.features.available import license_of
from fieldmark.scoring import Score
from fieldmark.scoring.comparison import rank_range
from fieldmark.scoring.scorecard import units_rested_on
from fieldmark.stats.cell_ranks import CellScores, rank_over_cells
from fieldmark.suites.declarations import Suite, SuiteCell
from fieldmark.suites.results import SuiteResult

# The table ranks models over the cells that so many of them have.
COMMON = 0.5
COSTS = ("parameters", "features", "relative_speed", "photos_per_second", "memory_mib", "seconds")
NOT_STATED, NO_BACKBONE = "not stated", "no backbone"


@dataclass(frozen=True)
class ModelStanding:
    """Where a model stands over all ranked cells.

    Args:
        mean: Its mean score, with the interval on these cells.
        mean_rank: The mean of its ranks in the cells.
        ranks: The ranks that it may have on other cells like these.
        ranks_here: Those that it may have on these cells, with other units.
        tier: 1 for models that not separable from the best on these cells, 2 for the next, and so on.
    """

    mean: Score
    mean_rank: float
    ranks: tuple[int, int]
    ranks_here: tuple[int, int]
    tier: int


@dataclass(frozen=True)
class ModelRow:
    """One model.

    Args:
        model: Its name.
        scores: By cell.
        standing: None where it lacks a ranked cell.
        cost: What it costs.
        external_data: What it was trained on besides the releases; None where nobody has declared it.
        license: The terms of its backbone.
        seen: The cells whose media it may have seen in pre-training.
    """

    model: str
    scores: Mapping[str, Score]
    standing: ModelStanding | None
    cost: Mapping[str, float]
    external_data: tuple[str, ...] | None
    license: str = NOT_STATED
    seen: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SuiteTable:
    """All models of a suite, best first.

    Args:
        suite: Its name.
        version: Of the suite.
        cells: In the order of the suite.
        ranked: The cells over which means and ranks are taken.
        kingdoms: Of each cell.
        questions: What each cell asks.
        titles: What the metric of each cell is called.
        units: How many independent units are behind each cell.
        independent: How many there are in all, those of several cells counted once.
        rows: The models.
        simulated: Whether any of the data are.
        remarks: What a reader should know, a sentence each.
    """

    suite: str
    version: str
    cells: tuple[str, ...]
    ranked: tuple[str, ...]
    kingdoms: Mapping[str, str]
    questions: Mapping[str, str]
    titles: Mapping[str, str]
    units: Mapping[str, int]
    rows: tuple[ModelRow, ...]
    independent: int
    simulated: bool
    remarks: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """The table as plain data."""
        return {
            "suite": self.suite,
            "version": self.version,
            "simulated": self.simulated,
            "cells": {name: {"metric": self.titles[name], "units": self.units[name]} for name in self.cells},
            "ranked_cells": list(self.ranked),
            "remarks": list(self.remarks),
            "models": [
                {
                    "model": row.model,
                    **({} if row.standing is None else _standing_data(row.standing)),
                    "scores": {name: _bounds(score) for name, score in row.scores.items()},
                    "cost": dict(row.cost),
                    "external_data": None if row.external_data is None else list(row.external_data),
                    "license": row.license,
                    "may_have_seen": sorted(row.seen),
                }
                for row in self.rows
            ],
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows for a terminal or a README: percent, the mean with its interval."""
        columns = ["model", "mean", "rank here", "rank elsewhere", *self.cells]
        rows = []
        for row in self.rows:
            standing = row.standing
            where = ["", "", ""]
            if standing is not None:
                where = [_percent(standing.mean), rank_range(*standing.ranks_here), rank_range(*standing.ranks)]
            values = [f"{100 * row.scores[name].value:.1f}" if name in row.scores else "" for name in self.cells]
            rows.append([row.model, *where, *values])
        return columns, rows

    def to_markdown(self) -> str:
        """The table for a README."""
        columns, rows = self.table()
        lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

    def _repr_html_(self) -> str:
        from fieldmark.notebooks import html_note, html_page, html_table

        notes = [html_note(remark) for remark in self.remarks]
        return html_page(f"suite {self.suite}", html_table(*self.table()), *notes, simulated=self.simulated)


def suite_table(suite: Suite, results: Sequence[SuiteResult]) -> SuiteTable:
    """The table of a suite from its results.

    Raises:
        MisuseError: When there are none.
    """
    own = [one for one in results if one.data["suite"] == suite.name]
    if not own:
        raise MisuseError(f"There are no results of the suite {suite.name} here: `fieldmark suite run {suite.name}`.")
    by_cell, remarks = _comparable(own)
    order = [cell.name for cell in suite.cells if cell.name in by_cell]
    cells = (*order, *sorted(set(by_cell) - set(order)))
    models = sorted({one.model for one in own})
    ranked = tuple(name for name in cells if len(by_cell[name]) >= COMMON * len(models))
    complete = [model for model in models if all(model in by_cell[name] for name in ranked)]
    if len(complete) < len(models):
        remarks.append(
            f"{len(models) - len(complete)} of {len(models)} models lack a score in one of the {len(ranked)} cells "
            "that most have; they stand below, without a rank."
        )
    sets = _by_units({name: by_cell[name] for name in ranked})
    if len(sets) < len(ranked):
        remarks.append(
            f"Cells with the same units count as one data set, by their mean: {len(ranked)} cells are {len(sets)} "
            "sets, and means and ranks are over sets."
        )
    remarks += _overlapping(sets)
    standings = _standings(complete, sets) if complete and ranked else {}
    declared = {cell.name: cell for cell in suite.cells}
    rows = [_row(model, by_cell, cells, standings.get(model), declared) for model in models]
    rows.sort(key=lambda row: (row.standing is None, -(row.standing.mean.value if row.standing else 0.0), row.model))
    first = {name: next(iter(by_cell[name].values())) for name in cells}
    return SuiteTable(
        suite=suite.name,
        version=suite.version,
        cells=cells,
        ranked=ranked,
        kingdoms={name: str(one.data.get("kingdom", "")) for name, one in first.items()},
        questions={name: declared[name].question if name in declared else "" for name in cells},
        titles={name: str(_described(one)["title"]) for name, one in first.items()},
        units={name: int(one.data["scorecard"]["units"]) for name, one in first.items()},
        rows=tuple(rows),
        independent=sum(
            {str(one.data["units"]): int(one.data["scorecard"]["units"]) for one in first.values()}.values()
        ),
        simulated=any(one.simulated for one in own),
        remarks=tuple(remarks),
    )


def _comparable(results: Sequence[SuiteResult]) -> tuple[dict[str, dict[str, SuiteResult]], list[str]]:
    """Results by cell and model: of each cell those on the same units, as most are, and of each model the latest."""
    remarks = []
    by_cell: dict[str, dict[str, SuiteResult]] = {}
    for cell in sorted({one.cell for one in results}):
        own = [one for one in results if one.cell == cell]
        asked = [(one.data["units"], one.data["content"]["version"], one.data["metric"]) for one in own]
        usual = Counter(asked).most_common(1)[0][0]
        kept = [one for one, what in zip(own, asked, strict=True) if what == usual]
        if len(kept) < len(own):
            left = len(own) - len(kept)
            remarks.append(f"{cell}: {left} results on other data, or by another version or metric, are left out.")
        kept.sort(key=lambda one: str(one.data["provenance"].get("created", "")))
        by_cell[cell] = {one.model: one for one in kept}
    return by_cell, remarks


def _by_units(cells: Mapping[str, Mapping[str, SuiteResult]]) -> list[list[Mapping[str, SuiteResult]]]:
    """Cells that were scored on the same units together, as those with few and with many shots are."""
    sets: dict[str, list[Mapping[str, SuiteResult]]] = {}
    for own in cells.values():
        sets.setdefault(str(next(iter(own.values())).data["units"]), []).append(own)
    return list(sets.values())


def _overlapping(sets: Sequence[Sequence[Mapping[str, SuiteResult]]]) -> list[str]:
    """A remark where sets come from one release, so that units may be in several of them."""
    releases: dict[str, list[str]] = {}
    for one in sets:
        result = next(iter(one[0].values()))
        releases.setdefault(str(result.data["content"]["data_digest"]), []).append(result.cell)
    return [
        f"{', '.join(names)} come from one release: where they share units, ranks are less sure than they look."
        for names in releases.values()
        if len(names) > 1
    ]


def _standings(models: Sequence[str], sets: Sequence[Sequence[Mapping[str, SuiteResult]]]) -> dict[str, ModelStanding]:
    scores = [_mean_scores([_cell_scores([cell[model] for model in models]) for cell in cells]) for cells in sets]
    elsewhere, here = (rank_over_cells(scores, other_cells=other) for other in (True, False))
    made = {}
    for number, model in enumerate(models):
        low, high = max(float(here.lows[number]), 0.0), min(float(here.highs[number]), 1.0)  # NaN stays
        value, bounded = float(here.means[number]), math.isfinite(low) and math.isfinite(high)
        mean = Score(value, low if bounded else None, high if bounded else None, "t over units")
        there, own = elsewhere.standings[number], here.standings[number]
        made[model] = ModelStanding(
            mean=mean,
            mean_rank=float(here.mean_ranks[number]),
            ranks=(there.rank_low, there.rank_high),
            ranks_here=(own.rank_low, own.rank_high),
            tier=int(here.tiers[number]),
        )
    return made


def _cell_scores(results: Sequence[SuiteResult]) -> CellScores:
    values = np.array([one.score.value for one in results])
    pseudo = [one.values_per_unit for one in results]
    known = [one for one in pseudo if one is not None]
    rests_on = units_rested_on(one.score for one in results)
    return CellScores(values, np.stack(known) if len(known) == len(pseudo) else None, rests_on)


def _mean_scores(cells: Sequence[CellScores]) -> CellScores:
    """The mean over cells that share their units; its pseudo-values are the means of theirs."""
    known = [cell.pseudo for cell in cells if cell.pseudo is not None]
    pseudo = np.mean(known, axis=0) if len(known) == len(cells) else None
    return CellScores(np.mean([cell.values for cell in cells], axis=0), pseudo, min(cell.rests_on for cell in cells))


def _row(
    model: str,
    by_cell: Mapping[str, Mapping[str, SuiteResult]],
    cells: Sequence[str],
    standing: ModelStanding | None,
    declared: Mapping[str, SuiteCell],
) -> ModelRow:
    own = {name: by_cell[name][model] for name in cells if model in by_cell[name]}
    costs = [{**one.data["cost"], "seconds": sum(one.data["cost"]["seconds"].values())} for one in own.values()]
    gathered = {name: [cost[name] for cost in costs if cost.get(name) is not None] for name in COSTS}
    cost = {name: float(sum(given) if name == "seconds" else max(given)) for name, given in gathered.items() if given}
    said = [one.data["provenance"]["external_data"] for one in own.values()]
    external = None if None in said else tuple(dict.fromkeys(sentence for one in said for sentence in one))
    return ModelRow(
        model=model,
        scores={name: one.score for name, one in own.items()},
        standing=standing,
        cost=cost,
        external_data=external,
        license=_license(next(iter(own.values()))),
        seen=frozenset(name for name in own if name in declared and may_have_seen(declared[name], external)),
    )


def may_have_seen(cell: SuiteCell, external_data: Sequence[str] | None) -> bool:
    """Whether a model has learned from a collection that holds media of a cell, as far as both were declared.

    >>> may_have_seen(SuiteCell("birds", "folder", "birds", also_in=("ImageNet",)), ["ImageNet, by the weights"])
    True
    """
    return any(name in sentence for name in cell.also_in for sentence in external_data or ())


def _license(result: SuiteResult) -> str:
    """The terms of the backbone behind a result."""
    features = result.data["provenance"].get("features") or {}
    backbone = str(features.get("backbone", ""))
    return (license_of(backbone) if backbone else NO_BACKBONE) or NOT_STATED


def _described(result: SuiteResult) -> Mapping[str, Any]:
    card = result.data["scorecard"]
    described: Mapping[str, Any] = card["described"][result.data["metric"]]
    return described


def _standing_data(standing: ModelStanding) -> dict[str, Any]:
    return {
        "mean": _bounds(standing.mean),
        "mean_rank": round(standing.mean_rank, 2),
        "rank_here": list(standing.ranks_here),
        "rank_elsewhere": list(standing.ranks),
        "group": standing.tier,
    }


def _bounds(score: Score) -> list[float | None]:
    return [None if number is None else round(number, 4) for number in (score.value, score.low, score.high)]


def _percent(score: Score) -> str:
    around = "" if score.low is None or score.high is None else f" [{100 * score.low:.1f}, {100 * score.high:.1f}]"
    return f"{100 * score.value:.1f}{around}"
