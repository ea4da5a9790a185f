"""The sections of `studies/pages` about snakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from studies.evidence.markdown import difference, table

FINDERS = {"none": "whole photo", "saliency": "U²-Netp", "yolox": "YOLOX-tiny"}
SHOWN = {"log_loss": (1.0, ".2f", ".2f"), "top_5": (100.0, ".1f", ".1f"), "macro_f1": (100.0, ".1f", ".1f")}


def countries(name: str, result: dict[str, Any]) -> str:
    """What the country alone tells."""
    parts = ["## What the country alone tells about snakes (real tables)\n", result["about"], ""]
    for title, one in result["sets"].items():
        strengths = ", ".join(f"{key} {value:g}" for key, value in one["strength"].items())
        for part in ("all", "USA", "the rest"):
            found, untaught = one[part], one["test_of_species_not_taught"]
            parts += [
                f"### {title}: {part}\n",
                f"{one['train']:,} photos teach, {found['test']:,} test; {one['labels']} species, {one['listed']} of "
                f"them in the table of presence; {untaught} of all test photos are of species that nobody taught. "
                f"Strengths: {strengths}. Log loss; top-5 and macro-F1 (species present) in percent.\n",
                _priors(found),
            ]
    return "\n".join(parts)


def _priors(found: dict[str, Any]) -> str:
    rows = []
    for variant in found["log_loss"]:
        row = [variant]
        for metric, (factor, digits, finer) in SHOWN.items():
            said = found[metric][variant]
            row += [f"{factor * said['value']:{digits}}", difference(said.get("less_no_country"), factor, finer)]
        rows.append(row)
    columns = [column for metric in SHOWN for column in (metric.replace("_", "-"), "less no country")]
    return table(["", *columns], rows)


def photos(name: str, result: dict[str, Any]) -> str:
    """Every method on whole photos and on crops."""
    rows = []
    for method, by_finder in result["scores"].items():
        for finder, scores in by_finder.items():
            venom = result["venom"][method][finder]
            ahead = result["top_1_ahead_of_whole"][method].get(finder)
            rows.append(
                [
                    f"{method}, {FINDERS[finder]}",
                    _range(scores["top_1"], 100, ".1f"),
                    difference(ahead, 100, ".1f"),
                    _range(scores["macro_f1_union"], 100, ".1f"),
                    _range(scores["venom_cost"], 1, ".0f"),
                    f"{venom['called_harmless_per_1000']:.0f} (at most {1000 * venom['called_harmless_at_most']:.0f})",
                    f"{venom['other_venomous_per_1000']:.0f}",
                ]
            )
    columns = ["", "top-1", "less whole photo", "macro-F1", "venom cost", "venomous called harmless per 1,000",
               "taken for another venomous per 1,000"]  # fmt: skip
    boxes = ", ".join(f"{FINDERS[finder]} {number:,}" for finder, number in result["boxes"].items() if finder != "none")
    against = "; ".join(
        f"{FINDERS[finder]} {difference(one, 100, '.1f')}"
        for finder, one in result["top_1_finetune_ahead_of_linear"].items()
    )
    about = (
        f"`snakes_philippines`, its own parts, {result['photos']:,} photos of 14 species; {result['test']} test, "
        f"{result['venomous_test']} of them venomous (no miss among 89 still allows 3.3 %). One country, so that no "
        "prior can help. All features and networks are EfficientNet-Lite0 at 224 px. Percent with 95 % intervals over "
        f"photos; `finetune` is the mean of {result['seeds']} seeds with its range, settings as chosen on birds. A "
        f"finder is judged by what its crops do to classification: boxes of {boxes}. Photos without one are shown "
        "whole. The bound on venomous ones called harmless is exact and one-sided (95 %). Cost: the rule of 2023, "
        "summed over test photos; `min-cost` answers what is expected to cost least, after a temperature from val. "
        f"`finetune` less `linear` in top-1, over photos and seeds: {against}."
    )
    return f"## Snakes, whole and cropped (real photos)\n\n{about}\n\n" + table(columns, rows)


def worlds(name: str, result: dict[str, Any]) -> str:
    """The country prior against none on worlds."""
    metrics = {
        "macro_f1_union": (100.0, ".1f"),
        "log_loss": (1.0, ".3f"),
        "top_1": (100.0, ".1f"),
        "venom_cost": (1.0, ".1f"),
    }
    rows = []
    for variant in (one for one in result["worlds"][0] if one != "best_possible"):
        row = [variant]
        for metric, (factor, digits) in metrics.items():
            values = [world[variant][metric] for world in result["worlds"]]
            apart = result["less_no_prior"].get(variant, {}).get(metric)
            row += [f"{factor * sum(values) / len(values):{digits}}", difference(apart, factor, digits)]
        rows.append(row)
    columns = [column for metric in metrics for column in (metric.replace("_", "-"), "less no prior")]
    best = ", ".join(f"{world['best_possible']['test_top_1_with_country']:.2f}" for world in result["worlds"])
    overlaps = ", ".join(
        f"{name} {value:.2f} (boxes in {share:.0%})" for name, (value, share) in result["overlap"].items()
    )
    note = f" Overlap: {overlaps}. The exact posterior given traits and country has a top-1 of {best}."
    return f"## The country prior on five worlds of snakes (simulated)\n\n{result['about']}{note}\n\n" + table(
        ["", *columns], rows
    )


def _range(triple: Sequence[float | None], factor: float, digits: str) -> str:
    value, low, high = triple
    assert value is not None
    bounds = "no interval" if low is None or high is None else f"{factor * low:{digits}}, {factor * high:{digits}}"
    return f"{factor * value:{digits}} [{bounds}]"
