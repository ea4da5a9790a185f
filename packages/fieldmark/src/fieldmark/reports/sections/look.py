"""A few photos drawn at random, with the answers: what the numbers are about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section

SHOWN = 12
SEED = 0


@dataclass(frozen=True)
class ShownItem:
    """One item with the truth and the first answer."""

    item: str
    picture: str
    truth: str
    answer: str
    right: bool
    confidence: float | None


class LookSection(Section):
    """Photos that nobody chose."""

    name = "look"
    title = "Sample predictions"

    def applies(self, context: Context) -> bool:
        return any(context.thumbnail(context.predictions.items[row]) for row in draw_rows(context))

    def render(self, context: Context) -> str:
        return render("sections/look.html.j2", context=context, answers=answers(context))


def draw_rows(context: Context) -> list[int]:
    """A few rows drawn with a fixed seed, at most one per unit while units last."""
    order = np.random.default_rng(SEED).permutation(len(context.truth))
    _, first_of_unit = np.unique(context.unit[order], return_index=True)
    return [int(row) for row in order[np.sort(first_of_unit)][:SHOWN]]


def answers(context: Context) -> list[ShownItem]:
    """The drawn items that have a photo."""
    shown = []
    for row in draw_rows(context):
        item = context.predictions.items[row]
        picture = context.thumbnail(item)
        if picture is None:
            continue
        shown.append(
            ShownItem(
                item=item,
                picture=picture,
                truth=context.labels.decode([context.truth[row]], unknown="unknown species")[0],
                answer=context.answer(row),
                right=bool(context.correct[row]),
                confidence=None if context.confidence is None else float(context.confidence[row]),
            )
        )
    return shown


SECTION = LookSection()
