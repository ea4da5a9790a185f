"""Every dataset opens at an address as it does on disk: the same tables, parts, labels, layers and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.releases import DATASETS, Dataset, open_dataset, release_of
from fieldmark.releases.checks import CHECKS
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark_tests.object_storage.buckets import in_memory
from fieldmark_tests.object_storage.samples import sample

READ_MEDIA = 3


def assert_same(here: Dataset, there: Dataset) -> None:
    assert there.digest == here.digest and there.remarks == here.remarks
    assert there.simulated == here.simulated and set(there.layers) == set(here.layers)
    for media_id in here.media["media_id"][:READ_MEDIA]:
        data, where = there.read_medium(media_id), there.where(media_id)
        assert where.startswith(there.release.root)
        with there.open_medium(media_id) as file:
            assert data == file.read() == here.read_medium(media_id)


def assert_same_layers(here: Dataset, there: Dataset) -> None:
    for name, layer in here.layers.items():
        column = here.media["media_id"] if layer.by == "media_id" else here.observations["observation_id"]
        ids = column.to_list()[:READ_MEDIA]
        answers = [without_root(layers.layers[name].read(ids), layers.release.root) for layers in (here, there)]
        np.testing.assert_equal(answers[1], answers[0])


def without_root(value: Any, root: str) -> Any:
    """What a layer says, without the place that it says it of."""
    if isinstance(value, str):
        return value.replace(root, "ROOT")
    return [without_root(one, root) for one in value] if isinstance(value, (list, tuple)) else value


def assert_same_benchmark(name: str, here: Dataset, there: Dataset) -> None:
    try:
        local = open_benchmark(BENCHMARKS[name], here)
    except InputError:  # a sample need not hold what each benchmark of its dataset asks for
        with pytest.raises(InputError):
            open_benchmark(BENCHMARKS[name], there)
        return
    opened = open_benchmark(BENCHMARKS[name], there)
    assert opened.view.labels.names == local.view.labels.names
    assert all(opened.items[part].equals(local.items[part]) for part in ("train", "val", "unlabeled", "test"))
    assert all(opened.truth[part].rows.equals(local.truth[part].rows) for part in local.truth)


def told(name: str, root: str | Path) -> dict:
    report = CHECKS[name](release_of(name, root)).to_json()
    return {key: value for key, value in report.items() if key not in ("root", "problems")} | {
        "problems": [(one["severity"], one["what"], one["times"]) for one in report["problems"]]
    }


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_a_release_reads_alike_on_disk_in_memory_and_in_a_bucket(name, request, tmp_path, bucket):
    root = sample(name, request, tmp_path)
    here = open_dataset(name, root)
    assert_same(here, open_dataset(name, in_memory(root, name)))
    address = bucket.fill(root, name)
    there = open_dataset(name, address)
    assert_same(here, there)
    assert_same_layers(here, there)
    for benchmark in BENCHMARKS:
        if BENCHMARKS[benchmark].dataset == name and BENCHMARKS[benchmark].subset == "all":
            assert_same_benchmark(benchmark, here, there)
    if name in CHECKS:
        assert told(name, address) == told(name, root)
