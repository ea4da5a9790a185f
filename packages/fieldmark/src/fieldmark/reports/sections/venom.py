"""Venomous snakes that are called harmless, and those that are taken for another venomous one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark.reports.charts.estimates import Share, share
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.reports.sections.costs import LIKELIEST, costs_of, dangerous_labels, rule_and_prices, shown_answers

VENOM = "venom"


@dataclass(frozen=True)
class VenomTally:
    """What happens to venomous snakes under one way to answer.

    Args:
        title: The way to answer.
        called_harmless: The share of venomous ones that get a harmless species.
        other_venomous: The share that get another venomous species: the wrong antivenom.
        false_alarms: The share of harmless ones that get a venomous species.
        right: The share of venomous ones that get their own species.
    """

    title: str
    called_harmless: Share
    other_venomous: Share
    false_alarms: Share | None
    right: Share


class VenomSection(Section):
    """Mistakes by kind, of venomous and of harmless snakes, for the likeliest and for the cheapest answer."""

    name = "venom"
    title = "Venom"

    def applies(self, context: Context) -> bool:
        if context.probabilities is None or rule_and_prices(context)[0] != VENOM:
            return False
        return bool(np.append(dangerous_labels(context), False)[context.truth].any())

    def render(self, context: Context) -> str:
        tallies = venom_tallies(context)
        return render(
            "sections/venom.html.j2",
            context=context,
            tallies=tallies,
            first=next(one for one in tallies if one.title == LIKELIEST),
            venomous=tallies[0].right.items,
        )


def venom_tallies(context: Context) -> list[VenomTally]:
    """One row for each way to answer that the costs know."""
    costs = costs_of(context)
    assert costs is not None  # a rule of venom is one of the task or of the run
    return [
        venom_tally(title, context.truth, answers, np.append(dangerous_labels(context), False), context.unit)
        for title, answers in shown_answers(context, costs).items()
    ]


def venom_tally(
    title: str,
    truth: NDArray[np.int32],
    answers: NDArray[np.int32],
    venomous: NDArray[np.bool_],
    unit: NDArray[np.int32],
) -> VenomTally:
    """Shares of mistakes by kind.

    Args:
        title: The way to answer.
        truth: The true label of each item; at least one is venomous.
        answers: The answer for each.
        venomous: One flag per label, and a last one for unknown.
        unit: The independent unit of each item.
    """
    is_venomous, says_venomous, wrong = venomous[truth], venomous[answers], truth != answers
    harmless = ~is_venomous
    return VenomTally(
        title,
        share(~says_venomous[is_venomous], unit[is_venomous]),
        share((says_venomous & wrong)[is_venomous], unit[is_venomous]),
        share(says_venomous[harmless], unit[harmless]) if harmless.any() else None,
        share(~wrong[is_venomous], unit[is_venomous]),
    )


SECTION = VenomSection()
