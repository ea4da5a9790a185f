"""The first look."""

from __future__ import annotations

import pytest

from fieldmark.reports.section import Context
from fieldmark.reports.sections import look
from fieldmark_tests.reports.sections.first_answers import answers


def test_the_first_look_shows_what_was_answered(context: Context) -> None:
    answer_of = dict(zip(context.predictions.items, answers(context), strict=True))
    shown = look.answers(context)
    assert len({one.item for one in shown}) == 12
    for one in shown:
        truth, answer, sure = answer_of[one.item]
        assert (one.truth, one.answer, one.right) == (truth, answer, truth == answer)
        assert one.confidence == pytest.approx(sure, rel=1e-5)
