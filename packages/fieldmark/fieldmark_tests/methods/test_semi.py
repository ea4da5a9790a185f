"""Methods for few labels: what they make of unlabeled photos, and what they do not read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import MisuseError
from fieldmark.methods import METHODS
from fieldmark.methods.prototypes import Prototypes
from fieldmark.methods.semi.coarse import CoarsePseudoLabel
from fieldmark.methods.semi.heads import Oracle, SelfTraining, Supervised, propagate
from fieldmark.methods.semi.prototypes import CoarsePrototypes, UnlabeledPrototypes
from fieldmark.methods.semi.pseudo_labels import FixMatch, Guessing, PseudoLabel
from fieldmark.questions.targets import LabelTargets
from fieldmark.tables.labels import Labels
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.views.parts import Part, View
from fieldmark_tests.lessons import part_of

CLASSES, OUTSIDE, WIDTH = 8, 4, 12
LABELS = Labels(tuple("abcdefgh"))
SEMI = (
    "supervised", "pseudo-label", "pseudo-label-coarse", "fixmatch", "self-training", "label-propagation", "coarse",
    "prototypes-unlabeled", "prototypes-coarse",
)  # fmt: skip


def drawn(rng, means, each, prefix: str) -> Part:
    """So many items around each mean; classes past the labels have the code -1."""
    codes = np.repeat(np.arange(len(means)), each)
    features = (means[codes] + rng.normal(size=(len(codes), WIDTH))).astype(np.float32)
    known = np.where(codes < CLASSES, codes, -1).astype(np.int32)
    return part_of([f"{prefix}{n}" for n in range(len(codes))], known, features)


@pytest.fixture(scope="module")
def world():
    """Three labels of each class, many hidden, and a third of all unlabeled items out of class."""
    rng = np.random.default_rng(4)
    return world_of(rng, rng.normal(size=(CLASSES + OUTSIDE, WIDTH)) * 1.1)


PHYLUM_OF = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 2], dtype=np.int32)


def world_of(rng, means):
    phyla = ["x", "x", "x", "x", "y", "y", "y", "y"]
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame({"label": LABELS.names, "phylum": phyla}))
    unlabeled = drawn(rng, means, 25, "u")
    phylum = PHYLUM_OF[np.repeat(np.arange(len(means)), 25)]
    hidden = unlabeled.targets.codes
    told = replace(unlabeled, targets=LabelTargets(np.full(len(hidden), -1, np.int32), coarse={"phylum": phylum}))
    view = View(LABELS, taxonomy, drawn(rng, means[:CLASSES], 3, "l"), drawn(rng, means[:CLASSES], 5, "v"), told, None)
    return view, replace(unlabeled, targets=LabelTargets(hidden)), drawn(rng, means[:CLASSES], 60, "t")


def right(fitted, test) -> np.ndarray:
    return fitted.predict(test, LABELS).top(1)[:, 0] == test.truth


def test_the_oracle_is_not_worse_than_any_method_beyond_the_interval(world):
    view, with_hidden, test = world
    best = right(Oracle().fit(replace(view, unlabeled=with_hidden)), test)
    for name in SEMI:
        own = right(METHODS[name]().fit(view), test)
        gap = best.astype(float) - own.astype(float)
        assert gap.mean() + 1.96 * gap.std(ddof=1) / np.sqrt(len(gap)) >= 0, name
    assert best.mean() > right(Supervised().fit(view), test).mean()


def test_the_oracle_says_what_it_read_and_leaves_out_of_class_items_out(world):
    view, with_hidden, _ = world
    fitted = Oracle().fit(replace(view, unlabeled=with_hidden))
    assert fitted.remarks == (
        "An oracle: it read the hidden labels of 200 in-class unlabeled items; 100 out-of-class ones were left out.",
    )
    assert "hidden labels" in Oracle.learns_from
    assert all("hidden labels" not in METHODS[name].learns_from for name in SEMI)


@pytest.mark.parametrize("method", [CoarsePseudoLabel(threshold=0.1), CoarsePrototypes(weight=1)])
def test_a_stated_phylum_rules_labels_out(world, method):
    view, _, _ = world
    arrays = method.fit(view).arrays
    used, phylum = arrays["taught_weight"] > 0, view.unlabeled.targets.coarse["phylum"]
    assert used.any() and not used[phylum == 2].any()  # no label is of that phylum
    assert ((arrays["taught_as"][used] >= 4).astype(int) == phylum[used]).all()


def test_without_unlabeled_items_every_method_is_the_supervised_head_and_says_so(world):
    view, _, test = world
    alone = replace(view, unlabeled=None)
    expected = Supervised().fit(alone).predict(test, LABELS).scores
    fitted = SelfTraining().fit(alone)
    assert (fitted.predict(test, LABELS).scores == expected).all() and "no unlabeled items" in fitted.remarks[0]


@pytest.mark.parametrize("measure", ["distance", "cosine"])
def test_prototypes_without_unlabeled_items_or_weight_are_those_of_the_labels(world, measure):
    view, _, test = world
    expected = Prototypes(measure=measure).fit(view).predict(test, LABELS).scores
    alone = UnlabeledPrototypes(measure=measure).fit(replace(view, unlabeled=None))
    assert (alone.predict(test, LABELS).scores == expected).all() and "no unlabeled items" in alone.remarks[0]
    for method in (
        UnlabeledPrototypes(measure=measure, weight=0),
        CoarsePrototypes(measure=measure, weight=0, taxon_weight=0),
    ):
        assert np.allclose(method.fit(view).predict(test, LABELS).scores, expected, atol=1e-4)


def test_prototypes_gain_from_unlabeled_items_of_a_stated_phylum(world):
    view, _, test = world
    assert right(CoarsePrototypes().fit(view), test).mean() > right(Prototypes().fit(view), test).mean()


def test_what_a_taxon_looks_like_is_added_to_what_its_labels_look_like(world):
    view, _, test = world
    own = UnlabeledPrototypes(weight=0).fit(view).predict(test, LABELS).scores
    taxa = CoarsePrototypes(weight=0, taxon_weight=1.0, taxon_shrinkage=0.5)
    added = taxa.fit(view).predict(test, LABELS).scores - own
    assert np.ptp(added[:, :4], axis=1).max() < 1e-3 * np.ptp(added) > 0  # four labels of one phylum
    unstated = replace(view, unlabeled=replace(view.unlabeled, targets=None))
    alone = taxa.fit(unstated)
    assert np.allclose(alone.predict(test, LABELS).scores, own, atol=1e-4) and "no coarse labels" in alone.remarks[0]


@pytest.mark.parametrize(
    ("method", "weights"),
    [(UnlabeledPrototypes(), {"weight"}), (CoarsePrototypes(), {"weight", "taxon_weight", "taxon_shrinkage"})],
)
def test_the_weight_of_unlabeled_items_comes_from_val_and_is_kept(world, method, weights):
    view, _, _ = world
    fitted = method.fit(view)
    assert {one.name for one in fitted.chosen} == {"shrinkage", "borrow", *weights}
    assert fitted.method.fit(view.with_val_in_train()).method == fitted.method
    for name in weights:
        with pytest.raises(MisuseError, match=f"pass --set {name}="):
            replace(fitted.method, **{name: getattr(method, name)}).fit(replace(view, val=None))


def test_keeping_a_share_leaves_the_strangest_items_out(world):
    view, _, _ = world
    weights = PseudoLabel(threshold=0.01, keep=0.5, rounds=1).fit(view).arrays["taught_weight"]
    assert 0.45 <= (weights > 0).mean() <= 0.55


def test_thresholds_by_confidence_and_by_class():
    shares = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.45, 0.55]], dtype=np.float32)
    logits = shares.max(axis=1)
    assert Guessing(0.7).weights(shares, logits).tolist() == [1, 0, 1, 0]
    soft = Guessing(thresholds="softmatch").weights(shares, logits)
    assert soft[0] == soft[2] == 1 and 0 < soft[3] < soft[1] < 1
    # The mean confidence is 0.7125; the second class is guessed less often, so that 0.55 is enough there.
    assert Guessing(thresholds="freematch").weights(shares, logits).tolist() == [1, 0, 1, 1]


def test_alignment_makes_guesses_as_frequent_as_labels():
    shares = np.array([[0.9, 0.1], [0.9, 0.1]], dtype=np.float32)
    aligned = Guessing(align=True).shares(shares, np.array([0.5, 0.5], dtype=np.float32), None)
    assert np.allclose(aligned, 0.5)


def test_labels_spread_along_a_chain_of_neighbors():
    """Two arcs: the far ends are nearer to the other label by angle from it alone, and reached through their own."""
    angle = np.concatenate([[0.0, 3.0], np.arange(1, 15) * 0.1, 3.0 - np.arange(1, 15) * 0.1])
    features = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    taught = propagate(features, np.array([0, 1], dtype=np.int32), 2, neighbors=3, reach=0.9)
    assert taught.shares.argmax(axis=1).tolist() == [0] * 14 + [1] * 14


@pytest.mark.parametrize(
    "make",
    [
        lambda: PseudoLabel(thresholds="loose"),
        lambda: PseudoLabel(keep=0),
        lambda: SelfTraining(alpha=1.0),
        lambda: FixMatch(dropout=1.0),
        lambda: Supervised(l2=-1),
        lambda: CoarsePrototypes(taxon_shrinkage=2),
    ],
)
def test_impossible_settings_are_refused(make):
    with pytest.raises(MisuseError):
        make()
