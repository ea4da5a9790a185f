"""Tables about the scorer itself: intervals that cover, readers that stand odd files, tests that notice mistakes."""

from __future__ import annotations

from typing import Any

from studies.evidence.markdown import table

NAMED = ("venom_score", "venom_cost", "mrr_rare", "species_prg_auc", "sample_f1", "unit_f1", "padded_cmap")


def few_units(name: str, result: dict[str, Any]) -> str:
    """Coverage by the number of units on which a metric rests."""
    rows, sizes = result["rows"], sorted({row["units"] for row in result["rows"]})
    by_line: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = {}
    for row in rows:
        by_line.setdefault((row["metric"], row["rests_on"], row["population"]), {})[row["units"]] = row
    lines = [
        [f"`{metric}`", kind, population, *(_cell(cells.get(units)) for units in sizes)]
        for (metric, kind, population), cells in by_line.items()
    ]
    short = [row for row in rows if (row["now"]["coverage"] or 1) < 0.93]
    silent = [row for row in short if row["now"]["cautioned"] < 0.5]
    wide = [row for row in rows if (row["now"]["relative_width"] or 0) > 1.25]
    before = [[metric, *_range(rows, metric, "before"), *_range(rows, metric, "now")] for metric in NAMED]
    listed = "; ".join(f"`{row['metric']}` ({row['population']}, {row['units']})" for row in silent)
    draws = sorted({row["draws"] for row in rows})
    left = result["cells"] - len(rows)
    missing = f"{left} of {result['cells']} cells are not studied yet. " if left else ""
    perfect = sum("nearly perfect" in row["population"] for row in wide)
    return (
        "## Do intervals cover with few units of the kind that counts?\n\n"
        "Every deciding metric, and those that were named as too narrow, by the number of units on which it rests "
        f"(simulated; {draws[0]} to {draws[-1]} test sets for each cell, which leaves a standard error of up to "
        f"{100 * (0.05 * 0.95 / draws[0]) ** 0.5:.1f} points). Coverage in percent, in brackets the mean width against "
        "2 x 1.96 true standard deviations; `!` where most intervals carry a caution, a dash where there are none. "
        f"{missing}Of {len(rows)} cells {len(short)} are below 93 %, {len(silent)} of them without a caution: "
        f"{listed or 'none'}. {len(wide)} are wider than 1.25 times, {perfect} of them for nearly perfect runs: with "
        "eight units all right, no interval can know that there will never be a mistake.\n\n"
        + table(["metric", "rests on", "runs", *map(str, sizes)], lines)
        + "\nBefore, and now, on the same test sets: the range over all populations and sizes.\n\n"
        + table(["metric", "coverage before", "width before", "coverage now", "width now"], before)
    )


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    now = row["now"]
    if now["coverage"] is None:
        return "-"
    width = "" if now["relative_width"] is None else f" ({now['relative_width']:.2f})"
    return f"{100 * now['coverage']:.1f}{width}{'!' if now['cautioned'] >= 0.5 else ''}"


def _range(rows: list[dict[str, Any]], metric: str, convention: str) -> tuple[str, str]:
    found = [row[convention] for row in rows if row["metric"] == metric and row[convention]["coverage"] is not None]
    if not found:
        return "", ""
    covered, width = ([one[key] for one in found if one[key] is not None] for key in ("coverage", "relative_width"))
    return f"{100 * min(covered):.0f} to {100 * max(covered):.0f}", f"{min(width):.2f} to {max(width):.2f}"


def _convention(result: dict[str, Any]) -> str:
    """A word about results that were made by an earlier convention of intervals."""
    return "" if "intervals" in result else "By the convention of intervals before the one in force. "


def coverage(name: str, result: dict[str, Any]) -> str:
    """How often intervals hold the true value."""
    rows = [
        [
            row["population"],
            row["metric"],
            f"{100 * row['coverage']:.1f}",
            f"{row['relative_width']:.2f}",
            f"{100 * row['bootstrap_units_coverage']:.1f}",
            f"{100 * row['bootstrap_items_coverage']:.1f}",
            f"{100 * row['bootstrap_units_within_class_coverage']:.1f}",
        ]
        for row in result["rows"]
    ]
    short = [f"`{row['metric']}` ({row['population']})" for row in result["rows"] if row["coverage"] < 0.93]
    wide = [f"`{row['metric']}` ({row['population']})" for row in result["rows"] if row["relative_width"] > 1.5]
    columns = ["population (simulated)", "metric", "coverage", "width", "bootstrap: units", "items", "units in class"]
    return (
        f"## Do the intervals cover?\n\n{_convention(result)}"
        f"Share of {result['draws']:,} simulated test sets whose 95 % interval holds the expected score, in percent; "
        "mean width relative to the true sampling distribution; for comparison the coverage of percentile bootstraps "
        f"over units, over items, and over units within their class ({result['bootstrapped_draws']} test sets). "
        f"Below 93 %: {'; '.join(short) or 'none'}. Wider than 1.5 times: {'; '.join(wide) or 'none'}.\n\n"
        + table(columns, rows)
    )


def challenges(name: str, result: dict[str, Any]) -> str:
    """The same on populations of challenges, by metric."""
    rows = [
        [row["population"], row["metric"], f"{100 * row['coverage']:.1f}", f"{row['relative_width']:.2f}"]
        for row in result["rows"]
    ]
    short = sorted({row["metric"] for row in result["rows"] if row["coverage"] < 0.93})
    wide = sorted({row["metric"] for row in result["rows"] if row["relative_width"] > 1.5})
    title = "And for the other challenges?" if name == "challenges" else "And for the editions of 2021 to 2026?"
    return (
        f"## {title}\n\n{_convention(result)}"
        f"The same for {result['draws']} simulated test sets each, through the scorer itself. Below 93 %: "
        f"{', '.join(short) or 'none'}. Wider than 1.5 times: {', '.join(wide) or 'none'}.\n\n"
        + table(["population (simulated)", "metric", "coverage", "width"], rows)
    )


def ladder(name: str, result: dict[str, Any]) -> str:
    """What an adaptive team gains from the public board."""
    rules = ("plain", "one standard error", "ours", "reserve", "newcomers")
    rows = [
        [
            row["metric"],
            str(row["units"]),
            *(f"{row[rule]['gain']:.4f} ± {row[rule]['standard_error']:.4f}" if rule in row else "" for rule in rules),
        ]
        for row in sorted(result["rows"], key=lambda row: str(row["metric"]))
    ]
    covered = len({row["metric"] for row in result["rows"]})
    missing = f" Not simulated yet: {', '.join(result['missing'])}." if result["missing"] else ""
    return (
        "## Can a board be climbed by guessing? (simulated)\n\n"
        f"What a public score shows to have been gained by {result['runs']} runs that exchange answers at random and "
        "keep whatever the board calls better, for the exchange that works best; mean and standard error of "
        f"{result['attacks']} attacks, each on a test set of its own. The other answers, all together, score as those "
        "held do, so that the gain is luck. On a plain board, on one that asks for an improvement of one standard "
        "error, and on ours, which asks for a paired test at 0.001. Against ours, *reserve* withholds a fifth of the "
        "answers, known to be right, and spends one more with each run until the Ladder speaks: the gain beyond the "
        "reserve itself. *Newcomers* are ten accounts whose first scores are shown; admission and limits per person "
        f"are against them, not the Ladder. {covered} of the {result['deciding']} metrics that decide a benchmark."
        f"{missing}\n\n" + table(["metric", "units", "plain board", *rules[1:]], rows)
    )


def ladder_remedies(name: str, result: dict[str, Any]) -> str:
    """What other rules would let through, and what they would cost."""
    rows = [
        [
            row["rule"],
            *(f"{100 * row[attack]['gain']:.1f}" for attack in ("guesses", "reserve", *_FEWER)),
            f"{100 * row['honest']['shown']:.1f} of {100 * row['honest']['true']:.1f}",
            f"{row['honest']['releases']:.1f}",
            f"{row['honest']['good_run_shown']:.0%}",
        ]
        for row in result["rows"]
    ]
    error = max(row["reserve"]["standard_error"] for row in result["rows"])
    return (
        "## Would another Ladder hold against withheld answers? (simulated)\n\n"
        f"Top-1 of {result['units']} units, gains in points. An attacker exchanges guesses that are right as often as "
        f"the answers it holds, alone or beside a reserve of {result['reserved']:.0%} known answers, spent until the "
        f"Ladder speaks, in {result['runs']} runs, 10 and 30; for the exchange and the pace that work best, mean of "
        f"{result['attacks']} attacks (standard errors up to {100 * error:.1f}). An honest team improves by 0.4 points "
        "with each of fifty runs: what is shown of its gain, in how many releases, and how often one run that is four "
        f"points better is shown ({result['teams']} teams).\n\n"
        + table(
            ["rule", "guesses", "reserve", "in 10 runs", "in 30 runs", "honest gain shown", "releases", "good run"],
            rows,
        )
    )


_FEWER = ("reserve_in_10_runs", "reserve_in_30_runs")


def oracles(name: str, result: dict[str, Any]) -> str:
    """Whether every score is what the papers define."""
    of_all = result["rows"].values()
    cases, values, left_out = (sum(row[what] for row in of_all) for what in ("cases", "values", "left_out"))
    farthest = max(row["farthest"] for row in of_all)
    rows = [
        [name, f"{row['cases']:,}", f"{row['values']:,}", f"{row['left_out']:,}", f"{row['farthest']:.1e}"]
        for name, row in result["rows"].items()
    ]
    wrong = [f"{name}: {line}" for name, row in result["rows"].items() for line in row["differing"]]
    return (
        "## Are the scores what the papers define?\n\n"
        f"{cases:,} random cases (simulated) of all {len(rows)} benchmarks, each also scored by a program in plain "
        "Python that was written from the papers (the oracles of the tests): ties, empty lists, blank ranks, ids such "
        "as 007 and 7.0, scores from 1e-300 to 1e300, byte-order marks, CRLF, gzip. Compared are all metrics "
        f"and their values with each unit left out: {values:,} and {left_out:,} numbers. Farther apart than "
        f"{result['tolerance']:.0e}: {len(wrong) or 'none'}; the farthest pair differs by {farthest:.1e}.\n\n"
        + "".join(f"- {line}\n" for line in wrong)
        + table(["benchmark", "cases", "values", "left out", "largest difference"], rows)
    )


def fuzzing(name: str, result: dict[str, Any]) -> str:
    """How odd run files end: refused, scored, or a fault."""
    ends, shown = result["ends"], ("refused", "scored", "fault")
    rows = [
        [case, f"{sum(one.values()):,}", *(f"{one.get(end, 0):,}" for end in shown)]
        for case, one in result["by_case"].items()
    ]
    refused, scored, faults = (f"{ends.get(end, 0):,}" for end in shown)
    return (
        "## Do damaged files end in a sentence?\n\n"
        f"{result['files']:,} files of runs, truth, classes and media, damaged at random: {refused} were refused in a "
        f"sentence, {scored} could still be scored, {faults} ended otherwise or took longer than "
        f"{result['longest_allowed_s']} s. The largest process took {result['peak_mb_of_a_process']} MB.\n\n"
        + table(["case", "files", "refused", "scored", "faults"], rows)
    )


def endings(name: str, result: dict[str, Any]) -> str:
    """With which exit codes commands end."""
    rows = []
    for command, codes in result["exit_codes"].items():
        others = ", ".join(f"{times} with {code}" for code, times in codes.items() if code != "0")
        rows.append([command, f"{sum(codes.values()):,}", f"{codes.get('0', 0):,}", others or "none"])
    return (
        "## Do commands end as they should?\n\n"
        "Exit codes of commands on a tiny world (simulated), taken in turn; -6 is an abort after the answer. "
        "`pyarrow alone` reads tables from memory with `read_table`, as we did before, and shows that the fault can be "
        f"seen here. {result['asked_for']} runs of each command were asked for.\n\n"
        + table(["command", "runs", "exit code 0", "others"], rows)
    )


def mutations(name: str, result: dict[str, Any]) -> str:
    """How many planted mistakes the tests notice."""
    rows, equivalent = [], []
    for draw in result["draws"]:
        tried = draw["mutations"]
        given_a_test = sum(row["first_pass"] == "survived" and row["now"] == "killed" for row in tried)
        explained = [row for row in tried if row["now"] == "equivalent"]
        counts = (
            len(tried),
            draw["first_pass"].get("killed", 0),
            given_a_test,
            len(explained),
            draw["now"].get("unexplained", 0),
        )
        rows.append([f"seed {draw['seed']}: {draw['drawn']} of {draw['tokens']:,} tokens", *map(str, counts)])
        equivalent += [
            f"- `{row['path'].removeprefix('fieldmark/')}`: `{row['becomes']}`. {row['reason']}" for row in explained
        ]
    columns = ["drawn", "tried", "killed at first", "killed by a test since", "equivalent", "unexplained"]
    return (
        "## Do the tests notice a wrong scorer?\n\n"
        "One token of `metrics`, `runs`, `scoring` or `stats` is changed at random (a comparison, an operator, a "
        "number, a truth value, `min` for `max`), and the tests of that package run against it. A change that no test "
        "noticed got a test, or an explanation why nothing that is promised changes.\n\n"
        + table(columns, rows)
        + "\nThe equivalent ones, as the line became:\n\n"
        + "\n".join(equivalent)
        + "\n"
    )
