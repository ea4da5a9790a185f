"""Worlds of Semi-iNat and Semi-Aves: the layouts, the recipe behind them, and what a view keeps back."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from PIL import Image

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.datasets import open_dataset
from fieldmark.datasets.checking import CHECKS
from fieldmark.fitting.learning import shown_to
from fieldmark.methods.linear import Linear
from fieldmark.opening import open_benchmark
from fieldmark.release import Release
from fieldmark.splits.semi_supervised import SemiSupervised
from fieldmark.worlds.layouts import semi


@pytest.fixture(scope="module")
def inat(tmp_path_factory):
    root = tmp_path_factory.mktemp("semi") / "inat"
    return root, semi.write_inat(root, size="tiny", seed=1)


@pytest.fixture(scope="module")
def opened(inat):
    return open_benchmark(BENCHMARKS["semi-inat-2021"], open_dataset("semi-inat-2021", inat[0]))


def test_the_world_is_sound_and_marked(inat):
    root, mark = inat
    report = CHECKS["semi-inat-2021"](Release(root), media=True)
    assert report.sound and report.simulated and mark["dataset"] == "semi-inat-2021"
    assert {one.part: one.found.photos for one in report.counts}["u_train"] == mark["counts"]["unlabeled"]["photos"]


def test_it_has_three_kingdoms_and_eight_phyla_and_photos_of_at_most_300_px(inat, opened):
    assert opened.dataset.taxa["kingdom"].n_unique() == 3 and opened.dataset.taxa["phylum"].n_unique() == 8
    with Image.open(inat[0] / opened.dataset.media["path"][0]) as photo:
        assert max(photo.size) <= 300


def test_a_view_holds_coarse_labels_in_the_codes_of_its_taxonomy_and_no_other(opened):
    targets = opened.view.unlabeled.targets
    assert (targets.codes == -1).all() and set(targets.coarse) == {"kingdom", "phylum"}
    taxa, taxon_of = opened.view.taxonomy.ranks["phylum"]
    inside = opened.hidden >= 0
    assert 0 < inside.sum() < len(inside)
    assert (targets.coarse["phylum"][inside] == taxon_of[opened.hidden[inside]]).all()
    told = opened.items["unlabeled"]["phylum"].to_list()
    assert [taxa.names[code] for code in targets.coarse["phylum"]] == told


class Declares(Linear):
    learns_from = ("train", "unlabeled")


class DeclaresCoarse(Linear):
    learns_from = ("train", "unlabeled", "coarse")


class DeclaresHidden(Linear):
    learns_from = ("train", "unlabeled", "hidden labels")


def test_a_view_hands_hidden_labels_to_methods_that_declare_them_and_to_no_other(opened):
    assert shown_to(Linear(), opened.view, opened.hidden).unlabeled is None
    assert shown_to(Declares(), opened.view, opened.hidden).unlabeled.targets is None
    coarse = shown_to(DeclaresCoarse(), opened.view, opened.hidden).unlabeled
    assert (coarse.targets.codes == -1).all() and coarse.targets.coarse
    told = shown_to(DeclaresHidden(), opened.view, opened.hidden).unlabeled.targets
    assert (told.codes == opened.hidden).all() and not told.coarse
    # Nor do the items themselves say it, whatever the method.
    columns = set(opened.view.unlabeled.items.columns)
    assert not columns & {"label", "hidden_label", "membership", "phylum", "species"}


def test_val_and_test_have_as_many_photos_of_each_class_as_the_recipe_says(inat, opened):
    recipe: SemiSupervised = semi.EXTENTS["tiny"].recipe
    for part, number in (("val", recipe.val), ("test", recipe.public + recipe.private)):
        counts = opened.items[part].group_by("label").len()["len"]
        assert counts.unique().to_list() == [number] and len(counts) == len(opened.view.labels)


def test_the_world_of_birds_opens_with_both_kinds_of_unlabeled_photos(tmp_path, monkeypatch):
    monkeypatch.setattr(semi, "paint_organisms", lambda *_: None)  # the painting is tested above
    semi.write_aves(tmp_path / "aves", size="tiny", seed=2)
    opened = open_benchmark(BENCHMARKS["semi-aves-2020"], open_dataset("semi-aves-2020", tmp_path / "aves"))
    members = dict(opened.items["unlabeled"].group_by("membership").len().iter_rows())
    assert set(members) == {"in-class", "out-of-class"}
    assert (np.asarray(opened.hidden) >= 0).sum() == members["in-class"]
    assert opened.truth["test"].rows.height == opened.items["test"].height
    assert opened.items["test"].select(pl.col("item_id").cast(pl.Int64)).height  # numbers, as runs call them
