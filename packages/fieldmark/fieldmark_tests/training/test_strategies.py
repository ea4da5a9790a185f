"""Two processes that share a training: as one would learn, and after one of them was killed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from fieldmark.errors import MisuseError
from fieldmark.training.checkpoints import BEST
from fieldmark.training.logs import Log
from fieldmark_tests.training.examples import EXAMPLES, HOW, train_stripes
from fieldmark_tests.training.test_loop import assert_same
from fieldmark_tests.training.two_processes import ALIKE, KILLED, WHOLE, Shared


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all trainings of two processes; torchrun starts them again after each of two that die on purpose.

    It may do so more often: where one process is no more, the other may be ended by gloo at a time of its own.
    """
    folder = tmp_path_factory.mktemp("shared")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "--max-restarts=6"]
    script = ["-m", "fieldmark_tests.training.two_processes", str(folder)]
    # Without it, processes that are started again find the addresses of those before (pytorch/pytorch#135712).
    own_store = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    done = subprocess.run([*command, *script], capture_output=True, text=True, check=False, env=own_store)
    assert done.returncode == 0, done.stderr
    return folder


def epochs(folder: Path) -> list[dict[str, Any]]:
    return [line for line in Log(folder, HOW).read() if "val" in line]


@pytest.mark.parametrize("training", ALIKE, ids=lambda one: one.folder)
def test_two_processes_learn_as_one_does(training: Shared, shared: Path, tmp_path):
    alone = EXAMPLES[training.example](tmp_path / "one", dropout=0.0)
    together = epochs(shared / training.folder)
    assert len(together) == 5
    for one, two in zip(alone.epochs, together, strict=True):
        assert one["train_loss"] == pytest.approx(two["train_loss"], rel=1e-4)
        assert one["val"]["loss"] == pytest.approx(two["val"]["loss"], rel=1e-4)
    assert_same(alone.weights, load_file(shared / training.folder / BEST), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("killed", "whole"), list(zip(KILLED, WHOLE, strict=True)), ids=["ddp", "fsdp"])
def test_after_a_process_was_killed_the_losses_are_those_of_an_undisturbed_training(killed, whole, shared: Path):
    assert (shared / f"{killed.folder}.died").exists()
    first, second = (Log(shared / one.folder, HOW).read() for one in (whole, killed))
    assert [line.get("loss") for line in first] == [line.get("loss") for line in second]
    for one, two in zip(epochs(shared / whole.folder), epochs(shared / killed.folder), strict=True):
        assert (one["train_loss"], one["val"]) == (two["train_loss"], two["val"])
    weights = (load_file(shared / one.folder / BEST) for one in (whole, killed))
    assert_same(*weights, rtol=0, atol=0)


def test_one_process_has_nobody_to_share_a_network_with(tmp_path):
    with pytest.raises(MisuseError, match="strategy=fsdp shares a network among processes"):
        train_stripes(tmp_path, replace(HOW, strategy="fsdp"))
