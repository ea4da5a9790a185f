"""How answers to people look in `studies/pages`."""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.evidence.markdown import table

SIMULATED = {
    "specimens_clear": "traits, seen clearly",
    "specimens_poor": "traits, seen poorly",
    "worlds": "painted photos",
}


def identify(name: str, result: dict[str, Any]) -> str:
    """The tables of the study `identify`."""
    made = {key: result[f"{key}_together"] for key in SIMULATED if result.get(f"{key}_together")}
    return "\n".join(
        [
            "## Answers to people\n",
            f"{result['about']}\n",
            "### Simulated\n",
            _simulated(result, made),
            _curve(result),
            "### Real photos\n",
            _real(result["real"]),
            _pictures(result["real"]),
        ]
    )


def _simulated(result: dict[str, Any], made: dict[str, Any]) -> str:
    rows = []
    for key, one in made.items():
        poison, absent, alarms = one["poisonous"], one["poisonous_of_unknown_species"], one["false_alarms"]
        rows.append(
            [
                f"{SIMULATED[key]}, {len(result[key])} seeds",
                f"{_percent(one['unknown']['share'])} of {one['unknown']['of']:,}",
                _percent(one["unknown_false_alarms"]["share"]),
                f"{poison['missed']} of {poison['of']:,} (bound {100 * poison['bound_95']:.2f})",
                f"{absent['missed']} of {absent['of']:,}",
                _percent(alarms["hits"] / alarms["of"]),
                f"{_percent(one['coverage'])}, {one['size']:.2f} names" if "coverage" in one else "val is too small",
                _percent(one["worst_group_with_a_line"]["rarest"]["share"]) if "coverage" in one else "",
                _claims(one["rolled_up"]["known_species"]),
                _claims(one["rolled_up"]["with_unknown_species"]),
            ]
        )
    columns = [
        "what is seen",
        "unknown species called unknown",
        "known called unknown",
        "poisonous without a notice",
        "poisonous of unknown species without a notice",
        "harmless with a notice",
        "short lists (90) cover",
        "rarest group covers",
        "rolled up: right (claimed)",
        "with unknown species",
    ]
    note = (
        "Percent. The bound is that of Clopper and Pearson, one-sided, 95 %. Whoever always warns misses nothing, and "
        "warns of every harmless specimen. The rarest group are labels with up to five training observations where val "
        "has 140 observations of them, else the group that they were merged into. Lists are never empty, so that they "
        "cover more than 90 % where the first name alone does."
    )
    return f"{table(columns, rows)}\n{note}\n"


def _curve(result: dict[str, Any]) -> str:
    """Misses and false alarms along the line, seeds added up."""
    rows = []
    for key in SIMULATED:
        worlds = list(result.get(key, {}).values())
        if not worlds:
            continue
        for place, point in enumerate(worlds[0]["danger"]["curve"]):
            points = [world["danger"]["curve"][place] for world in worlds]
            missed = sum(one["missed"]["missed"] for one in points)
            of = sum(one["missed"]["of"] for one in points)
            hits, harmless = (sum(one["false_alarms"][name] for one in points) for name in ("hits", "of"))
            said = "costs: " if abs(point["line"] - 0.0099) < 1e-6 else ""
            rows.append(
                [SIMULATED[key], f"{said}{100 * point['line']:.2g}", f"{missed} of {of:,}", _percent(hits / harmless)]
            )
        rows.append([SIMULATED[key], "always warn", f"0 of {of:,}", "100"])
    columns = ["what is seen", "line (probability of danger)", "poisonous without a notice", "harmless with a notice"]
    return f"The line of danger, where the verdict of unknown warns as well; percent.\n\n{table(columns, rows)}\n"


def _real(real: dict[str, Any]) -> str:
    rows = []
    for name, one in real.items():
        splits = one.get("splits", [one])
        covered = [split["conformal"] for split in splits if "coverage" in split["conformal"]]
        claims = [split["roll_up"]["all"]["known_species"] for split in splits]
        given = np.array([claim["given"] for claim in claims])
        both = {
            key: float(np.average([c.get(key, 0.0) for c in claims], weights=given)) for key in ("right", "claimed")
        }
        unknown = [split["unknown"]["share"] for split in splits if split["unknown"]["of"]]
        danger = splits[0].get("danger")
        rows.append(
            [
                name + (f", {len(splits)} splits" if len(splits) > 1 else ""),
                _percent(float(np.mean(unknown))) if unknown else "none in test",
                _percent(float(np.mean([split["false_alarms"]["share"] for split in splits]))),
                f"{_percent(float(np.mean([c['coverage'] for c in covered])))}, "
                f"{np.mean([c['size'] for c in covered]):.2f} names"
                if covered
                else "val is too small",
                f"{_percent(both['right'])} ({_percent(both['claimed'])}) of {int(given.sum())}",
                _percent(sum(given) / sum(split["false_alarms"]["of"] for split in splits)),
                "no flags"
                if danger is None
                else f"{danger['known']['missed']} of {danger['known']['of']}, "
                f"{_percent(danger['false_alarms']['share'])} of harmless",
            ]
        )
    columns = [
        "photos",
        "unknown species called unknown",
        "known called unknown",
        "short lists (90) cover",
        "rolled up: right (claimed)",
        "of known specimens answered at some rank",
        "venomous without a notice, harmless with one",
    ]
    return f"{table(columns, rows)}\n"


def _pictures(real: dict[str, Any]) -> str:
    models, missed = 0, []
    names: list[str] = []
    for one in real.values():
        for split in one.get("splits", [one]):
            models += 1
            names = list(split["pictures_called_unknown"])
            missed += [name for name, called in split["pictures_called_unknown"].items() if not called]
    said = f"not: {', '.join(sorted(set(missed)))}" if missed else "all of them"
    return (
        f"Pictures without a living thing ({', '.join(names)}) called unknown by each of the {models} models: {said}.\n"
    )


def _claims(one: dict[str, Any]) -> str:
    return f"{_percent(one['right'])} ({_percent(one['claimed'])}) of {one['given']:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
