"""Checkpoints at an address: a training goes on where its host was lost with its disk."""

from __future__ import annotations

from dataclasses import replace

import fsspec
import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark_tests.object_storage.buckets import Bucket
from fieldmark_tests.training.examples import HOW, interrupt, plain, train_stripes
from fieldmark_tests.training.test_loop import assert_same


def test_a_training_goes_on_from_a_bucket_after_its_disk_was_lost(bucket: Bucket, tmp_path):
    calls = 0

    def interrupted(raw, draws):
        nonlocal calls
        calls += draws is not None
        if calls == 14:
            interrupt()
        return plain(raw, draws)

    how = replace(HOW, checkpoint_minutes=60.0, checkpoints=f"s3://{bucket.name}/trainings")
    with pytest.raises(KeyboardInterrupt):
        train_stripes(tmp_path / "lost" / "birds.training", how, transform=interrupted)
    held = list(fsspec.filesystem("s3").find(f"{bucket.name}/trainings", refresh=True))
    folder = f"{bucket.name}/trainings/birds.training"
    assert held == [f"{folder}/best.safetensors", f"{folder}/last.pt", f"{folder}/log.jsonl"]

    whole = train_stripes(tmp_path / "whole", HOW)
    resumed = train_stripes(tmp_path / "new" / "birds.training", how)
    assert_same(whole.weights, resumed.weights, rtol=0, atol=0)
    for one, two in zip(whole.epochs, resumed.epochs, strict=True):
        assert (one["train_loss"], one["val"]) == (two["train_loss"], two["val"])

    place = f"s3://{bucket.name}/trainings/birds.training"
    with pytest.raises(MisuseError, match=f"^{place} holds an unfinished training: lr was .* remove {place} to start"):
        train_stripes(tmp_path / "new" / "birds.training", replace(how, lr=0.5))


def test_a_bucket_that_is_not_there_is_named(bucket: Bucket, tmp_path):
    how = replace(HOW, epochs=1, checkpoints="s3://no-such-bucket/trainings")

    def untouched(raw, draws):
        raise AssertionError("nothing is learned before it is known where to keep it")

    with pytest.raises(InputError, match="found no bucket called no-such-bucket"):
        train_stripes(tmp_path / "birds.training", how, transform=untouched)


def test_elsewhere_a_checkpoint_is_renamed_when_it_is_complete(tmp_path):
    how = replace(HOW, epochs=1, checkpoints=f"file://{tmp_path}/kept")
    train_stripes(tmp_path / "here" / "birds.training", how)
    kept = sorted(path.name for path in (tmp_path / "kept" / "birds.training").iterdir())
    assert kept == ["best.safetensors", "last.pt", "log.jsonl"]
