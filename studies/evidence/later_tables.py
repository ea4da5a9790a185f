"""The table of the baselines of later editions."""

from __future__ import annotations

from typing import Any

from studies.evidence.markdown import difference, percent, table


def later_baselines(name: str, result: dict[str, Any]) -> str:
    """Lists for surveys, tiles of plots, clusters of individuals."""
    parts = ["## Baselines of the later editions, from releases on disk (real data)\n", result["about"]]
    for region, found in result.get("surveys", {}).items():
        parts.append(_surveys(region, found))
    if "plots" in result:
        parts.append(_plots(result["plots"]))
    if "individuals" in result:
        parts.append(_individuals(result["individuals"]))
    return "\n".join(parts)


def _surveys(region: str, found: dict[str, Any]) -> str:
    rules = list(next(iter(found["methods"].values())))
    rows = []
    for method, by_rule in found["methods"].items():
        cells = [f"{percent(by_rule[rule]['sample_f1'])} ({by_rule[rule]['listed']:.1f})" for rule in rules]
        rows.append([f"`{method}`", *cells, difference(found["by_species_less_shared"][method], 100, ".1f")])
    about = (
        f"\n{region}: {found['places']:,} places in {found['blocks']} blocks, {found['species']} species, "
        f"{found['true_species_per_place']:.1f} at a place. Mean F1 over places in percent, and how many species are "
        "listed:\n"
    )
    return f"{about}\n{table(['', *rules, 'by species less shared'], rows)}"


def _plots(found: dict[str, Any]) -> str:
    photos = found["photos"]
    single = found["single_plants"]
    about = (
        f"\nPlots: {photos['train']} photos of {found['species']} species teach, {photos['val']} are val, and "
        f"{found['plots']} pictures are put together of {found['test_photos']} others. Of the photos of val, on which "
        f"its penalty was chosen, the model of single plants names {percent(single['top_1'])} % rightly.\n"
    )
    rows = [
        [way, f"{one['at_least']:g}", percent(one["unit_f1"]), percent(one["sample_f1"])]
        for way, one in found["tiles"].items()
    ]
    return f"{about}\n{table(['tiles, threshold', 'from', 'F1 by transect', 'F1 by plot'], rows)}"


def _individuals(found: dict[str, Any]) -> str:
    photos, specimens = (found[name] - found[f"asked_{name}"] for name in ("photos", "specimens"))
    about = (
        f"\nIndividuals: {found['asked_photos']} photos of {found['asked_specimens']} specimens are put together; "
        f"{photos} photos of {specimens} others teach. "
        "Adjusted Rand index in percent (0 is chance):\n"
    )
    rows = [
        [way, "" if one["threshold"] is None else f"{one['threshold']:.2f}", percent(one["adjusted_rand"])]
        for way, one in found["ways"].items()
    ]
    return f"{about}\n{table(['merged', 'from a cosine of', 'adjusted Rand index'], rows)}"
