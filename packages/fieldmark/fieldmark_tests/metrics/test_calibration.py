from __future__ import annotations

import numpy as np
import pytest

from fieldmark.metrics.calibration import expected_calibration_error, reliability


def test_every_item_falls_in_exactly_one_bin():
    confidence = np.linspace(0, 1, 101)
    assert reliability(confidence, confidence > 0.5).items.sum() == 101


def test_a_forecaster_who_is_right_as_often_as_stated_has_no_error():
    confidence = np.repeat([0.25, 0.75], 4)
    correct = np.array([1, 0, 0, 0, 1, 1, 1, 0], dtype=bool)
    assert expected_calibration_error(confidence, correct) == pytest.approx(0)


def test_full_confidence_belongs_to_the_last_bin():
    bands = reliability(np.array([0.95, 1.0]), np.array([True, False]))
    assert bands.items.tolist() == [2] and bands.accuracy.tolist() == [0.5]
