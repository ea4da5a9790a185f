"""Whether stated probabilities come true."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.reports.section import Context
from fieldmark.reports.sections import SECTIONS, reliability
from fieldmark_tests.reports.sections.first_answers import answers


def test_bands_hold_each_item_once_and_give_the_calibration_error(context: Context) -> None:
    rows = answers(context)
    assert context.confidence is not None
    bands = reliability.bands(context.confidence, context.correct, context.unit)
    assert sum(band.right.items for band in bands) == len(rows)
    gap = 0.0
    for band in bands:
        inside = [(truth == answer, sure) for truth, answer, sure in rows if band.low <= sure < band.high]
        assert band.right.items == len(inside)
        assert band.right.value == pytest.approx(np.mean([right for right, _ in inside]))
        gap += abs(sum(right - sure for right, sure in inside)) / len(rows)
    assert f"<strong>{100 * gap:.1f}%</strong>" in SECTIONS["reliability"].render(context)
