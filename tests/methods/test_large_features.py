"""Methods on features that lie in files: the same answers as in memory, and never a copy of all features there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from fieldmark.foundation import large_arrays
from fieldmark.foundation.large_arrays import MEMORY_SETTING, array_in_file
from fieldmark.labels import Labels
from fieldmark.methods import METHODS, knn
from fieldmark.methods.base import Method, features_of
from fieldmark.taxonomy import Taxonomy
from fieldmark.views import Part, View
from tests.lessons import part_of
from tests.peak_memory import peak_bytes

LABELS = Labels(tuple("abcde"))
# Items and features, so many that what a method learns is small beside them; fewer where all are compared.
MANY, FOR_NEIGHBORS = (16_000, 128), (4_000, 512)
# Methods that compute block by block, with settings that leave nothing long to do.
SETTINGS: dict[str, dict[str, object]] = {
    "centroid": {},
    "knn": {},
    "knn by majority": {"vote": "majority"},
    "lda": {},
    "linear": {"l2": 0.1, "iterations": 3},
    "prototypes": {"borrow": 1.0},
    "ridge": {},
}


def method_named(name: str) -> Method:
    return METHODS[name.split()[0]](**SETTINGS[name])


def drawn(seed: int, items: int, width: int) -> Part:
    """Items of four of the five labels, around means that are the same for every seed."""
    means = np.random.default_rng(0).normal(size=(5, width))
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, items).astype(np.int32)
    features = (means[truth] + rng.normal(0, 2, (items, width)) + 0.5).astype(np.float32)
    return part_of([f"{seed}-{row}" for row in range(items)], truth, features)


def view_of(items: int, width: int) -> View:
    taxa = pl.DataFrame({"label": LABELS.names, "genus": list("XXYYY")})
    train, val, test = (drawn(seed, number, width) for seed, number in ((1, items), (2, items // 4), (3, items // 4)))
    return View(LABELS, Taxonomy.of(LABELS, taxa), train, val, None, test)


def lying_in_a_file(part: Part) -> Part:
    return replace(part, features={name: array_in_file([values]) for name, values in part.features.items()})


@pytest.fixture
def in_files(monkeypatch, tmp_path):
    """Moves the features of a view into files; from then on nothing of their size is kept in memory."""

    def moved(view: View) -> View:
        monkeypatch.setenv(MEMORY_SETTING, "0")
        monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path))
        assert view.val is not None and view.test is not None
        train, val, test = (lying_in_a_file(part) for part in (view.train, view.val, view.test))
        return replace(view, train=train, val=val, test=test)

    return moved


def small_blocks(monkeypatch, number_of_bytes: int) -> None:
    monkeypatch.setattr(large_arrays, "BYTES_AT_ONCE", number_of_bytes)
    monkeypatch.setattr(large_arrays, "BYTES_MULTIPLIED_AT_ONCE", number_of_bytes)


def fitted_and_asked(name: str, view: View) -> tuple[dict[str, object], dict[str, np.ndarray], np.ndarray]:
    """The choices of a method, what it learned, and what it answers about test."""
    fitted = method_named(name).fit(view)
    assert view.test is not None
    return fitted.method.options, fitted.arrays, fitted.predict(view.test, LABELS).scores


@pytest.mark.parametrize("shape", [(400, 24), (90, 120)], ids=["more items than features", "more features than items"])
@pytest.mark.parametrize("name", SETTINGS)
def test_features_in_files_give_what_features_in_memory_give_to_the_last_bit(name, shape, in_files, monkeypatch):
    view = view_of(*shape)
    small_blocks(monkeypatch, 1 << 12)
    options, arrays, scores = fitted_and_asked(name, view)
    own_options, own_arrays, own_scores = fitted_and_asked(name, in_files(view))
    assert own_options == options and own_arrays.keys() == arrays.keys()
    assert all(np.array_equal(own_arrays[key], arrays[key]) for key in arrays)
    assert np.array_equal(own_scores, scores)


@pytest.mark.parametrize("name", SETTINGS)
def test_many_blocks_give_what_one_block_gives(name, monkeypatch):
    view = view_of(400, 24)
    options, _, scores = fitted_and_asked(name, view)
    small_blocks(monkeypatch, 1 << 12)
    own_options, _, own_scores = fitted_and_asked(name, view)
    # Sums of products in another order differ in the last bits of double precision, and answers in those of single.
    assert own_options == options and own_scores == pytest.approx(scores, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_no_method_copies_all_features_into_memory(name, in_files, monkeypatch):
    method_named(name).fit(view_of(40, 4))  # imports what it needs
    view = in_files(view_of(*(FOR_NEIGHBORS if name.startswith("knn") else MANY)))
    small_blocks(monkeypatch, 1 << 16)
    monkeypatch.setattr(knn, "BLOCK_ITEMS", 128)
    whole = features_of(view.train).nbytes
    # A copy of val alone would be a quarter of it.
    assert peak_bytes(lambda: fitted_and_asked(name, view)) < 0.24 * whole
