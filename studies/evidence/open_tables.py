"""The tables about unknown species and unequal costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldmark.stats.intervals import interval
from studies.evidence.markdown import mean_difference, percent, table


def open_set(name: str, result: dict[str, Any]) -> str:
    """Every score on worlds and on real birds."""
    worlds = result["worlds"]

    def area(world: dict[str, Any], score: str) -> float:
        return float(world["scores"]["test"][score]["roc_auc"][0])

    rows = []
    for score in worlds[0]["scores"]["test"]:
        values, plain = (np.array([area(world, one) for world in worlds]) for one in (score, "max-softmax"))
        ahead = "" if score == "max-softmax" else mean_difference(values - plain)
        rows.append([score, f"{100 * values.mean():.1f}", ahead])
    for choose in worlds[0]["chosen"]:
        values = np.array([area(world, world["chosen"][choose]) for world in worlds])
        plain = np.array([area(world, "max-softmax") for world in worlds])
        picked = ", ".join(world["chosen"][choose] for world in worlds)
        rows.append([f"chosen by {choose} ({picked})", f"{100 * values.mean():.1f}", mean_difference(values - plain)])
    text = (
        "## Unknown species\n\n"
        f"`fungitastic/open` on {len(worlds)} worlds of size `{result['size']}` (simulated), linear classifier of "
        "frozen EfficientNet-Lite0 features at 160 px: mean ROC-AUC on test in percent, and the paired difference to "
        "max softmax with its 95 % interval over worlds. Chosen rows take what validation preferred on each world.\n\n"
        + table(["score", "ROC-AUC", "ahead of max-softmax by"], rows)
    )
    return text + ("\n" + _open_birds(result["birds"]) if "birds" in result else "")


def drawn_unknown_species(name: str, result: dict[str, Any]) -> str:
    """The average and what species kept back chose, against max softmax, over draws."""
    rows: list[list[str]] = []
    ahead: list[list[Any]] = [[], [], [], []]
    for label, draws in result["sets"].items():
        plain = [draw["plain"] for draw in draws]
        simple, average = (_areas(draws, [score] * len(draws)) for score in ("max-softmax", "average"))
        simple_plain, average_plain = (_areas(plain, [score] * len(draws)) for score in ("max-softmax", "average"))
        chosen = _areas(plain, [draw["chosen"] for draw in plain])
        gains = (average - simple, average - simple_plain, average_plain - simple_plain, chosen - simple_plain)
        for held, gain in zip(ahead, gains, strict=True):
            held.append(gain)
        photos = (
            f"{np.mean([draw['known'] for draw in draws]):,.0f} / {np.mean([draw['unknown'] for draw in draws]):,.0f}"
        )
        told = [mean_difference(gain) for gain in gains]
        below = f"{int((gains[0] < 0).sum())}"
        rows.append(
            [label, photos, *(f"{100 * one.mean():.1f}" for one in (simple_plain, simple)), told[0], below, *told[1:]]
        )
    means = [f"{100 * float(np.mean(own)):+.1f}" for own in ahead]
    below = str(int(sum((own < 0).sum() for own in ahead[0])))
    rows.append(["mean of the sets", "", "", "", means[0], below, *means[1:]])
    columns = [
        "",
        "test photos known / unknown",
        "max softmax, plain",
        "max softmax",
        "average, ahead by",
        "draws below",
    ]
    columns += ["average, ahead of max softmax, plain, by", "plain: average, ahead by", "plain: chosen, ahead by"]
    return f"## Unknown species where val has none\n\n{result['about']}\n\n" + table(columns, rows)


def _areas(draws: list[dict[str, Any]], scores: list[str]) -> Any:
    return np.array([draw["roc_auc"][score] for draw, score in zip(draws, scores, strict=True)])


def _open_birds(birds: dict[str, Any]) -> str:
    columns = ("ROC-AUC, val", "ROC-AUC, test", "TNR at 95 % TPR, test", "ROC-AUC, also in val", "ROC-AUC, not in val")
    rows = []
    for score in birds["scores"]["test"]:
        by = {choose for choose, chosen in birds["chosen"].items() if chosen == score}
        mark = f" (chosen by {' and '.join(sorted(by))})" if by else ""
        rows.append(
            [
                score + mark,
                percent(birds["scores"]["val"][score]["roc_auc"]),
                percent(birds["scores"]["test"][score]["roc_auc"]),
                percent(birds["scores"]["test"][score]["tnr_at_95_tpr"]),
                *(percent(birds[group]["test"][score]["roc_auc"]) for group in ("also in val", "not in val")),
            ]
        )
    photos = {part: birds[f"{part}_photos"] for part in ("val", "test")}
    counts = "; ".join(
        f"{part}: {n['known']:,} photos of known, {n['unknown']:,} of unknown species" for part, n in photos.items()
    )
    return (
        "Real photos: `birds_cub_odd` with 30 of its 100 species held out as unknown, 15 of which occur as unknown in "
        "val. Which ones was fixed beforehand: the first 30 of NumPy's `default_rng(0).permutation(100)` over the "
        f"species in alphabetical order. {counts}. Percent with 95 % intervals over photos; the last two columns tell "
        "unknown species that val has from those it has not. On test the score chosen by val-unknowns is ahead of max "
        f"softmax by {percent(birds['ahead_of_max_softmax'])} (paired).\n\n" + table(["score", *columns], rows)
    )


def costs(name: str, result: dict[str, Any]) -> str:
    """Least cost against the likeliest label."""
    worlds = result["worlds"]
    text = (
        "## Unequal costs\n\n"
        f"{len(worlds)} worlds of size `{result['size']}` (simulated), linear classifier: mean cost per photo on test, "
        "what min-cost saves with its 95 % interval over worlds (paired), and top-1 in percent. The bound is the "
        "expected cost of the best decision that knows the true traits.\n\n"
    )
    rows = []
    for benchmark in worlds[0]["benchmarks"]:
        cards = [world["benchmarks"][benchmark] for world in worlds]
        metric = next(iter(cards[0]["runs"]["arg-max"]))
        cheapest = np.array([card["runs"]["min-cost"][metric][0] for card in cards])
        for run in cards[0]["runs"]:
            paid = np.array([card["runs"][run][metric][0] for card in cards])
            right = np.mean([card["runs"][run]["top_1"][0] for card in cards])
            saves = "" if run == "min-cost" else _plain_difference(paid - cheapest)
            rows.append([f"`{benchmark}`", run, f"{paid.mean():.3f}", saves, f"{100 * right:.1f}"])
        bound = np.mean([card["bound"] for card in cards])
        rows.append([f"`{benchmark}`", "bound given the traits", f"{bound:.3f}", "", ""])
    text += table(["benchmark", "answer", "mean cost", "min-cost saves", "top-1"], rows)
    curve = [
        [
            f"{c_p:g}",
            *(f"{np.mean([world['curve'][run][place][0] for world in worlds]):.3f}" for run in ("arg-max", "min-cost")),
            *(f"{100 * np.mean([w['curve'][run][place][1] for w in worlds]):.1f}" for run in ("arg-max", "min-cost")),
        ]
        for place, c_p in enumerate(result["c_p"])
    ]
    text += "\nThe same predictions over a range of c_p (poisonous taken for harmless), means over worlds:\n\n" + table(
        ["c_p", "cost, arg-max", "cost, min-cost", "top-1, arg-max", "top-1, min-cost"], curve
    )
    return text + ("\n" + _genera(result["genera"]) if "genera" in result else "")


def _genera(genera: dict[str, Any]) -> str:
    rows = []
    for run, found in genera["rows"].items():
        cost, top_1 = (np.mean([one[key] for one in found]) for key in ("cost", "top_1"))
        missed, photos = (sum(one[key] for one in found) for key in ("poisonous_taken_for_harmless", "photos"))
        rows.append([run, f"{cost:.3f}", f"{missed} of {photos}", f"{100 * top_1:.1f}"])
    saved = [a["cost"] - b["cost"] for a, b in zip(genera["rows"]["arg-max"], genera["rows"]["min-cost"], strict=True)]
    return (
        "An illustration on real photos: the nine genera of `fungi_genera`, of which "
        f"{', '.join(genera['poisonous'])} are called poisonous because `mushroom_uci` flags more than half of the "
        "species of their families. A genus is neither edible nor poisonous: nobody should eat by this. Five drawn "
        "splits; a poisonous genus taken for a harmless one costs 100, the reverse 1. Min-cost saves "
        f"{_plain_difference(np.array(saved))} per photo (splits overlap, so the interval is a rough one).\n\n"
        + table(["answer", "mean cost", "poisonous taken for harmless", "top-1"], rows)
    )


def _plain_difference(values: np.ndarray) -> str:
    found = interval(float(values.mean()), values, bounds=(-np.inf, np.inf))
    bounds = "no interval" if found.low is None else f"{found.low:.3f}, {found.high:.3f}"
    return f"{values.mean():.3f} [{bounds}]"


def drawn_fungi(name: str, result: dict[str, Any]) -> str:
    """Benchmarks like FungiTastic, drawn from real records."""
    parts = ["## Benchmarks drawn from real records by the rules of FungiTastic\n", f"{result['about']}\n"]
    for records, drawn in result["drawn"].items():
        species = ", ".join(f"{number:,} {kind}" for kind, number in drawn["species"].items())
        counts = [[file, *(f"{number:,}" for number in count.values())] for file, count in drawn["counts"].items()]
        verdict = "finds no rule broken" if drawn["sound"] else "finds rules broken"
        rows = []
        for fit in drawn["fits"]:
            scores = fit["scores"]
            shown = [
                percent(scores[metric]) if metric in scores else "" for metric in ("top_1", "macro_f1_all", "roc_auc")
            ]
            rows.append([f"`{fit['benchmark']}`, {fit['method']}", *shown])
        parts += [
            f"{records}: {species} species; `fieldmark check fungitastic` {verdict}.\n",
            table(["file", "observations", "photos", "species"], counts),
            table(["percent on test", "top-1", "macro-F1 over all", "ROC-AUC of unknown"], rows),
        ]
    return "\n".join(parts)
