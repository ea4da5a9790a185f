"""Methods on features that lie in files: the same answers as in memory, and never a copy of all features there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from fieldmark.methods import METHODS, knn
from fieldmark.methods.base import Method, features_of
from fieldmark.methods.semi import heads
from fieldmark.steps import novelty
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View
from fieldmark.work import large_arrays
from fieldmark.work.large_arrays import MEMORY_SETTING, array_in_file
from fieldmark_tests.lessons import part_of
from fieldmark_tests.peak_memory import peak_bytes

LABELS = Labels(tuple("abcde"))
# Items and features, so many that what a method learns is small beside them; fewer where all items are compared.
MANY, FOR_NEIGHBORS = (16_000, 128), (5_000, 192)
# Methods that compute block by block, with settings that leave nothing long to do.
SETTINGS: dict[str, dict[str, object]] = {
    "centroid": {},
    "em": {"borrow": 1.0, "iterations": 3},
    "knn": {},
    "knn by majority": {"vote": "majority"},
    "label-propagation": {"l2": 0.1, "iterations": 3, "neighbors": 2},
    "lda": {},
    "linear": {"l2": 0.1, "iterations": 3},
    "openset": {"score": "all", "classifier": "centroid"},
    "openset with labels held out": {"score": "all", "classifier": "centroid", "choose": "held-out", "held_out": 0.3},
    "prototypes": {"borrow": 1.0},
    "pseudo-label": {"l2": 0.1, "iterations": 3, "rounds": 1, "threshold": 0.5},
    "ridge": {},
    "self-training": {"l2": 0.1, "iterations": 3},
    "supervised": {"l2": 0.1, "iterations": 3},
}
COMPARES_ALL = ("knn", "knn by majority", "label-propagation", "openset", "openset with labels held out")
# What may be held of the features of train; a copy of val alone would be a quarter. Graphs and names of items count.
# With labels held out in rounds, every item of train has a dozen scores, which 192 features are few beside.
MOST = {"label-propagation": 0.5, "openset": 0.75, "openset with labels held out": 1.75}


def method_named(name: str) -> Method:
    return METHODS[name.split()[0]](**SETTINGS[name])


def drawn(seed: int, items: int, width: int, *, unknown: bool = False) -> Part:
    """Items of four of the five labels, around means that are the same for every seed; where asked, some unknown."""
    means = np.random.default_rng(0).normal(size=(5, width))
    rng = np.random.default_rng(seed)
    species = rng.integers(0, 5, items)
    species = np.where(species == 4, 4 if unknown else 0, species)
    features = (means[species] + rng.normal(0, 2, (items, width)) + 0.5).astype(np.float32)
    truth = np.where(species == 4, -1, species).astype(np.int32)
    return part_of([f"{seed}-{row}" for row in range(items)], truth, features)


def view_of(name: str, items: int, width: int) -> View:
    """What a method is shown: unknown items of val and unlabeled ones where it looks at them."""
    taxa = pl.DataFrame({"label": LABELS.names, "genus": list("XXYYY")})
    method, few = METHODS[name.split()[0]], items // 4
    val = drawn(2, few, width, unknown=method.wants_unknown)
    unlabeled = drawn(4, few, width).unlabeled() if "unlabeled" in method.learns_from else None
    train, test = drawn(1, items, width), drawn(3, few, width)
    return View(LABELS, Taxonomy.of(LABELS, taxa), train, val, unlabeled, test)


def lying_in_a_file(part: Part) -> Part:
    return replace(part, features={name: array_in_file([values]) for name, values in part.features.items()})


@pytest.fixture
def in_files(monkeypatch, tmp_path):
    """Moves the features of a view into files; from then on nothing of their size is kept in memory."""

    def moved(view: View) -> View:
        monkeypatch.setenv(MEMORY_SETTING, "0")
        monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path))
        parts = {name: getattr(view, name) for name in ("train", "val", "unlabeled", "test")}
        return replace(view, **{name: part and lying_in_a_file(part) for name, part in parts.items()})

    return moved


def small_blocks(monkeypatch, number_of_bytes: int, items: int) -> None:
    for name in ("BYTES_AT_ONCE", "BYTES_MULTIPLIED_AT_ONCE"):
        monkeypatch.setattr(large_arrays, name, number_of_bytes)
    monkeypatch.setattr(large_arrays, "LOGIT_ITEMS", items)
    for module in (knn, heads, novelty):
        monkeypatch.setattr(module, "BLOCK_ITEMS", items)


def fitted_and_asked(name: str, view: View) -> tuple[dict[str, object], dict[str, np.ndarray], np.ndarray]:
    """The choices of a method, what it learned, and what it answers about test."""
    fitted = method_named(name).fit(view)
    assert view.test is not None
    answer = fitted.predict(view.test, LABELS)
    unknown = () if answer.unknown is None else (answer.unknown,)
    return fitted.method.options, fitted.arrays, np.column_stack([answer.scores, *unknown])


@pytest.mark.parametrize("shape", [(400, 24), (90, 120)], ids=["more items than features", "more features than items"])
@pytest.mark.parametrize("name", SETTINGS)
def test_features_in_files_give_what_features_in_memory_give_to_the_last_bit(name, shape, in_files, monkeypatch):
    view = view_of(name, *shape)
    small_blocks(monkeypatch, 1 << 12, 16)
    options, arrays, scores = fitted_and_asked(name, view)
    own_options, own_arrays, own_scores = fitted_and_asked(name, in_files(view))
    assert own_options == options and own_arrays.keys() == arrays.keys()
    assert all(np.array_equal(own_arrays[key], arrays[key]) for key in arrays)
    assert np.array_equal(own_scores, scores)


@pytest.mark.parametrize("name", SETTINGS)
def test_many_blocks_give_what_one_block_gives(name, monkeypatch):
    view = view_of(name, 400, 24)
    options, _, scores = fitted_and_asked(name, view)
    small_blocks(monkeypatch, 1 << 12, 16)
    own_options, _, own_scores = fitted_and_asked(name, view)
    # Sums of products in another order differ in the last bits of double precision, and answers in those of single.
    assert own_options == options and own_scores == pytest.approx(scores, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_no_method_copies_all_features_into_memory(name, in_files, monkeypatch):
    fitted_and_asked(name, view_of(name, 40, 4))  # imports what it needs
    view = in_files(view_of(name, *(FOR_NEIGHBORS if name in COMPARES_ALL else MANY)))
    small_blocks(monkeypatch, 1 << 16, 128)
    whole = features_of(view.train).nbytes
    assert peak_bytes(lambda: fitted_and_asked(name, view)) < MOST.get(name, 0.24) * whole
