import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from fieldmark.errors import InputError, MisuseError
from fieldmark.training.logs import Log
from fieldmark_tests.training.examples import EXAMPLES, HOW, interrupt, plain, train_stripes


def assert_same(first, second, **tolerance):
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        np.testing.assert_allclose(tensor.numpy(), second[name].numpy(), err_msg=name, **tolerance)


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_killed_training_goes_on_to_the_same_weights(example, tmp_path):
    train = EXAMPLES[example]
    whole = train(tmp_path / "whole")
    command = [
        sys.executable,
        "-m",
        "fieldmark_tests.training.examples",
        str(tmp_path / "killed"),
        "--example",
        example,
    ]
    killed = subprocess.run([*command, "--die-at", "14"], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert torch.load(tmp_path / "killed" / "last.pt", weights_only=True)["step_in_epoch"] > 0  # not between epochs
    resumed = train(tmp_path / "killed")
    assert_same(whole.weights, resumed.weights, rtol=0, atol=0)
    for one, two in zip(whole.epochs, resumed.epochs, strict=True):
        assert (one["val"], one["train_loss"]) == (two["val"], two["train_loss"])


def test_it_learns_and_keeps_the_best_epoch(tmp_path):
    trained = train_stripes(tmp_path, replace(HOW, epochs=12, lr=0.03))
    values = [line["val"]["top_1"] for line in trained.epochs]
    assert max(values) > 0.6  # a quarter by chance
    assert trained.best_epoch == values.index(max(values)) + 1


@pytest.mark.parametrize("example", EXAMPLES)
def test_accumulated_parts_make_the_step_of_the_whole_batch(example, tmp_path):
    whole = EXAMPLES[example](tmp_path / "whole", dropout=0.0)
    parts = EXAMPLES[example](tmp_path / "parts", replace(HOW, accumulate=4), dropout=0.0)
    assert_same(whole.weights, parts.weights, rtol=1e-3, atol=1e-5)


def test_an_interrupted_training_is_saved_and_goes_on(tmp_path):
    calls = 0

    def interrupted(raw, draws):
        nonlocal calls
        calls += 1
        if calls == 7:
            interrupt()  # in the middle of a step, which is finished first
        return plain(raw, draws)

    rare = replace(HOW, checkpoint_minutes=60.0)
    with pytest.raises(KeyboardInterrupt):
        train_stripes(tmp_path / "cut", rare, transform=interrupted)
    resumed = train_stripes(tmp_path / "cut", rare)
    assert_same(train_stripes(tmp_path / "whole").weights, resumed.weights, rtol=0, atol=0)


def test_another_training_in_the_folder_is_not_overwritten(tmp_path):
    train_stripes(tmp_path)
    with pytest.raises(MisuseError) as refused:
        train_stripes(tmp_path, replace(HOW, lr=0.1))
    assert str(refused.value) == (
        f"{tmp_path} holds an unfinished training: lr was {HOW.lr} and is now 0.1. "
        f"Repeat that command to finish it, or remove {tmp_path} to start over."
    )


def test_a_damaged_checkpoint_is_named(tmp_path):
    train_stripes(tmp_path)
    for damage in (b"", b"not a checkpoint", (tmp_path / "last.pt").read_bytes()[:400]):
        (tmp_path / "last.pt").write_bytes(damage)
        with pytest.raises(InputError, match=r"last\.pt: found a damaged checkpoint.*Remove .* to start over"):
            train_stripes(tmp_path)


def test_a_finished_training_is_not_done_again(tmp_path):
    first = train_stripes(tmp_path)

    def untouched(raw, draws):
        raise AssertionError("there is nothing left to do")

    assert_same(first.weights, train_stripes(tmp_path, transform=untouched).weights, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"accumulate": 128, "batch": 128}, "more than an epoch has examples"),
        ({"loss": "cross-entorpy"}, "Did you mean cross-entropy"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_a_sentence(tmp_path, change, sentence):
    with pytest.raises(MisuseError, match=sentence):
        train_stripes(tmp_path, replace(HOW, **change))


def test_an_epoch_smaller_than_a_batch_gets_a_smaller_batch_and_a_remark(tmp_path):
    trained = train_stripes(tmp_path, replace(HOW, batch=1024, epochs=1))
    assert trained.best_epoch == 1
    assert len(trained.remarks) == 1 and "batch=1024 is more than an epoch has examples" in trained.remarks[0]
    assert train_stripes(tmp_path / "enough", replace(HOW, epochs=1)).remarks == ()


@pytest.mark.parametrize("mixup", [0.0, 0.4])
def test_labels_may_be_several_at_once(tmp_path, mixup):
    from fieldmark.training.loop import train
    from fieldmark.training.objectives import SeveralLabels
    from fieldmark_tests.training.examples import CLASSES, Stripes, network

    source, val = Stripes(64), Stripes(16)
    for part in (source, val):
        object.__setattr__(part, "labels", np.eye(CLASSES, dtype=np.float32)[part.labels])
    how = replace(HOW, loss="binary", best_by="top_1", mixup=mixup, epochs=2)
    objective = SeveralLabels(CLASSES)
    assert train(network(0.0), source, val, plain, how, objective=objective, scratch=tmp_path).best_epoch


def test_trackers_are_told_what_the_log_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    train_stripes(tmp_path / "run", replace(HOW, epochs=2, trackers="tensorboard, mlflow"))
    assert any((tmp_path / "run" / "tensorboard").glob("events.*"))
    metrics = [path.name for path in (tmp_path / "mlruns").rglob("metrics/*")]
    assert "val.top_1" in metrics and "train_loss" in metrics
    with pytest.raises(MisuseError, match="Did you mean mlflow"):
        train_stripes(tmp_path / "other", replace(HOW, trackers="mlflo"))


def test_a_log_that_was_cut_off_in_the_middle_of_a_line_goes_on(tmp_path):
    log = Log(tmp_path, HOW)
    log.write(1, loss=2.0)
    with log.path.open("a") as file:
        file.write('{"step": 2, "lo')
    log.keep_until(5)
    assert log.read() == [{"step": 1, "loss": 2.0}]
