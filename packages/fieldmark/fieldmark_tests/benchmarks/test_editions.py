"""Editions of a challenge side by side."""

from __future__ import annotations

import pytest

from fieldmark.benchmarks.editions import challenges, editions
from fieldmark.errors import MisuseError


def test_editions_stand_in_the_order_of_years_and_say_what_changed():
    birds = editions("birdclef")
    assert [one.year for one in birds] == list(range(2020, 2027))
    assert birds[0].changed == ()
    assert birds[3].changed == ("question", "run", "metric")
    assert birds[4].changed == ("metric",) and birds[5].changed == ()
    assert birds[3].run == "row_id,<classes>"


def test_what_rests_on_no_published_source_is_marked():
    marked = {one.benchmark for name in challenges() for one in editions(name) if one.provisional}
    assert marked == {"birdclef-2021", "fungiclef-2022", "plantclef-2024", "snakeclef-2021", "snakeclef-2022"}


def test_a_challenge_that_is_not_there_is_refused_with_one_that_is():
    with pytest.raises(MisuseError, match="Did you mean birdclef"):
        editions("birdclf")
