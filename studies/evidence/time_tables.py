"""The sections of `studies/pages` about time and about frequencies of labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.evidence.markdown import difference, mean_difference, table

STATIC = "static"
UNITS = (("top_1", 100.0, ".1f"), ("macro_f1_present", 100.0, ".1f"), ("log_loss", 1.0, ".3f"))
TITLES = {"macro_f1_all": "macro-F1", "top_1": "top-1", "f1_unknown": "F1 of unknown"}


def temporal(name: str, result: dict[str, Any]) -> str:
    """Worlds in time order."""
    parts = ["## Time order on worlds (simulated)\n", f"{result['about']}\n"]
    for kind, worlds in result["worlds"].items():
        rows = []
        for run in worlds[0]["runs"]:
            row = [run]
            for metric in TITLES:
                values = np.array([world["runs"][run][metric] for world in worlds])
                static = np.array([world["runs"][STATIC][metric] for world in worlds])
                row += [f"{100 * values.mean():.1f}", "" if run == STATIC else mean_difference(values - static)]
            rows.append(row)
        columns = ["", *(text for title in TITLES.values() for text in (title, "less static"))]
        items = ", ".join(str(world["items"]) for world in worlds)
        parts += [
            f"{kind.capitalize()}, in percent: means of {len(worlds)} worlds with {items} observations of test; "
            "differences with 95 % intervals over worlds.\n",
            table(columns, rows),
        ]
    return "\n".join(parts)


def prior_shift(name: str, result: dict[str, Any]) -> str:
    """Birds with a long-tailed test."""
    rows = []
    for variant in result["top_1"]:
        row = [variant]
        for metric, factor, digits in UNITS:
            said = result[metric][variant]
            row += [f"{factor * said['value']:{digits}}", difference(said.get("less_plain"), factor, digits)]
        off = result["off_by"].get(variant)
        rows.append([*row, "" if off is None else f"{100 * off['value']:.1f}"])
    columns = [
        "",
        "top-1",
        "less not adapted",
        "macro-F1",
        "less not adapted",
        "log loss",
        "less not adapted",
        "off by",
    ]
    photos = result["photos"]
    return (
        "## Birds with a long-tailed test, before and after (real photos)\n\n"
        f"{result['about']} {min(photos)} to {max(photos)} photos, {result['labels']} species. Off by: half the summed "
        "difference between estimated and true frequencies, in percent (for prior-online, not adapted: the mean "
        "posterior). Log losses are cut off at a probability of 1e-12, which EM gives to labels it holds absent.\n\n"
        + table(columns, rows)
    )


def camera_traps(name: str, result: dict[str, Any]) -> str:
    """Frequencies and labels at camera traps."""
    counts = result["records"]
    parts = [
        "## A published network at camera traps (real records)\n",
        f"{result['about']} {counts['first year']:,} records of the first year, {counts['later']:,} later ones in "
        f"{result['events']:,} events at {result['points']} points, {result['labels']} labels; "
        f"{result['repeated_rows']:,} records repeat a file and a time, and fall into the same events.\n",
    ]
    for kind, one in result["frequencies"].items():
        rows = [
            [variant, f"{100 * said['value']:.1f}", difference(said.get("less_counting"), 100.0, ".1f")]
            for variant, said in one["error"].items()
        ]
        parts += [
            f"Error of frequencies in percent, {kind}: {one['cells']} months at a point, {one['points']} points.\n",
            table(["", "error", "less classify and count"], rows),
        ]
    for kind in ("all labels", "animals"):
        one = result["relabeling"][kind]
        rows = []
        for variant, said in one["top_1"].items():
            loss = one["log_loss"].get(variant, {})
            rows.append(
                [
                    variant,
                    f"{100 * said['value']:.1f}",
                    difference(said.get("less_answers"), 100.0, ".1f"),
                    f"{loss['value']:.3f}" if loss else "",
                    difference(loss.get("less_first_year"), 1.0, ".3f"),
                ]
            )
        parts += [
            f"Relabeled records, {kind}: {one['records']:,} records in {one['events']:,} events.\n",
            table(["", "top-1", "less the answers", "log loss", "less P(true given answer)"], rows),
        ]
    return "\n".join(parts)


def mushroom_stream(name: str, result: dict[str, Any]) -> str:
    """The next name in a stream."""
    parts = [
        "## The next name in a stream of mushrooms (real names)\n",
        f"{result['about']} {result['records']:,} records, {result['names']:,} names.\n",
    ]
    for past, one in result["past"].items():
        settings = one["settings"]
        weeks = f"half-life {settings['weeks'][0]} days, strength {settings['weeks'][1]:g}"
        rows = []
        for prior in one["log_loss"]:
            loss, top = one["log_loss"][prior], one["top_10"][prior]
            rows.append(
                [
                    prior,
                    f"{loss['value']:.3f}",
                    difference(loss.get("less_frequency"), 1.0, ".3f"),
                    f"{100 * top['value']:.1f}",
                    difference(top.get("less_frequency"), 100.0, ".1f"),
                ]
            )
        parts += [
            f"Past of {past}: {one['scored']:,} records of {one['observers']:,} observers; month: strength "
            f"{settings['month']:g}; weeks: {weeks}.\n",
            table(["", "log loss", "less frequency", "top-10", "less frequency"], rows),
        ]
    return "\n".join(parts)
