"""Worlds of Semi-iNat and Semi-Aves: the layouts, the recipe behind them, and what a view keeps back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from PIL import Image

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.features.settings import FeatureSettings
from fieldmark.fitting.fit_part import shown_to
from fieldmark.methods import METHODS
from fieldmark.methods.base import truth_of
from fieldmark.methods.linear import Linear
from fieldmark.models.supply import FeatureSource
from fieldmark.questions.targets import LabelTargets
from fieldmark.releases import open_dataset
from fieldmark.releases.checks import CHECKS
from fieldmark.splits.semi_supervised import SemiSupervised
from fieldmark.storage.release import Release
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.views.parts import Part
from fieldmark_worlds.layouts import semi


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


SEMI = ("supervised", "pseudo-label", "pseudo-label-coarse", "fixmatch", "self-training", "label-propagation", "coarse")
NETWORKS = ("fixmatch-network", "ccssl", "coarse-network", "distillation", "moco")


@pytest.fixture(scope="module")
def supplied(opened):
    """The view with features of its photos and one label of each class, and the hidden labels of all others."""
    source, view = FeatureSource(FeatureSettings(size=128)), opened.view
    parts = {name: source.supply(getattr(view, name), what=name) for name in ("train", "val", "unlabeled", "test")}
    codes = truth_of(view.train)
    kept = np.isin(np.arange(len(codes)), np.unique(codes, return_index=True)[1])
    coarse = {rank: view.taxonomy.ranks[rank][1][codes[~kept]] for rank in view.unlabeled.targets.coarse}
    unknown = LabelTargets(np.full((~kept).sum(), -1, dtype=np.int32), coarse=coarse)
    hidden_now = replace(parts["train"].take(~kept), targets=unknown)
    unlabeled = Part.concat([hidden_now, parts["unlabeled"]])
    fewer = replace(view, **parts | {"train": parts["train"].take(kept), "unlabeled": unlabeled})
    return fewer, np.concatenate([codes[~kept], opened.hidden])


def test_on_photos_of_a_world_the_oracle_is_not_worse_than_any_method_beyond_the_interval(opened, supplied):
    view, hidden = supplied
    assert (hidden >= 0).sum() > 5 * len(view.train)
    label_of = dict(opened.items["test"].select("item_id", "label").iter_rows())
    true = view.labels.encode(pl.Series([label_of[item] for item in view.test.item_ids]))

    def right(name):
        method = METHODS[name]()
        fitted = method.fit(shown_to(method, view, hidden))
        return (fitted.predict(view.test, view.labels).top(1)[:, 0] == true).astype(float)

    best = right("oracle")
    for name in SEMI:
        gap = best - right(name)
        assert gap.mean() + 1.96 * gap.std(ddof=1) / np.sqrt(len(gap)) >= 0, name
    assert best.mean() > right("supervised").mean()


@pytest.mark.parametrize("name", [*SEMI, *NETWORKS])
def test_no_method_that_does_not_declare_it_is_handed_a_hidden_label(opened, name):
    method = METHODS[name]()
    assert "hidden labels" not in method.learns_from
    shown = shown_to(method, opened.view, opened.hidden).unlabeled
    if shown is None:
        assert "unlabeled" not in method.learns_from
        return
    assert shown.targets is None or (shown.targets.codes == -1).all()
    assert not {"label", "hidden_label", "membership"} & set(shown.items.columns)
    assert bool(shown.targets is not None and shown.targets.coarse) == ("coarse" in method.learns_from)
