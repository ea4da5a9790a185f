"""Tables of studies that train variants with several seeds and set them against each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from studies.evidence.markdown import percent, table

ABOUT = {
    "front-ends": (
        "## Learned filters and triplets on real clips",
        "`birds_chipnotes`: {clips} clips of {sources} recordings, each answered by networks that did not hear its "
        "recording. Mel spectrograms against Gabor filters that are learned, and labels alone against triplets beside "
        "them; the same settings for all, none chosen.",
    ),
    "objectives": (
        "## Genera and triplets beside labels, on real birds",
        "`birds_cub_odd` at 224 px with the settings that were chosen on val for labels alone. Genera are those of the "
        "species whose English name tells one. Triplets do not go with mixup, so that labels stand without it too.",
    ),
}


def variants(name: str, result: dict[str, Any]) -> str:
    """Top-1 of each variant over the seeds, and the differences with their intervals."""
    title, about = ABOUT[name]
    rows = []
    for variant, runs in result["top_1"].items():
        values = [run[0] for run in runs]
        span = f"{100 * min(values):.1f} to {100 * max(values):.1f}"
        rows.append([variant, f"{100 * float(np.mean(values)):.1f}", span])
    differences = [[pair, percent(triple)] for pair, triple in result["top_1_ahead"].items()]
    return (
        f"{title}\n\n{about.format(**result)}\n\n"
        + table(["variant", "top 1, %: mean of seeds", "from, to"], rows)
        + "\nAhead by, in points, with a 95 % interval over units and seeds:\n\n"
        + table(["", "ahead by"], differences)
    )


def encoders(name: str, result: dict[str, Any]) -> str:
    """What an encoder that learned some groups gains on species that it has not seen."""
    groups = list(result["before"])

    def shown(values: Sequence[float]) -> str:
        return "{:+.1f} ({:+.1f} to {:+.1f})".format(*values)

    before = ["before, %", *("{:.1f} ({:.1f} to {:.1f})".format(*result["before"][one]["lda_4"]) for one in groups)]
    rows = [
        [f"learned {learned}", *(shown(own[one]["lda_4"]) if one in own else "" for one in groups)]
        for learned, own in result["gains_by_group_learned"].items()
    ]
    heads = list(next(iter(result["tried_gains"].values())))
    tried = [[arm, *(shown(own[head]) for head in heads)] for arm, own in result["tried_gains"].items()]
    return (
        "## Encoders that learned relatives (real photos)\n\n"
        f"`fieldmark encoder train` ({result['network']}) on half of the classes of a group; the other half is then "
        f"told apart from {result['shots']} photos each by `lda`. Top-1, gain in points over the network as it was: "
        f"mean of {len(result['seeds'])} seeds (lowest to highest), {result['episodes']} draws each. Settings were "
        "chosen for each seed on halves of the bird species learned from.\n\n"
        + table(["", *groups], [before, *rows])
        + "\n"
        "Settings tried, on birds, within the species learned from: gain in points by head (`_4`: four photos).\n\n"
        + table(["", *heads], tried)
    )


MOMENTS = (15, 30, 60, 120, 300, 600)


def automatic(name: str, result: dict[str, Any]) -> str:
    """What `auto` gains over `linear`, what its best candidate would have gained, and what the minutes bought."""
    rows, bought = [], []
    for one, own in result["sets"].items():
        cells = cells_of(result, one)
        row = [one, str(len(cells)), f"{cells[0]['test_units']:,}"]
        for metric in ("macro_f1_all", "top_1"):
            row += [_mean(cell[method][metric] for cell in cells) for method in ("linear", "auto")]
            points = [100 * value for value in own["each"][metric]]
            row.append(f"{np.mean(points):+.1f} ({min(points):+.1f} to {max(points):+.1f})")
        regrets = [own[name]["macro_f1_all"] for name in ("regret_first_by_folds", "regret_best_in_mean")]
        rows.append([*row, *("" if one is None else f"{100 * one:.1f}" for one in regrets)])
        bought.append([one, *(_mean(best_by(cell["curve"], moment) for cell in cells) for moment in MOMENTS)])
    means = result["means_over_sets"]
    gained = {metric: f"{100 * value:+.1f}" for metric, value in means["difference"].items()}
    regret = _with_interval(means, "regret_first_by_folds", "macro_f1_all")
    held, of = result["estimates"]["held"], result["estimates"]["of"]
    each = [value for own in result["sets"].values() for value in own["each"]["macro_f1_all"]]
    shown = [f"{metric}: {what}" for metric in ("macro-F1", "top-1") for what in SHOWN]
    return (
        f"## The best model in ten minutes (real photos and clips)\n\n{result['about']}\n\n"
        + table(["set", "seeds", "test units", *shown, *REGRETS], rows)
        + f"\nAhead in macro-F1 in {sum(value > 0 for value in each)} of {len(each)} runs. Mean over sets: macro-F1 "
        f"{gained['macro_f1_all']}, top-1 {gained['top_1']} points; macro-F1 behind the single chain that "
        f"the folds would have chosen: {regret} over sets. Auto's own estimate held in {held} of {of} runs.\n\n"
        "What the time bought: the best macro-F1 on the first fold of train after so many seconds, mean over seeds. It "
        "is the best of many on one fold, which flatters.\n\n"
        + table(["set", *(f"{one} s" for one in MOMENTS)], bought)
        + "\nWhat its ensembles are made of: shares of their weights in percent, mean over seeds.\n\n"
        + table(["set", *PARTS], [[one, *_parts(cells_of(result, one))] for one in result["sets"]])
    )


def cells_of(result: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The cells of one set."""
    return [cell for cell in result["rows"] if cell["set"] == name]


# Kinds of members by what their text says; features are plain where it names no others.
PARTS = ("second-order", "stages", "plain", "prototypes", "linear", "lda", "ridge", "other heads")


def _parts(cells: Sequence[dict[str, Any]]) -> list[str]:
    """How much of the weight each kind of member has."""
    shares = dict.fromkeys(PARTS, 0.0)
    for cell in cells:
        for text, weight in cell["weights"].items():
            head, *settings = re.split("[: ]", text)
            output = next((one.removeprefix("output=") for one in settings if one.startswith("output=")), "plain")
            for kind in (output.replace("features", "plain"), head if head in PARTS else "other heads"):
                shares[kind] += weight / len(cells)
    return [f"{100 * share:.0f}" if share else "" for share in shares.values()]


REGRETS = ("behind the first chain of the folds, macro-F1", "behind the best chain of all seeds, macro-F1")


def _with_interval(means: dict[str, Any], key: str, metric: str) -> str:
    low, high = (100 * value for value in means[f"{key}_over_sets"][metric])
    return f"{100 * means[key][metric]:.1f} [{low:.1f}, {high:.1f}]"


SHOWN = ("linear", "auto", "difference (lowest to highest)")


def best_by(curve: Sequence[dict[str, Any]], moment: float) -> float:
    """The best score on the first fold by then; NaN before there is any."""
    values = [one["value"] for one in curve if one["seconds"] <= moment and one["on"] == "first fold"]
    return max(values, default=float("nan"))


def _mean(values: Iterable[float]) -> str:
    mean = 100 * float(np.mean(list(values)))
    return "" if np.isnan(mean) else f"{mean:.1f}"
