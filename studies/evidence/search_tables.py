"""How settings by cross-validation look in `studies/pages`."""

from __future__ import annotations

from typing import Any

from studies.evidence.markdown import percent, table


def search(name: str, result: dict[str, Any]) -> str:
    """The table of the study `search`, with a count of how its differences fall."""
    rows = [
        [
            f"{row['set']}, seed {row['seed']}",
            row["method"],
            f"{row['val_units']:,}",
            _settings(row["default"]["settings"]),
            _settings(row["searched"]["settings"]),
            percent(row["default"]["macro_f1_all"]),
            percent(row["searched"]["macro_f1_all"]),
            _points(row["difference"]["macro_f1_all"]),
            _points(row["difference"]["top_1"]),
        ]
        for row in result["rows"]
    ]
    columns = [
        "photos",
        "method",
        "val units",
        "default",
        "by cross-validation",
        "default: macro-F1",
        "searched: macro-F1",
        "difference",
        "top-1 difference",
    ]
    said = [
        "## Settings by cross-validation\n",
        f"Real photos. {result['about']} Differences are searched minus default in points, paired by observation, with "
        "their 95 % intervals. No adjustment is made for their number.\n",
        table(columns, rows),
        _count(result["rows"]),
    ]
    return "\n".join(said)


def _count(rows: list[dict[str, Any]]) -> str:
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row["difference"]["macro_f1_all"] for row in rows if row["method"] == method]
        better = sum(low is not None and low > 0 for _, low, _ in own)
        worse = sum(high is not None and high < 0 for _, _, high in own)
        mean = 100 * sum(value for value, _, _ in own) / len(own)
        lines.append(
            f"`{method}`: of {len(own)} runs the search was better beyond its interval in {better} and worse in "
            f"{worse}; the mean difference in macro-F1 is {mean:+.1f} points."
        )
    return " ".join(lines) + "\n"


def _settings(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in settings.items())


def _points(triple: list[float | None]) -> str:
    value, low, high = triple
    assert value is not None
    bounds = "no interval" if low is None or high is None else f"{100 * low:+.1f}, {100 * high:+.1f}"
    return f"{100 * value:+.1f} [{bounds}]"
