"""How the studies of review, of doubted labels and of copies look in `studies/pages`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scipy.stats import binomtest

from studies.evidence.markdown import percent, table


def review(name: str, result: dict[str, Any]) -> str:
    """Looks and corrections of each way to go through a list."""
    rows = [
        [
            way,
            _number(row["looks"]),
            "" if way == "random order" else _number(row["looks_less_random_order"]),
            _number(row["corrections"]),
            percent(row["right_after"]),
            _number(row["without_bound"]),
            f"{row['below_the_share']} of {len(result['draws'])}",
        ]
        for way, row in result["ways"].items()
    ]
    columns = ["order", "looks", "less random order", "corrections", "right at the end", "without a bound", "misled"]
    return (
        "## Looks until a list is right (real birds)\n\n"
        f"{result['about']} {result['photos']:,} photos to be named, {percent(result['right_before'])} % of them right "
        'before any look. Means over draws with 95 % intervals; none where all draws are the same. "Misled": draws in '
        f"which the list was below {100 * result['share']:.0f} % when the rule stopped.\n\n" + table(columns, rows)
    )


def label_noise(name: str, result: dict[str, Any]) -> str:
    """How many planted labels are found, and how many of the doubted ones were planted."""
    rows = []
    for place, found in result["places"].items():
        simulated = " (simulated)" if "worlds" in place else ""
        rows.append([f"{place}{simulated}", "none", "0", percent(found["doubted_as_they_are"]), "", "", ""])
        for row in found["rates"]:
            shares = [percent(row[key]) for key in ("found", "right", "first")]
            rows.append(["", row["kind"], f"{100 * row['rate']:.0f} %", "", *shares])
    columns = ["labels", "planted", "rate", "doubted as they are", "found", "right", "first"]
    return "## Wrong labels found\n\n" + f"{result['about']} Percent with 95 % intervals.\n\n" + table(columns, rows)


def copies(name: str, result: dict[str, Any]) -> str:
    """Which copies are found, and what is taken for a copy in sets of real photos."""
    photos = result["photos"]

    def share(found: int) -> str:
        bounds = binomtest(found, photos).proportion_ci(method="wilson")
        return percent((found / photos, bounds.low, bounds.high))

    kinds = [
        [kind, share(row["found"]), str(row["others"]), "by its bytes" if kind == "exact" else share(row["by_fit"])]
        for kind, row in result["detection"].items()
    ]
    sets = [
        [
            f"`{place}`" + (" (chosen on)" if row["chosen_on"] else ""),
            *(f"{row[key]:,}" for key in ("photos", "equal_bytes", "candidates", "reported", "two_photos")),
        ]
        for place, row in result["alarms"].items()
    ]
    columns = ["set", "photos", "equal bytes", "opened again", "reported", "two photos"]
    return (
        "## Copies of photos found\n\n"
        f"{result['about']} Percent with 95 % intervals (Wilson).\n\n"
        + table(["copy", "found by check", "other pairs reported", "found by fit"], kinds)
        + "\n"
        + table(columns, sets)
    )


def _number(triple: Sequence[float | None]) -> str:
    value, low, high = triple
    assert value is not None
    return f"{value:,.0f}" if low is None or high is None else f"{value:,.0f} [{low:,.0f}, {high:,.0f}]"
