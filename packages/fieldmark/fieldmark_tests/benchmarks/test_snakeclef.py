"""SnakeCLEF."""

from __future__ import annotations

import math

import pytest
from sklearn.metrics import f1_score

import fieldmark


def test_snakeclef(run):
    truth, classes = {"id": ["x", "y"], "label": ["a", "b"]}, {"label": list("abc"), "poisonous": ["yes", "no", "no"]}
    content = "hashed_id,a,b,c\nx,0.5,0.25,0.25\ny,0.8,0.1,0.1\n"
    card = fieldmark.score("snakeclef-2020", run(content), truth=truth, classes=classes)
    assert card.metrics["log_loss"].value == pytest.approx(-(math.log(0.5) + math.log(0.1)) / 2, abs=1e-6)
    assert card.metrics["macro_f1_union"].value == pytest.approx(f1_score(["a", "b"], ["a", "a"], average="macro"))
    assert card.metrics["venom_cost"].value == 2  # harmless b taken for venomous a
