"""Every wrong answer in a list that can be filtered: by class, by answer, by file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from fieldmark.reports.markup import as_download, render
from fieldmark.reports.section import UNKNOWN_SPECIES, Context, Section
from fieldmark.tables.labels import UNKNOWN

# More rows than this make a page slow; the file to download has all of them.
MOST_ROWS = 3000


@dataclass(frozen=True)
class WrongAnswer:
    """One item that was answered wrong; `confidence` is None where the scores only rank."""

    item: str
    truth: str
    answer: str
    confidence: float | None


class Errors(Section):
    """All wrong answers, the surest first."""

    name = "errors"
    title = "All errors"

    def applies(self, context: Context) -> bool:
        return not bool(context.correct.all())

    def render(self, context: Context) -> str:
        rows = wrong_answers(context)
        return render(
            "sections/errors.html.j2",
            context=context,
            rows=rows[:MOST_ROWS],
            total=len(rows),
            sure=context.confidence is not None,
            errors_csv=as_download(pl.DataFrame([vars(row) for row in rows], infer_schema_length=None)),
        )


def wrong_answers(context: Context) -> list[WrongAnswer]:
    """The items that were answered wrong, most confident first."""
    wrong = np.flatnonzero(~context.correct)
    confidence = context.confidence
    order = wrong if confidence is None else wrong[np.argsort(-confidence[wrong], kind="stable")]
    return [
        WrongAnswer(
            item=str(context.predictions.items[row]),
            truth=UNKNOWN_SPECIES if code == UNKNOWN else context.title(context.labels.names[code]),
            answer=context.title(context.answer(row)),
            confidence=None if confidence is None else float(confidence[row]),
        )
        for row in order.tolist()
        for code in (int(context.truth[row]),)
    ]


SECTION = Errors()
