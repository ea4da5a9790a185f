"""Photos beside the training pictures of another domain that lie nearest to them: what a model may have compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark.reports.likeness import centered, features_of, model_on_features
from fieldmark.reports.markup import render
from fieldmark.reports.section import Context, Section
from fieldmark.reports.sections.confusions import CaptionedPhoto
from fieldmark.reports.sections.domains import asked_of
from fieldmark.tables.labels import UNKNOWN
from fieldmark.views.parts import Part

# How many right and how many wrong answers are shown, and how many sheets of a species are looked through.
SHOWN, SHEETS = 4, 40
SEED = 0


@dataclass(frozen=True)
class BesideSheets:
    """One photo with the nearest sheet of what it is, and of what it was taken for.

    Args:
        photo: The photo that was asked about.
        true: The nearest sheet of its species; None where training has none.
        answered: The nearest sheet of the answer; None where the answer is right, or has no sheet.
        truth, answer: The labels.
    """

    photo: CaptionedPhoto
    true: CaptionedPhoto | None
    answered: CaptionedPhoto | None
    truth: str
    answer: str

    @property
    def right(self) -> bool:
        return self.truth == self.answer


class NearestSheets(Section):
    """Right and wrong answers side by side with the sheets that lie nearest."""

    name = "nearest"
    title = "Nearest sheets"

    def applies(self, context: Context) -> bool:
        return asked_of(context) is not None and model_on_features(context) is not None

    def render(self, context: Context) -> str:
        return render("sections/nearest.html.j2", context=context, compared=compared(context), asked=asked_of(context))


def compared(context: Context) -> list[BesideSheets]:
    """A few right and a few wrong answers, drawn with a seed, the right ones first."""
    rng = np.random.default_rng(SEED)
    known = (context.truth != UNKNOWN) & (context.predicted != UNKNOWN)
    rows = [
        row
        for right in (True, False)
        for row in rng.permutation(np.flatnonzero(known & (context.correct == right)))[:SHOWN].tolist()
    ]
    part = context.opened.view.test if context.part == "test" else context.opened.view.val
    model = model_on_features(context)
    if not rows or part is None or model is None:
        return []
    sheets, labels = _sheets(context, {int(code) for row in rows for code in _codes(context, row)})
    if not len(sheets):
        return []
    # Less the mean of their domain: paper and daylight are no likeness of species.
    photos = centered(features_of(model, part))
    pressed = centered(features_of(model, sheets))
    place = {item: number for number, item in enumerate(part.item_ids)}

    def nearest(row: int, code: int) -> CaptionedPhoto | None:
        own = np.flatnonzero(labels == code)
        if not len(own):
            return None
        closeness = pressed[own] @ photos[place[str(context.predictions.items[row])]]
        item = str(sheets.item_ids[int(own[int(np.argmax(closeness))])])
        return CaptionedPhoto(item, context.thumbnail(item), context.title(context.labels.names[code]))

    results = []
    for row in rows:
        item, (true, answer) = str(context.predictions.items[row]), _codes(context, row)
        results.append(
            BesideSheets(
                photo=CaptionedPhoto(item, context.thumbnail(item)),
                true=nearest(row, true),
                answered=None if true == answer else nearest(row, answer),
                truth=context.labels.names[true],
                answer=context.labels.names[answer],
            )
        )
    return results


def _codes(context: Context, row: int) -> tuple[int, int]:
    return int(context.truth[row]), int(context.predicted[row])


def _sheets(context: Context, codes: set[int]) -> tuple[Part, NDArray[np.int32]]:
    """Training pictures of some labels from domains that are not asked about, and their labels."""
    train, items = context.opened.view.train, context.opened.items["train"]
    labels = context.labels.encode(items["label"])
    other = (items["domain"] != (asked_of(context) or "")).fill_null(False).to_numpy()
    rows = [row for code in sorted(codes) for row in np.flatnonzero((labels == code) & other)[:SHEETS].tolist()]
    return train.take(np.array(rows, dtype=np.int64)), labels[rows]


SECTION = NearestSheets()
