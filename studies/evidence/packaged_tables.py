"""Tables about the packaged photo model, and about start-up."""

from __future__ import annotations

from typing import Any

from scipy.special import betaincinv

from studies.evidence.markdown import table

CALLED = {
    "fungi_genera": "fungi, nine genera",
    "fungi_amanita": "Amanita, by specimen",
    "birds_cub_odd": "birds (CUB, test)",
    "snakes_philippines": "snakes of the Philippines",
}
RANKS = ("species", "genus", "family", "order", "class", "kingdom")


def packaged_photos(name: str, result: dict[str, Any]) -> str:
    """What the packaged model claims about photos of organisms most of which it does not know."""
    text = (
        "## The packaged photo model\n\n"
        "`fieldmark identify PHOTO` without a model, on photos of species that it mostly does not know. Wrong species: "
        "photos (specimens of *Amanita*) about which a species is claimed that it is not, with exact 95 % intervals. "
        "Then claims at each rank, and how many of them are wrong.\n\n"
    )
    text += _sets(result["sets"])
    first = result["first_lines"]
    text += (
        f"\nLines: {_lines(result['reference']['lines'])}, from {result['reference']['photos']} reference photos. Two "
        f"rules were changed after a look at these photos; with the first lines ({_lines(first['lines'])}) it was:\n\n"
    )
    return text + _sets(first["sets"])


def _sets(sets: dict[str, Any]) -> str:
    rows = []
    for key, one in sets.items():
        value, low, high = (f"{100 * number:.1f}" for number in one["wrong_species_claims"])
        claims = one["claims_and_wrong_by_rank"]
        by_rank = [f"{claims[rank][0]}, wrong {claims[rank][1]}" if rank in claims else "-" for rank in RANKS]
        rows.append(
            [
                CALLED[key],
                str(one["photos"]),
                f"{value} [{low}, {high}] %",
                f"{100 * one['called_unknown']:.0f} %",
                *by_rank,
            ]
        )
    return table(["", "photos", "wrong species", "none that I know", *RANKS], rows)


def _lines(lines: dict[str, float]) -> str:
    return ", ".join(f"{rank} {line:g}" for rank, line in lines.items())


def living_groups(name: str, result: dict[str, Any]) -> str:
    """How often the packaged network tells what group a photo shows, and how often it warns."""
    tried = result["lines_tried"]
    lines = ", ".join(f"{group} {line:g}" for group, line in tried["chosen"]["lines"].items())
    text = (
        "## What group a photo shows, and when to be careful\n\n"
        "The packaged network decides whether a fungus or a snake is plausible, whatever model gives the names, by a "
        "rule that was fitted to no photos. "
        "Species of each set in turn settled its round numbers and measure; *Amanita* without field sheets, microscopy "
        "and mere habitat. First interval: exact, over photos; second: jackknife over species. "
        f"Every whole notice is false but those on fungi and snakes. Plausible from: {lines}.\n\n"
    )
    rows = []
    for group, one in result["groups"].items():
        shares = [_both(one[key]) for key in ("told_right", "whole_notice", "nothing_said")]
        rows.append([group, str(one["photos"]), str(one["species"]), *shares])
    columns = ["", "photos", "species", "told right %", "whole notice %", "nothing said %"]
    text += (
        table(columns, rows) + f"\n{_others(result)}Whole notices on the photos that choose, in percent, by lines:\n\n"
    )
    groups = list(tried["chosen"]["whole_notices"])
    told = [
        [
            key if key == "chosen" else f"{100 * float(key):.0f} % missed",
            *(f"{100 * one['whole_notices'][group]:.1f}" for group in groups),
        ]
        for key, one in tried.items()
    ]
    text += table(["lines", *groups], told) + "\nWords beside the group (`identify` uses them everywhere):\n\n"
    words = [
        [word, str(one["given"]), f"{100 * one['stated']:.1f}", f"{100 * one['right'] / one['given']:.1f}"]
        for word, one in result["words"].items()
    ]
    return text + table(["", "photos", "stated %", "right %"], words)


def _others(result: dict[str, Any]) -> str:
    """Pictures of no organism, and what a fitted head would do, in a sentence each."""
    other, fitted = result["other"], result["fitted_head"]["groups"]
    shares = ", ".join(
        f"{group} {100 * one['told_right']['share']:.1f} / {100 * one['whole_notice']['share']:.1f}"
        for group, one in fitted.items()
    )
    said = (
        ""
        if other is None
        else (
            f"Of {other['pictures']} sample pictures without an organism, {other['told_right']} were told as such "
            f"{_exact(other['told_right'], other['pictures'])}, {other['told_as']['plants']} as plants; "
            f"{other['whole_notice']} got the whole notice {_exact(other['whole_notice'], other['pictures'])}.\n\n"
        )
    )
    return (
        f"{said}A linear head fitted to the photos that choose (told right / whole notice, %): {shares}. It is not "
        "shipped: those photos are for research only, and a set can be learned in place of its group.\n\n"
    )


def _exact(number: int, of: int) -> str:
    low = float(betaincinv(number, of - number + 1, 0.025)) if number else 0.0
    high = float(betaincinv(number + 1, of - number, 0.975)) if number < of else 1.0
    return f"({100 * number / of:.1f} % [{100 * low:.1f}, {100 * high:.1f}])"


def _both(share: dict[str, Any]) -> str:
    bounds = (f"{100 * low:.1f}, {100 * high:.1f}" for low, high in (share["over_photos"], share["over_species"]))
    return f"{100 * share['share']:.1f} [{'] ['.join(bounds)}]"


def startup(name: str, result: dict[str, Any]) -> str:
    """How long commands take from the shell."""
    rows = []
    for command, one in result["commands"].items():
        before = f"{one['before_cpu_s']:.2f}" if "before_cpu_s" in one else ""
        limit = f"{one['limit_s']:g} s" if "limit_s" in one else ""
        rows.append(
            [
                command,
                f"{one['wall_s']:.2f}",
                f"{one['cpu_s']:.2f}",
                before,
                f"{one['cpu_over_empty_python']:.0f}",
                f"{one['cpu_over_import_torch']:.2f}",
                f"{one['peak_gib']:.2f}",
                limit,
            ]
        )
    columns = ["", "seconds", "CPU s", "CPU s before", "CPU / empty Python", "CPU / import torch", "GiB", "limit"]
    return (
        f"## Speed: start-up\n\nThe least of {result['rounds']} runs each, in turn, on {result['cores']} cores that "
        "others used as well; seconds on the clock depend on them, CPU seconds little.\n\n" + table(columns, rows)
    )
