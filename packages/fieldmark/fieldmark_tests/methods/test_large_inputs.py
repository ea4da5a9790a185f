"""Several inputs, domains and pairs of photos in blocks: what one block gives, without a copy of all features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fieldmark.features.alignment import principal_axes
from fieldmark.methods.clustering import pairs_of
from fieldmark.methods.joined import Joined
from fieldmark.methods.joint import fit_scaling, standardized
from fieldmark.work import large_arrays
from fieldmark.work.large_arrays import MEMORY_SETTING, array_in_file
from fieldmark_tests.methods.modalities_of_three import make_part, make_view
from fieldmark_tests.peak_memory import peak_bytes

NAMES = ("photo", "habitat")


@pytest.fixture
def small_blocks(monkeypatch, tmp_path):
    """Blocks of four kilobytes; nothing of the size of features is kept in memory."""
    monkeypatch.setenv(MEMORY_SETTING, "0")
    monkeypatch.setenv("FIELDMARK_CACHE", str(tmp_path))
    for name in ("BYTES_AT_ONCE", "BYTES_MULTIPLIED_AT_ONCE"):
        monkeypatch.setattr(large_arrays, name, 1 << 12)


def naive_table(part, means):
    columns = [np.where(part.missing[name][:, None], means[name], part.features[name]) for name in NAMES]
    return np.concatenate([*columns, *(part.missing[name][:, None] for name in NAMES)], axis=1).astype(np.float32)


def test_joined_inputs_are_those_of_one_block(small_blocks):
    part = make_part(5, 2_000, lacking=0.4)
    joined = Joined.fit(NAMES, part)
    means = {name: part.features[name][~part.missing[name]].mean(axis=0) for name in NAMES}
    assert np.array_equal(joined.means, np.concatenate([means[name] for name in NAMES]))
    assert np.array_equal(joined(part), naive_table(part, means))


def test_standardized_inputs_are_those_of_one_block(small_blocks):
    part = make_part(5, 2_000, lacking=0.4)
    scaling = fit_scaling((("photo",),), part)
    own = part.features["photo"][~part.missing["photo"]]
    assert np.array_equal(scaling["photo.mean"], own.mean(axis=0))
    assert np.array_equal(scaling["photo.spread"], own.std(axis=0))
    naive = np.where(part.missing["photo"][:, None], 0, (part.features["photo"] - own.mean(axis=0)) / own.std(axis=0))
    assert np.array_equal(standardized(part, "photo", scaling), naive.astype(np.float32))


def test_joined_and_standardized_inputs_take_no_copy_of_all_features(small_blocks):
    part = make_part(5, 4_000, lacking=0.4)
    wide = np.random.default_rng(0).normal(size=(4_000, 256)).astype(np.float32)
    part = replace(part, features={**part.features, "photo": array_in_file([wide])})
    Joined.fit(NAMES, make_part(6, 20))(make_part(6, 20))  # imports what it needs
    assert peak_bytes(lambda: Joined.fit(NAMES, part)(part)) < 0.24 * wide.nbytes
    assert peak_bytes(lambda: standardized(part, "photo", fit_scaling((("photo",),), part))) < 0.24 * wide.nbytes


def test_pairs_of_photos_are_those_of_one_block(small_blocks):
    view = make_view(items=60)
    view = replace(
        view,
        **{
            name: replace(getattr(view, name), features={"": getattr(view, name).features["photo"]})
            for name in ("train", "val")
        },
    )
    cosine, same = pairs_of(view)
    features = np.concatenate([view.val.features[""], view.train.features[""]])
    features = (features / np.linalg.norm(features, axis=1, keepdims=True)).astype(np.float64)
    truth = np.concatenate([view.val.truth, view.train.truth])
    pairs = [(one, other) for one in range(60) for other in range(one + 1, 120)]
    assert cosine == pytest.approx([features[one] @ features[other] for one, other in pairs], abs=1e-6)
    assert same.tolist() == [truth[one] == truth[other] for one, other in pairs]


def test_axes_of_many_rows_are_those_of_their_decomposition(small_blocks):
    rows = np.random.default_rng(1).normal(size=(300, 12)) * np.arange(1, 13)
    axes = principal_axes(rows, 5)
    naive = np.linalg.svd(rows, full_matrices=False)[2][:5].T
    assert np.abs(np.sum(axes * naive, axis=0)) == pytest.approx(np.ones(5), abs=1e-9)
