"""What lives at a site, or is heard in a season."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import MisuseError
from fieldmark.steps.priors.groups import SeasonPrior, SitePrior
from fieldmark_tests.lessons import learned
from fieldmark_tests.steps.soundscapes import soundscapes


def test_a_site_prior_lifts_what_lives_there_and_leaves_unknown_sites_alone():
    predictions, truth, items = soundscapes()
    step = learned(SitePrior(), predictions, truth, items)
    assert step.weight > 0 and step.shifts["NORTH"][0] > 0 > step.shifts["NORTH"][3]
    elsewhere = items.with_columns(site=pl.lit("EAST"))
    assert step.apply(predictions, elsewhere).scores == pytest.approx(predictions.scores, abs=1e-6)
    nowhere = items.with_columns(site=pl.lit(None, pl.String))
    assert step.apply(predictions, nowhere).scores == pytest.approx(predictions.scores, abs=1e-6)


def test_a_group_that_tells_nothing_gets_no_shift():
    predictions, truth, items = soundscapes()  # one month only
    step = learned(SeasonPrior(), predictions, truth, items)
    assert np.abs(step.shifts["05"]).max() < 0.05


def test_a_prior_without_its_column_is_misuse():
    predictions, truth, items = soundscapes()
    with pytest.raises(MisuseError, match="needs to know the site of each item"):
        learned(SitePrior(), predictions, truth, items.drop("site"))


def test_what_scored_exactly_0_was_ruled_out_and_stays_so():
    predictions, truth, items = soundscapes()
    step = SitePrior(weight=1.0, shifts={"NORTH": [5.0] * 4, "SOUTH": [5.0] * 4})
    ruled_out = predictions.with_scores(np.where(truth, predictions.scores, 0), "score")
    assert not step.apply(ruled_out, items).scores[~truth].any()
