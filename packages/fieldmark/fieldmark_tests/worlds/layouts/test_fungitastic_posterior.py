from __future__ import annotations

import numpy as np
import pytest

from fieldmark_worlds.layouts.fungitastic import best_possible
from fieldmark_worlds.layouts.fungitastic_finds import EXTENTS, find
from fieldmark_worlds.layouts.fungitastic_posterior import open_posterior
from fieldmark_worlds.nature.nature import grow_nature


@pytest.mark.parametrize("seed", [0, 3])
def test_the_posterior_is_the_one_that_the_mark_of_the_world_speaks_of(seed):
    found = open_posterior("tiny", seed)
    assert found.labels[-1] == "-1" and len(set(found.items)) == len(found.items)
    assert found.probabilities.sum(axis=1) == pytest.approx(np.ones(len(found.items)))
    extent = EXTENTS["tiny"]
    nature = grow_nature(extent.nature, seed)
    known = best_possible(nature, find(nature, extent, seed))["open_expected_top_1"]
    assert found.probabilities.max(axis=1).mean() == pytest.approx(known, abs=1e-4)


def test_who_knows_the_context_as_well_is_expected_to_be_right_more_often():
    alone, beside = (open_posterior("tiny", 0, context=known) for known in (False, True))
    assert alone.items == beside.items and alone.labels == beside.labels
    assert beside.probabilities.sum(axis=1) == pytest.approx(np.ones(len(beside.items)))
    assert beside.probabilities.max(axis=1).mean() > alone.probabilities.max(axis=1).mean()
