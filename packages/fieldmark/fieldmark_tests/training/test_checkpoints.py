"""Checkpoints: a training goes on only where nothing about it has changed."""

from __future__ import annotations

import pytest
import torch

from fieldmark.errors import InputError, MisuseError
from fieldmark.training.checkpoints import LAST, load_best, load_last, save_best, save_last


def test_a_training_goes_on_from_the_state_that_was_saved(tmp_path):
    assert load_last(tmp_path, {"lr": 1}) is None
    save_last(tmp_path, {"fingerprint": {"lr": 1}, "epoch": 3})
    assert load_last(tmp_path, {"lr": 1}) == {"fingerprint": {"lr": 1}, "epoch": 3}


def test_other_examples_and_unknown_settings_are_told_apart(tmp_path):
    save_last(tmp_path, {"fingerprint": {"lr": 1, "train labels": 5, "old": 1}})
    with pytest.raises(MisuseError) as refused:
        load_last(tmp_path, {"lr": 1, "train labels": 6, "new": 2})
    changes = "its train labels were others; it did not know the setting new; it knew the setting old."
    assert f"holds an unfinished training: {changes} Repeat that command" in str(refused.value)


def test_a_damaged_checkpoint_is_refused_by_name(tmp_path):
    (tmp_path / LAST).write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match=r"last\.pt: found a damaged checkpoint"):
        load_last(tmp_path, {})


def test_the_best_weights_come_back_as_they_were(tmp_path):
    weights = {"layer.weight": torch.arange(6.0).reshape(2, 3).T}
    save_best(tmp_path, weights)
    assert torch.equal(load_best(tmp_path)["layer.weight"], weights["layer.weight"])
