"""The sections of `studies/pages` about places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.evidence.markdown import difference, percent, table

TITLES = {"roc_auc": "ROC-AUC", "cor": "COR", "prg_auc": "PR-gain AUC"}
REGION_TITLES = {"SA": "South America, 30 plants", "SWI": "Switzerland, 30 trees"}


def regions(name: str, result: dict[str, Any]) -> str:
    """Methods on two regions of disdat."""
    parts = ["## What lives where: two regions of disdat (real)\n", result["about"], ""]
    for region, one in result["regions"].items():
        earlier = ", ".join(f"{key} {value:.2f}" for key, value in result["earlier"][region].items())
        parts += [
            f"### {REGION_TITLES[region]}\n",
            f"{one['sites']:,} sites. An independent first try on the same tables: {earlier}.\n",
            _scored(one["methods"], "ensemble"),
            _search(one["search"]),
        ]
    return "\n".join(parts)


def _scored(methods: Mapping[str, Any], first: str) -> str:
    rows = []
    for method, found in sorted(methods.items(), key=lambda pair: -pair[1]["roc_auc"][0]):
        row = [method]
        for metric in TITLES:
            row += [_bounded(found[metric]), difference(found.get(f"{metric}_less_{first}"), 1, ".3f")]
        rows.append(row)
    columns = [column for title in TITLES.values() for column in (title, f"less {first}")]
    return table(["", *columns], rows)


def _bounded(triple: list[float | None]) -> str:
    value, low, high = triple
    assert value is not None
    bounds = "no interval" if low is None or high is None else f"{low:.3f}, {high:.3f}"
    return f"{value:.3f} [{bounds}]"


def _search(search: Mapping[str, Any]) -> str:
    folds = next(iter(search.values()))["folds"]
    said = (
        f"Held-out records lie {folds['knndm']['median_km']:g} km from the nearest one to learn from by kNNDM "
        f"({folds['knndm']['clusters']:,} clusters), {folds['blocks']['median_km']:g} km by blocks of "
        f"{folds['blocks']['side_km']:g} km, and sites {folds['knndm']['median_prediction_km']:g} km (medians). "
        "Wasserstein's distance to the distances of sites: "
        f"{folds['knndm']['mismatch_km']:g} km by kNNDM, {folds['blocks']['mismatch_km']:g} km by blocks.\n"
    )
    rows = []
    for method, one in search.items():
        for trial in one["tried"]:
            settings = ", ".join(f"{key}={value}" for key, value in trial["settings"].items())
            marks = [
                f"{trial[scheme]:.3f}{' (best)' if trial['settings'] == one[f'best_by_{scheme}'] else ''}"
                for scheme in ("knndm", "blocks")
            ]
            rows.append([f"{method}: {settings}", *marks])
    return said + "\n" + table(["ROC-AUC on held-out records", "kNNDM", "blocks"], rows)


def routes(name: str, result: dict[str, Any]) -> str:
    """Breeding birds by blocks of routes."""
    known = 100 * result["seen_before_on_the_route"]
    return "\n".join(
        [
            "## Breeding birds by blocks of routes (real)\n",
            result["about"],
            f"\n{result['routes']} routes in {result['blocks']} blocks, {result['species']} species. Seen in the 15 "
            "years before 2016:\n",
            _scored(result["before_2016"], "random-forest"),
            f"\nSeen in 2016, on {result['routes_in_2016']} routes; {known:.1f} % of these presences had been seen on "
            "that route before:\n",
            _scored(result["in_2016"], "persistence"),
        ]
    )


def land_worlds(name: str, result: dict[str, Any]) -> str:
    """Methods on five worlds of GeoLifeCLEF."""
    means, worlds = result["means"], result["worlds"]
    rows = []
    for method, found in sorted(means.items(), key=lambda pair: -pair[1]["adaptive_top_30"][0]):
        row = [method]
        for metric in ("adaptive_top_30", "top_30"):
            row += [percent(found[metric]), difference(found.get(f"{metric}_less_forest"), 100, ".1f")]
        row.append(difference(found.get("optimism_adaptive_top_30"), 100, ".1f"))
        rows.append(row)
    columns = ["adaptive top-30", "less forest", "top-30", "less forest", "optimism of a random split"]
    best = ", ".join(f"{100 * one['best_possible']['test_adaptive_top_30']:.1f}" for one in worlds)
    parts = [
        "## GeoLifeCLEF 2020 on five worlds (simulated)\n",
        result["about"],
        f"\nMeans over {len(worlds)} worlds with t intervals over worlds, in percent. Best possible adaptive top-30 of "
        f"each: {best}.\n",
        table(["", *columns], rows),
        "\nEach world by itself, with intervals by quadrat:\n",
    ]
    header = ["adaptive top-30", *(f"seed {one['seed']}" for one in worlds)]
    rows = [[method, *(_of_world(one, method) for one in worlds)] for method in means]
    return "\n".join([*parts, table(header, rows)])


def _of_world(world: Mapping[str, Any], method: str) -> str:
    found = world["methods"].get(method)
    return "" if found is None else percent(found["adaptive_top_30"])


def weights(name: str, result: dict[str, Any]) -> str:
    """Members and ways of weighing them, with the gain of weights from folds over each."""
    parts = ["## Weights of an ensemble for places (real data)\n", result["about"]]
    for region, found in result["regions"].items():
        parts.append(
            f"\n{region}: {found['places']:,} places in {found['blocks']} blocks, {found['species']} species. Mean F1 "
            "over places in percent, mean log loss of a species at a place, and how much better `folds` is in F1:\n"
        )
        rows = [
            [one, percent(f1), f"{found['log_loss'][one]:.4f}", difference(found["folds_less"].get(one), 100, ".2f")]
            for one, f1 in found["sample_f1"].items()
        ]
        parts.append(table(["", "F1 by place", "log loss", "folds less this"], rows))
        for way in ("val", "folds"):
            means = np.mean(found["weights"][way], axis=0)
            shares = ", ".join(f"{one} {mean:.2f}" for one, mean in zip(found["members"], means, strict=True))
            parts.append(f"\nMean weights by {way} over the five folds: {shares}.")
    return "\n".join(parts)


def site_units(name: str, result: dict[str, Any]) -> str:
    """The same values with intervals by site and by blocks of land."""
    parts = ["## Sites that are not independent (real data)\n", result["about"]]
    for region, found in result["regions"].items():
        methods = found["methods"]
        parts.append(f"\n{region}, {found['sites']:,} sites: ROC-AUC, mean over species.\n")
        ways = next(iter(methods.values()))
        rows = [
            [by, f"{one['units']:,}", *(_value(methods[method][by]["roc_auc"]) for method in methods)]
            for by, one in ways.items()
        ]
        parts.append(table(["left out at a time", "units", *methods], rows))
    return "\n".join(parts)


def _value(found: list[float | None]) -> str:
    value, low, high = (f"{one:.3f}" if one is not None else "-" for one in found)
    return f"{value} [{low}, {high}]"


def auto_places(name: str, result: dict[str, Any]) -> str:
    """`auto` for places against every single method."""
    sets, means = result["sets"], result["means_over_sets"]
    rows, costs = [], []
    for single, mean in means.items():
        own = [one["singles"].get(single) for one in sets.values()]
        cells = ["" if value is None else f"{value:.3f}" for value in own]
        rows.append([single, *cells, difference(mean["auto_less"], 1, ".3f"), str(mean["sets"])])
        seconds = [one["singles_cpu"].get(single) for one in sets.values()]
        costs.append([single, *("" if value is None else f"{value:.1f}" for value in seconds)])
    rows.append(["`auto`", *(_bounded(one["auto"]) for one in sets.values()), "", ""])
    for number, what in enumerate(("search", "final fit")):
        costs.append([f"`auto`, {what}", *(f"{one['auto_cpu'][number]:.1f}" for one in sets.values())])
    expected = []
    for title, one in sets.items():
        given = [estimate for estimate in one["estimates"] if estimate]
        held = f"{sum(one['estimates_held'])} of {one['seeds']}"
        value = np.mean([estimate[0] for estimate in given]) if given else np.nan
        expected.append([title, f"{one['test_units']:,}", f"{value:.3f}", f"{one['auto'][0]:.3f}", held])
    chosen = "; ".join(f"{title}: {', '.join(one['weights'][0])}" for title, one in sets.items())
    return (
        f"## The best model of places (real)\n\n{result['about']}\n"
        + table(["ROC-AUC", *sets, "auto less", "sets"], rows)
        + f"\nChosen (first seed): {chosen}.\n\nCPU seconds of a fit and its answers:\n\n"
        + table(["", *sets], costs)
        + "\nWhat `auto` expected on test, and what it reached:\n\n"
        + table(["set", "test items", "expected", "reached", "held"], expected)
    )
