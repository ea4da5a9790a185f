from __future__ import annotations

import json

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.fitting.repeats import fit_repeatedly, spread_of


def test_the_spread_of_scores_is_divided_into_test_and_split():
    rng = np.random.default_rng(0)
    splits, noise = rng.normal(0.6, 0.05, 4000), rng.normal(0, 0.03, 4000)
    values = dict(enumerate(splits + noise))
    spread = spread_of(values, dict.fromkeys(values, 0.03))
    assert spread.of_test == pytest.approx(0.03)
    assert spread.of_split == pytest.approx(0.05, abs=0.003)
    assert spread_of(values, dict.fromkeys(values, 0.2)).of_split == 0
    assert spread_of(values, dict.fromkeys(values)).of_split is None


def test_each_seed_is_a_run_of_its_own_and_none_is_made_twice(make_release, tmp_path):
    root, fitted = make_release(flat=True), []

    def fit(seed, folder):
        fitted.append(seed)
        return fieldmark.fit("folder", root, "frequent", folder, seed=seed)

    made = fit_repeatedly(3, 0, tmp_path / "runs", fit)
    assert fitted == [0, 1, 2]
    again = fit_repeatedly(4, 0, tmp_path / "runs", fit)
    assert fitted == [0, 1, 2, 3] and list(again.cards) == [0, 1, 2, 3]
    values = made.metrics["top_1"].values
    assert made.metrics["top_1"].mean == pytest.approx(np.mean(values)) and len(values) == 3
    kept = json.loads((tmp_path / "runs" / "repeats.json").read_text())
    assert kept["metrics"]["top_1"]["values"] == list(again.metrics["top_1"].values)


def test_one_run_has_no_spread(tmp_path):
    with pytest.raises(MisuseError, match="at least 2"):
        fit_repeatedly(1, 0, tmp_path, lambda seed, folder: None)
