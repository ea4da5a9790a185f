from __future__ import annotations

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.datasets import open_dataset
from fieldmark.opening import ALWAYS_VISIBLE, open_benchmark

TABLE = """file,observation,date,latitude,longitude,habitat,genus,poisonous,notes
train/Alba alba/0-0.jpg,o1,2021-09-30,55.5,9.5,bog,Alba,1,looks like Alba alba
"""


def test_a_method_sees_only_the_inputs_the_task_allows(make_release):
    root = make_release()
    (root / "observations.csv").write_text(TABLE)
    view = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", root)).view
    assert set(view.train.items.columns) == {*ALWAYS_VISIBLE, "date", "lat", "lon", "habitat"}


def test_labels_of_test_are_not_in_the_view_but_kept_for_the_scorer(make_release):
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", make_release()))
    assert opened.view.test.truth is None and opened.view.train.truth is not None
    assert set(opened.truth) == {"val", "test"}
    assert opened.truth["test"].items == opened.view.test.item_ids


def test_train_and_val_together_lose_nothing(make_release):
    view = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", make_release())).view
    together = view.with_val_in_train()
    assert together.val is None
    assert together.train.item_ids == view.train.item_ids + view.val.item_ids
    assert together.train.truth.tolist() == [*view.train.truth, *view.val.truth]
