"""Site and season priors answer as they did before priors had a package of their own."""

from __future__ import annotations

import datetime

import polars as pl
import pytest

from fieldmark.steps import step_from_data, step_to_data
from fieldmark.steps.priors.groups import SeasonPrior, SitePrior
from fieldmark_tests.lessons import learned
from fieldmark_tests.steps.test_sound_steps import soundscapes

# Weight, shifts of one group, and the scores of three items, as version 0.1.0 computed them.
BEFORE = {
    SitePrior: (
        1.0,
        ("NORTH", [0.2823, -0.2199, 0.1451, -0.6256]),
        [
            [0.04403788596391678, 0.4910581409931183, 0.7616699934005737, 0.3908909559249878],
            [0.027745725587010384, 0.1164272353053093, 0.08352900296449661, 0.22115173935890198],
            [0.07778457552194595, 0.07424720376729965, 0.08899524062871933, 0.06324958056211472],
        ],
    ),
    SeasonPrior: (
        0.25,
        ("05", [-0.0139, -0.4112, -0.2192, -0.1914]),
        [
            [0.0642499178647995, 0.44821852445602417, 0.7922525405883789, 0.3052610754966736],
            [0.04079929366707802, 0.09985765814781189, 0.09808935970067978, 0.1627691090106964],
            [0.11167590320110321, 0.0632508397102356, 0.1043999046087265, 0.04418713599443436],
        ],
    ),
}


@pytest.mark.parametrize("kind", BEFORE)
def test_the_numbers_are_those_of_version_0_1_0(kind):
    predictions, truth, items = soundscapes()
    dates = [datetime.date(2020, 4 + (row // 24) % 3, 3) if row % 50 else None for row in range(len(items))]
    items = items.with_columns(date=pl.Series(dates))
    step = learned(kind(), predictions, truth, items)
    weight, (group, shifts), scores = BEFORE[kind]
    assert step.weight == weight and step.shifts[group] == pytest.approx(shifts)
    saved = {"step": step.name, "weight": step.weight, "shifts": step.shifts}
    assert step_to_data(step) == saved  # the fields that stored models have
    assert step_from_data(saved).apply(predictions, items).scores[[0, 100, 200]] == pytest.approx(
        pl.DataFrame(scores, orient="row").to_numpy(), abs=1e-7
    )
