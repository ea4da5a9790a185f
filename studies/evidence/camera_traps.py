"""A published network's answers at camera traps: how frequent is what, and what was it really (real records).

18,044 records of 2017 to 2019 at 11 points with the true label and the first answer of the network of an article; no
scores exist. P(true | answer) is learned on the first year (Dirichlet smoothing with one record toward the
frequencies of that year), everything is scored on what came later.

Frequencies: for each point and month with at least 20 records, half the summed difference between estimated and true
shares, averaged over these cells; intervals by leaving out one of the points. Relabeling: each record gets the
likeliest label given its answer; intervals by leaving out events (records of a point with gaps of at most 5 minutes).
Animals: the same for the labels that are neither people nor vehicles; shares among these labels, and records that truly
show one. prior-online is fitted on the first year in time order; prior-em, prior-map and prior-confusion see the month
at the point.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import TimeOrder
from fieldmark.questions.targets import LabelTargets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.stats.prior_shift import confusion_weights, em_prior, mean_posterior, reweighted
from fieldmark.steps.base import Lesson
from fieldmark.steps.prior_online import PriorOnline
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part
from studies.evidence.pairing import compared
from studies.evidence.results import real_data

GAP_MINUTES, FIRST_YEAR_DAYS, LEAST_RECORDS = 5, 365, 20
# People, riders and vehicles.
NO_ANIMALS = ("humain", "cavalier", "vehicule")
AS_ANSWERED = "the answers as they are"
ALPHA = 3.0
Codes = NDArray[np.int64]
Shares = NDArray[np.float64]


class Records(NamedTuple):
    """One row per record in time order; `later` marks what came after the first year."""

    table: pl.DataFrame
    labels: Labels
    true: Codes
    answer: Codes
    point: Codes
    event: Codes
    later: NDArray[np.bool_]


def run() -> dict[str, Any] | None:
    """Errors of frequencies, and of relabeled records, for all labels and for animals."""
    folder = real_data("camera_traps_jura")
    if folder is None:
        return None
    records = read_records(folder)
    first = ~records.later
    joint = np.zeros((len(records.labels),) * 2)
    np.add.at(joint, (records.answer[first], records.true[first]), 1.0)
    truth = np.bincount(records.true[first], minlength=len(records.labels)) / first.sum()
    given = (joint + truth) / (joint.sum(axis=1, keepdims=True) + 1)
    posterior = given[records.answer]
    frequencies = _frequencies(records, posterior, joint / first.sum())
    result = {
        "simulated": False,
        "about": " ".join(str(__doc__).split("\n\n", 1)[1].split()),
        "records": {"first year": int(first.sum()), "later": int(records.later.sum())},
        "repeated_rows": int(len(records.table) - records.table.select("file", "datetime").unique().height),
        "events": len(np.unique(records.event[records.later])),
        "points": int(records.point.max()) + 1,
        "labels": len(records.labels),
        "frequencies": frequencies,
        "relabeling": _relabeling(records, posterior),
    }
    print(result["frequencies"], result["relabeling"], flush=True)
    return result


def read_records(folder: Path) -> Records:
    """The records that tell their time, in its order."""
    rows = pl.read_csv(folder / "ain_18044_observed_predicted.csv.gz", infer_schema=False)
    rows = rows.with_columns(
        time=pl.col("datetime").str.to_datetime("%Y:%m:%d %H:%M:%S", strict=False),
        point=pl.col("file").str.split("_").list.first(),
    )
    rows = rows.drop_nulls("time").sort("point", "time", "file")
    new = (pl.col("time").diff().dt.total_minutes(fractional=True) > GAP_MINUTES) | (
        pl.col("point") != pl.col("point").shift()
    )
    rows = rows.with_columns(event=new.fill_null(True).cum_sum()).sort("time", "file")
    labels = Labels.of([*rows["observed"], *rows["predicted"]])
    point = rows["point"].rank("dense").to_numpy().astype(np.int64) - 1
    later = (rows["time"] - rows["time"].min()).dt.total_days().to_numpy() >= FIRST_YEAR_DAYS
    codes = [labels.encode(rows[column]).astype(np.int64) for column in ("observed", "predicted")]
    return Records(rows, labels, codes[0], codes[1], point, rows["event"].to_numpy().astype(np.int64), later)


def _frequencies(records: Records, posterior: Shares, joint: Shares) -> dict[str, Any]:
    """The error of the estimated shares of each cell, for all labels and for animals."""
    labels, source = len(records.labels), mean_posterior(posterior[~records.later])
    first_year = np.bincount(records.true[~records.later], minlength=labels) / (~records.later).sum()
    month = records.table["time"].dt.strftime("%Y-%m").to_numpy()
    animal = np.array([name not in NO_ANIMALS for name in records.labels.names])
    errors: dict[str, dict[str, list[float]]] = {"all labels": {}, "animals": {}}
    cells: dict[str, list[int]] = {"all labels": [], "animals": []}
    for point in range(int(records.point.max()) + 1):
        for one in np.unique(month[records.later]):
            rows = np.flatnonzero((records.point == point) & (month == one) & records.later)
            if len(rows) < LEAST_RECORDS:
                continue
            true = np.bincount(records.true[rows], minlength=labels) / len(rows)
            answered = np.bincount(records.answer[rows], minlength=labels) / len(rows)
            weights = confusion_weights(joint, answered, items=int((~records.later).sum()))
            lent = (ALPHA - 1) * labels * source
            estimates = {
                "classify and count": answered,
                "frequencies of the first year": first_year,
                "mean of P(true given answer)": posterior[rows].mean(axis=0),
                "prior-em": em_prior(posterior[rows], source).shares,
                "prior-map": em_prior(posterior[rows], source, pseudo=lent).shares,
                "prior-confusion": weights * source / (weights @ source),
            }
            for kind, inside in (("all labels", np.ones(labels, dtype=bool)), ("animals", animal)):
                if true[inside].sum() * len(rows) < LEAST_RECORDS:
                    continue
                cells[kind].append(point)
                for name, shares in estimates.items():
                    errors[kind].setdefault(name, []).append(_distance(shares[inside], true[inside]))
    return {kind: _compared_cells(errors[kind], cells[kind]) for kind in errors}


def _distance(one: Shares, other: Shares) -> float:
    """The total variation between shares that are made to sum to one; 1 where nothing is left of one of them."""
    if one.sum() <= 0:
        return 1.0
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def _compared_cells(errors: dict[str, list[float]], points: list[int]) -> dict[str, Any]:
    units = np.unique(points, return_inverse=True)[1]
    values = {name: np.array(one) for name, one in errors.items()}
    error = compared(values, units, "classify and count", key="less_counting", higher_is_better=False)
    return {"cells": len(points), "points": int(units.max()) + 1, "error": error}


def _relabeling(records: Records, posterior: Shares) -> dict[str, Any]:
    """How many records have the right label, and the log loss of the true one."""
    later, true = records.later, records.true
    logs = {"P(true given answer)": np.log(posterior), "prior-map, month and point": _by_cell(records, posterior)}
    step = _online(records, posterior)
    logs["prior-online, all points"] = _in_time(step, records, posterior, np.flatnonzero(later))
    by_point = np.full_like(posterior, np.nan)
    for point in range(int(records.point.max()) + 1):
        rows = np.flatnonzero(later & (records.point == point))
        if len(rows):
            by_point[rows] = _in_time(step, records, posterior, rows)[rows]
    logs["prior-online, each point"] = by_point
    right = {AS_ANSWERED: (records.answer == true).astype(float)}
    right |= {name: (values.argmax(axis=1) == true).astype(float) for name, values in logs.items()}
    losses = {name: -values[np.arange(len(true)), true] for name, values in logs.items()}
    animal = ~np.isin(np.array(records.labels.names)[true], NO_ANIMALS)
    result: dict[str, Any] = {"settings": {"days": step.days_chosen, "strength": step.strength_chosen}}
    for kind, inside in (("all labels", later), ("animals", later & animal)):
        units = np.unique(records.event[inside], return_inverse=True)[1]
        result[kind] = {
            "records": int(inside.sum()),
            "events": int(units.max()) + 1,
            "top_1": compared(
                {name: one[inside] for name, one in right.items()},
                units,
                AS_ANSWERED,
                key="less_answers",
                higher_is_better=True,
            ),
            "log_loss": compared(
                {name: one[inside] for name, one in losses.items()},
                units,
                "P(true given answer)",
                key="less_first_year",
                higher_is_better=False,
            ),
        }
    return result


def _by_cell(records: Records, posterior: Shares) -> Shares:
    """The log-posteriors with the frequencies of the month at the point, with pseudo-counts where records are few."""
    source = mean_posterior(posterior[~records.later])
    month = records.table["time"].dt.strftime("%Y-%m").to_numpy()
    logs = np.log(posterior)
    lent = (ALPHA - 1) * len(source) * source
    for point in range(int(records.point.max()) + 1):
        for one in np.unique(month[records.later]):
            rows = (records.point == point) & (month == one) & records.later
            if rows.any():
                prior = em_prior(posterior[rows], source, pseudo=lent).shares
                logs[rows] = reweighted(logs[rows], np.log(prior) - np.log(source))
    return logs


def _online(records: Records, posterior: Shares) -> PriorOnline:
    rows = np.flatnonzero(~records.later)
    items = _items(records, rows)
    targets = LabelTargets(records.true[rows].astype(np.int32))
    taxa = pl.DataFrame({"label": records.labels.names})
    lesson = Lesson(BENCHMARKS["folder"].task, records.labels, taxa, Part(items, targets))
    return PriorOnline().fit(_scores(records, posterior, rows), lesson)


def _in_time(step: PriorOnline, records: Records, posterior: Shares, rows: Codes) -> Shares:
    """The log-posteriors of some records in time order, at their places among all."""
    adapted = step.apply_by_day(_scores(records, posterior, rows), _items(records, rows), TimeOrder(), None)
    logs = np.full(posterior.shape, np.nan)
    logs[rows] = adapted.scores
    return logs


def _items(records: Records, rows: Codes) -> pl.DataFrame:
    dates = records.table["time"].dt.date().gather(rows.tolist())
    return pl.DataFrame({"item_id": [str(row) for row in rows], "date": dates})


def _scores(records: Records, posterior: Shares, rows: Codes) -> LabelScores:
    return LabelScores(tuple(str(row) for row in rows), records.labels, np.log(posterior[rows]), "log_probability")
