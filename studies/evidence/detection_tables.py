"""What thresholds of detectors promise, and what a public board foretells, as tables."""

from __future__ import annotations

from typing import Any

from studies.evidence.markdown import table


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def site_thresholds(name: str, result: dict[str, Any]) -> str:
    """Promises that held, and what clips told."""
    about = result["about"].partition("\n")[2].strip()
    parts = ["## Thresholds that keep a promise, and clips that tell (simulated)\n", about, ""]
    rows = [
        [
            "its own recordings" if kind == "own" else "the recordings of all species with few",
            f"{found['asked']:,}",
            *(_percent(found[key]) for key in ("holds", "holds_where_given", "given", "oracle")),
        ]
        for kind, found in result["thresholds"].items()
    ]
    columns = ["shown by", "asked", "promise holds, %", "where one is given, %", "one is given, %", "oracle, %"]
    parts.append(table(columns, rows))
    least = _percent(result["thresholds"]["own"]["least_holds_of_a_species"])
    parts.append(f"\nFor the worst of the species the promise held in {least} % of the draws.\n")
    worst = [one["holds"] for one in result["worst_case"]]
    parts.append(
        f"Of the {len(worst)} detectors of the worst case the promise held in {_percent(min(worst))} to "
        f"{_percent(max(worst))} % of the surveys, {_percent(sum(worst) / len(worst))} % on average (95 promised).\n"
    )
    listened = [
        [
            clips,
            of,
            *(f"{found[of][key]:.3f}" for key in ("true", "mean", "error_of_mean")),
            _percent(found[of]["covers"]),
            f"{found[of]['width']:.3f}",
        ]
        for clips, found in ((key, row) for key, row in result["listening"].items() if key.isdecimal())
        for of in ("prevalence", "precision", "recall")
    ]
    parts.append(table(["clips", "", "true", "mean estimate", "its error", "covers, %", "width"], listened))
    return "\n".join(parts)


def site_recordings(name: str, result: dict[str, Any]) -> str:
    """BirdNET on real recordings, thresholds on real answers, and what words are worth."""
    parts = ["## Real recordings and real answers\n", result["about"].partition("\n")[2].strip(), ""]

    def interval(score: list[float | None]) -> str:
        value, low, high = score
        if value is None:
            return "-"
        return _percent(value) + ("" if low is None or high is None else f" [{_percent(low)}, {_percent(high)}]")

    rows = [
        [one["species"], one["rule"], *(str(one[key]) for key in ("recordings", "called", "positive"))]
        + [interval(one[key]) for key in ("precision", "recall", "ap")]
        + ["none" if one["threshold"] is None else f"{one['threshold']:.3f}"]
        for one in result["recordings"]
    ]
    columns = ["species", "rule", "recordings", "called", "positive", "precision, %", "recall, %", "AP, %", "threshold"]
    parts += [table(columns, rows), "\nThresholds with a promise:\n"]
    rows = [
        [one["set"], str(one["photos"]), _percent(one["annotated"]), kind]
        + [f"{one[kind][key]:,}" for key in ("asked", "given")]
        + ["-" if not one[kind]["given"] else _percent(one[kind]["held"] / one[kind]["given"])]
        + [
            "-"
            if not one[kind]["asked"]
            else _percent(1 - (one[kind]["given"] - one[kind]["held"]) / one[kind]["asked"])
        ]
        for one in result["promises"]
        for kind in ("own", "pooled")
    ]
    columns = ["set", "photos", "annotated, %", "shown by", "asked", "given", "holds where given, %", "holds, %"]
    parts += [table(columns, rows), "\nWords beside probabilities of fitted models:\n"]
    rows = [
        [
            name,
            one["word"],
            str(one["photos"]),
            _percent(one["stated"]),
            interval([one["right"] / one["photos"], one["low"], one["high"]]),
        ]
        for name, words in result["words"].items()
        for one in words
        if one["photos"]
    ]
    parts.append(table(["set", "word", "photos", "stated, %", "right, %"], rows))
    return "\n".join(parts)


def tool_readers(name: str, result: dict[str, Any]) -> str:
    """On how many cases a tool and Fieldmark agree."""
    what = {"sed_eval": "species in 30 recordings (TP, FP, FN)"}
    rows = [
        [tool, one["version"], f"{one['files']:,}", f"{one['boxes']:,} {what.get(tool, 'boxes')}", f"{one['same']:,}"]
        for tool, one in result["tools"].items()
    ]
    columns = ["tool", "version", "files or cases", "of", "the same"]
    about = result["about"].partition("\n")[2].strip()
    return "\n".join(["## Other tools' own readers, and a second scorer\n", about, "", table(columns, rows)])


def board_forecast(name: str, result: dict[str, Any]) -> str:
    """How often a lead lasts."""
    parts = [
        "## From the public board to the private one (real scores)\n",
        result["about"].partition("\n")[2].strip(),
        "",
    ]
    rows = [[f"{one['lead']:g}", f"{one['pairs']:,}", _percent(one["lasts"])] for one in result["leads"]]
    parts.append(table(["lead in public of more than", "pairs", "same order in private, %"], rows))
    ranks, winner = result["rank_intervals"], result["public_winner"]
    parts.append(
        f"\nSpearman {result['spearman']:.3f}, Kendall {result['kendall']:.3f}; private less public "
        f"{result['gap']['mean']:.4f}, spread {result['gap']['spread']:.4f}. Private rank of the public winner: "
        f"{winner['private_rank']}. Intervals of 95 % for private ranks, from the public scores and how far other "
        f"entries moved, are {ranks['mean_width']:g} places wide and cover {_percent(ranks['covers'])} %: wider than "
        "they need to be, since epochs of one model move together. Nothing is known here about single plots, from "
        "which the intervals of `compare` and of hosted boards are made; those cannot be tried on these scores."
    )
    return "\n".join(parts)
