"""What the methods for few photos promise: votes, prototypes that borrow, and EM over the photos asked about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.neighbors import KNeighborsClassifier

from fieldmark.errors import MisuseError
from fieldmark.features.embeddings import quantized, unit_rows
from fieldmark.labels import Labels
from fieldmark.methods.base import features_of
from fieldmark.methods.centroid import Centroid
from fieldmark.methods.covariance import Covariance
from fieldmark.methods.em import Transductive
from fieldmark.methods.hierarchy import RankTree, Variances
from fieldmark.methods.knn import NearestNeighbors
from fieldmark.methods.prototypes import Prototypes
from fieldmark.taxonomy import Taxonomy
from fieldmark.views import Part, View
from tests.lessons import part_of

LABELS = Labels(tuple("abcdef"))
GENERA = {"label": list("abcdef"), "genus": ["X", "X", "X", "Y", "Y", None], "family": ["F"] * 6}


def part(features: np.ndarray, truth: list[int] | np.ndarray | None, name: str = "i") -> Part:
    ids = [f"{name}{row}" for row in range(len(features))]
    return part_of(ids, None if truth is None else np.asarray(truth), np.asarray(features, dtype=np.float32))


def view(train: Part, val: Part | None = None, taxa: dict | None = None) -> View:
    taxonomy = Taxonomy.of(LABELS, pl.DataFrame(taxa or {"label": LABELS.names}))
    return View(LABELS, taxonomy, train, val, None, None)


@pytest.fixture
def birds() -> tuple[View, Part, np.ndarray]:
    """Six species in three genera, few photos of each, and 300 photos to be answered."""
    rng = np.random.default_rng(1)
    genus = rng.normal(size=(3, 20)) * 1.5
    means = genus[[0, 0, 0, 1, 1, 2]] + rng.normal(size=(6, 20)) * 0.8

    def photos(truth: np.ndarray) -> np.ndarray:
        return means[truth] + rng.normal(size=(len(truth), 20)) + 5

    train_truth = np.array([0, 0, 0, 0, 1, 2, 2, 3, 4, 4])  # "f" has no photo at all, "b" and "d" one each
    val_truth, test_truth = np.tile(np.arange(5), 8), np.tile(np.arange(5), 60)
    shown = view(part(photos(train_truth), train_truth), part(photos(val_truth), val_truth, "v"), GENERA)
    return shown, part(photos(test_truth), None, "t"), test_truth


def answers(method, shown: View, asked: Part) -> np.ndarray:
    return method.fit(shown).predict(asked, LABELS).top(1)[:, 0]


# --- votes


@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_majority_of_neighbors_decides_as_in_scikit_learn_where_it_is_one(k):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 6, 200)
    features = rng.normal(size=(6, 8))[truth] + rng.normal(size=(200, 8))
    asked = rng.normal(size=(80, 8))
    reference = KNeighborsClassifier(k, metric="cosine").fit(features, truth)
    share = reference.predict_proba(asked)
    clear = (share == share.max(axis=1, keepdims=True)).sum(axis=1) == 1
    ours = answers(NearestNeighbors(k=k, vote="majority"), view(part(features, truth)), part(asked, None))
    assert clear.sum() > 20 and (ours[clear] == reference.predict(asked)[clear]).all()


def test_of_labels_with_equal_votes_the_one_with_the_nearest_photo_wins():
    train = part([[1, 0.1], [1, 0.3], [1, 0.2], [1, 0.5]], [0, 0, 1, 1])
    fitted = NearestNeighbors(k=4, vote="majority").fit(view(train))
    predicted = fitted.predict(part([[1, 0.2], [1, 0.09]], None), LABELS)
    assert predicted.top(2).tolist() == [[1, 0], [0, 1]]


def test_labels_without_votes_follow_by_their_nearest_photo_and_those_without_photos_come_last():
    train = part(np.eye(4, 5) + np.array([0, 0, 0, 0, 0.5]), [3, 2, 4, 1])
    scores = NearestNeighbors(k=1, vote="majority").fit(view(train)).predict(part([[4, 3, 1, 2, 0]], None), LABELS)
    assert scores.top(6).tolist() == [[3, 2, 1, 4, 0, 5]]
    assert np.exp(scores.scores).sum() == pytest.approx(1, abs=1e-5)


def test_a_vote_is_never_outweighed_by_nearness_however_many_vote():
    rng = np.random.default_rng(2)
    features = np.concatenate([rng.normal(size=(60, 3)) * 0.1 + [1, 0, 0.2], [[1, 0, 0]]])
    truth = [0] * 31 + [1] * 29 + [2]
    ours = answers(
        NearestNeighbors(k=61, vote="majority", floor=0.9), view(part(features, truth)), part([[1, 0, 0]], None)
    )
    assert ours.tolist() == [0]


def test_equally_near_photos_count_in_the_order_of_their_labels_whatever_their_order_in_train():
    same = np.ones((4, 3))
    for truth in ([4, 2, 3, 2], [2, 3, 2, 4]):
        for k in (1, 2, 3):
            ours = answers(NearestNeighbors(k=k, vote="majority"), view(part(same, truth)), part(same[:1], None))
            assert ours.tolist() == [2]


# --- the organizers' embeddings


def test_quantized_embeddings_are_what_the_organizers_store_and_read():
    features = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    stored = ((unit + 1) * 127.5).astype(np.uint8)
    assert quantized(features) == pytest.approx(stored / 255 * 2 - 1, abs=1e-6)
    lengths = np.linalg.norm(quantized(features), axis=1)
    assert (np.abs(lengths - 1) > 1e-4).all()  # not scaled to length one again


def test_given_lengths_rank_by_inner_product_and_unit_lengths_by_cosine():
    train, asked = part([[3.0, 3.0], [1.0, 0.0]], [0, 1]), part([[1.0, 0.1]], None)
    for lengths, expected in (("given", 0), ("unit", 1)):
        assert answers(NearestNeighbors(k=1, vote="majority", lengths=lengths), view(train), asked).tolist() == [
            expected
        ]


def test_centroids_of_given_lengths_let_longer_features_pull_more():
    train = part([[4.0, 0.0], [0.0, 1.0]], [0, 0])
    centroids = {kind: Centroid(lengths=kind).fit(view(train)).arrays["centroids"][0] for kind in ("unit", "given")}
    assert centroids["unit"] == pytest.approx(np.array([1, 1]) / 2**0.5)
    assert centroids["given"] == pytest.approx(np.array([4, 1]) / 17**0.5)


def test_a_centroid_of_zeros_wins_only_where_the_organizers_let_it():
    train, asked = part([[1.0, 0.0], [0.8, 0.6]], [0, 1]), part([[-1.0, 0.0]], None)
    assert answers(Centroid(absent="zero"), view(train), asked).tolist() == [2]
    assert answers(Centroid(), view(train), asked).tolist() == [1]


# --- borrowing


def means_by_linear_algebra(tree_ranks, counts, means, variances) -> np.ndarray:
    """The posterior means of species from one large linear system: photos, species, genera and the root as unknowns."""
    genus = tree_ranks[0]
    n, g = len(counts), genus.max() + 1
    precision = np.zeros((n + g + 1, n + g + 1))
    right = np.zeros((n + g + 1, means.shape[1]))
    for species in range(n):
        precision[species, species] += counts[species] / variances.photos
        right[species] += counts[species] / variances.photos * means[species]
    edges = [(s, n + genus[s], variances.levels[0]) for s in range(n)] + [
        (n + k, n + g, variances.levels[1]) for k in range(g)
    ]
    for child, parent, tau2 in edges:
        precision[[child, parent], [child, parent]] += 1 / tau2
        precision[[child, parent], [parent, child]] -= 1 / tau2
    return np.linalg.solve(precision, right)[:n], np.linalg.inv(precision).diagonal()[:n]


def test_one_pass_up_and_one_down_give_the_exact_posterior():
    rng = np.random.default_rng(3)
    genus, counts = np.array([0, 0, 1, 1, 1], dtype=np.int32), np.array([1, 4, 2, 1, 9])
    means, variances = rng.normal(size=(5, 3)), Variances(0.7, (0.3, 1.1))
    found = RankTree([genus], counts, means, 1.0).posterior(variances)[0]
    expected, variance = means_by_linear_algebra([genus], counts, means, variances)
    assert found.means == pytest.approx(expected) and found.variance == pytest.approx(variance)


def test_the_variances_that_made_the_photos_are_found_again():
    rng = np.random.default_rng(4)
    genus = np.repeat(np.arange(60), 6)
    centers = rng.normal(0, 2.0, (60, 8))[genus] + rng.normal(0, 0.5, (360, 8))
    counts = rng.integers(1, 5, 360)
    species = np.repeat(np.arange(360), counts)
    photos = centers[species] + rng.normal(0, 1.0, (len(species), 8))
    means = np.stack([photos[species == one].mean(axis=0) for one in range(360)])
    scatter = float(((photos - means[species]) ** 2).sum())
    found = RankTree([genus.astype(np.int32)], counts, means, scatter).estimate()
    assert found.photos == pytest.approx(1.0, rel=0.1)
    assert found.levels == pytest.approx((0.25, 4.0), rel=0.25)


def test_a_species_with_one_photo_is_drawn_to_its_genus_and_more_than_one_with_many():
    variances = Variances(1.0, (0.5, 2.0))
    genus, counts = np.array([0, 0, 0, 1], dtype=np.int32), np.array([1, 20, 20, 20])
    means = np.array([[4.0], [0.0], [0.0], [10.0]])
    found = RankTree([genus], counts, means, 60.0).posterior(variances)
    species, genera = found[0], found[1]
    assert species.borrowed[0] > 0.6 > 0.1 > species.borrowed[1]
    assert abs(species.means[0, 0] - genera.means[0, 0]) < abs(means[0, 0] - genera.means[0, 0])
    assert 4.0 > species.means[0, 0] > 0 and abs(species.means[3, 0] - 10) < 0.5


def test_a_species_of_unknown_genus_is_in_a_genus_of_its_own():
    unknown, own = (
        RankTree([np.array(taxa, dtype=np.int32)], np.ones(3), np.eye(3), 0.0) for taxa in ([0, -1, -1], [0, 1, 2])
    )
    variances = Variances(1.0, (1.0, 1.0))
    assert unknown.posterior(variances)[0].means == pytest.approx(own.posterior(variances)[0].means)


def test_prototypes_that_borrow_nothing_are_the_class_means(birds):
    shown, asked, _ = birds
    fitted = Prototypes(shrinkage=0.5, borrow=0).fit(shown)
    x, truth = unit_rows(features_of(shown.train)).astype(float), shown.train.truth
    means = np.stack([x[truth == code].mean(axis=0) for code in range(5)])
    from fieldmark.methods.prototypes import BorrowedClasses

    weights, bias = BorrowedClasses.of(shown).covariance.discriminants(means, 0.5)
    expected = unit_rows(features_of(asked)) @ weights.T + bias
    assert fitted.predict(asked, LABELS).scores[:, :5] == pytest.approx(expected, rel=1e-3)


def test_prototypes_need_no_taxonomy_and_no_second_photo_of_any_species():
    rng = np.random.default_rng(5)
    train = part(rng.normal(size=(6, 4)) + 3, np.arange(6))
    predicted = Prototypes().fit(view(train, train)).predict(train, LABELS)
    assert np.isfinite(predicted.scores).all() and predicted.top(1)[:, 0].tolist() == list(range(6))


@pytest.mark.parametrize("method", [Prototypes(), Transductive()], ids=["prototypes", "em"])
def test_what_is_left_open_comes_from_val_and_is_kept_for_the_final_fit(method, birds):
    shown, _, _ = birds
    fitted = method.fit(shown)
    assert fitted.method.shrinkage > 0 and fitted.method.borrow > 0
    assert fitted.method.fit(shown.with_val_in_train()).method == fitted.method
    with pytest.raises(MisuseError, match="on val, and there is none"):
        method.fit(replace(shown, val=None))


# --- covariance


@pytest.mark.parametrize("n", [6, 40], ids=["fewer rows than columns", "more"])
def test_whitening_makes_the_shrunk_covariance_a_ball(n):
    rng = np.random.default_rng(6)
    deviations = rng.normal(size=(n, 10)) * np.arange(1, 11)
    found = Covariance.of(deviations, n)
    plain = deviations.T @ deviations / n
    shrunk = 0.7 * plain + 0.3 * np.trace(plain) / 10 * np.eye(10)
    root = found.whitened(np.eye(10), 0.3)
    assert root @ shrunk @ root.T == pytest.approx(np.eye(10), abs=1e-8)
    weights, bias = found.discriminants(np.eye(10), 0.3)
    assert weights == pytest.approx(np.linalg.inv(shrunk), rel=1e-3, abs=1e-6)
    assert bias == pytest.approx(-0.5 * np.linalg.inv(shrunk).diagonal(), rel=1e-3)


# --- EM


def test_em_without_rounds_or_weight_answers_as_prototypes(birds):
    shown, asked, _ = birds
    plain = answers(Prototypes(), shown, asked)
    for method in (Transductive(iterations=0), Transductive(weight=0.0)):
        assert (answers(method, shown, asked) == plain).all()


def test_em_moves_means_towards_the_photos_asked_about():
    """Two clusters whose single training photos lie at their edges: only the photos asked about tell where they are."""
    rng = np.random.default_rng(7)
    truth = np.repeat([0, 1], 100)
    across = np.where(truth == 0, 0.0, 2.0) + rng.normal(0, 0.35, 200)
    asked = np.column_stack([across, 4 + rng.normal(0, 0.35, 200)])
    train, val = part([[-1.0, 4.0], [1.4, 4.0]], [0, 1]), part(asked[::10], truth[::10])
    shown, photos = view(train, val), part(asked, None)
    settings = {"shrinkage": 0.99, "borrow": 0.0}
    before = (answers(Prototypes(**settings), shown, photos) == truth).mean()
    moved = Transductive(**settings, weight=1.0, confidence=20.0)
    assert (answers(moved, shown, photos) == truth).mean() > before


def test_em_depends_on_what_is_asked_together_and_not_on_its_order(birds):
    shown, asked, _ = birds
    fitted = Transductive().fit(shown)
    scores = fitted.predict(asked, LABELS).scores
    order = np.random.default_rng(8).permutation(len(asked))
    assert fitted.predict(asked.take(order), LABELS).scores == pytest.approx(scores[order], rel=1e-3, abs=1e-3)
    assert not np.allclose(fitted.predict(asked.take([0]), LABELS).scores, scores[:1], rtol=1e-3)


def test_em_gives_a_photo_between_two_species_to_the_more_frequent_one_only_where_it_learns_frequencies():
    train = part([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    asked = part([*[[0.0, 1.0]] * 50, [0.7, 0.7]], None)
    settings = {"shrinkage": 0.99, "borrow": 0.0, "weight": 0.0, "confidence": 1.0}
    flat, learned = (
        Transductive(**settings, frequencies=how).fit(view(train)).predict(asked, LABELS).scores[-1, :2]
        for how in ("flat", "estimated")
    )
    assert learned[1] - learned[0] > flat[1] - flat[0] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: NearestNeighbors(vote="loud"), "no vote=loud: expected weighted or majority"),
        (lambda: NearestNeighbors(lengths="long"), "no lengths=long: expected unit or given"),
        (lambda: Centroid(absent="maybe"), "no absent=maybe: expected never or zero"),
        (lambda: Prototypes(borrow=-2), "borrow of at least 0"),
        (lambda: Transductive(weight=-1), "em needs weight"),
        (lambda: Transductive(frequencies="equal"), "no frequencies=equal: expected flat or estimated"),
    ],
)
def test_impossible_settings_are_refused(make, sentence):
    with pytest.raises(MisuseError, match=sentence):
        make()


@pytest.mark.parametrize("vote", ["weighted", "majority"])
def test_the_nearest_item_is_told_from_one_that_is_hardly_farther(vote):
    # Two directions that half precision cannot tell apart, each asked about.
    near = np.array([[1.0, 0.3], [1.0, 0.3 + 5e-5]], dtype=np.float32)
    fitted = NearestNeighbors(k=1, vote=vote).fit(view(part(near, [1, 0])))
    assert fitted.predict(part(np.array([[1.0, 0.2], [1.0, 0.4]]), None), LABELS).top(1)[:, 0].tolist() == [1, 0]
