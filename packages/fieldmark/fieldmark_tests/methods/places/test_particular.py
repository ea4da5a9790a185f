"""What is particular to single methods for places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from fieldmark.errors import MisuseError
from fieldmark.features.geoclip import encode_places
from fieldmark.methods.places.ensemble import PlaceEnsemble, sample
from fieldmark.methods.places.extrapolation import distances_km, extrapolations, similarities
from fieldmark.methods.places.forest import RandomForest, Trees
from fieldmark.methods.places.maxent import Maxent
from fieldmark.methods.places.neighbors import NeighborsInSpace
from fieldmark.methods.places.records import PlaceRecords, Points, records_of
from fieldmark.methods.places.sinr import Sinr
from fieldmark.methods.places.spatial_folds import held_out_chances
from fieldmark.methods.places.splines import SplineLogistic, penalized_logistic
from fieldmark.stats.mixture import mixture_weights
from fieldmark_tests.methods.places.conftest import LABELS, nature, pairs, part_at

ENVIRONMENT = {"inputs": "environment"}


def test_flat_trees_end_in_the_leaves_of_scikit_learn():
    rng = np.random.default_rng(0)
    table, truth = rng.normal(size=(200, 4)).astype(np.float32), rng.integers(0, 3, 200)
    grown = RandomForestClassifier(n_estimators=5, random_state=0).fit(table, truth).estimators_
    trees = Trees.of(grown)
    asked = rng.normal(size=(50, 4)).astype(np.float32)
    for number, tree in enumerate(grown):
        assert (trees.leaves(number, asked) - trees.roots[number] == tree.apply(asked)).all()


def test_with_few_species_the_forest_is_as_good_as_scikit_learns(sightings, sites):
    part, truth = sites
    train = sightings.train
    ours = RandomForest(**ENVIRONMENT, trees=60).fit(sightings).predict(part, LABELS)
    peer = RandomForestClassifier(n_estimators=60, min_samples_leaf=5, random_state=0)
    theirs = peer.fit(train.features["environment"], train.truth).predict(part.features["environment"])
    right = (ours.top(1)[:, 0] == truth.argmax(axis=1)).mean()
    assert right > (theirs == truth.argmax(axis=1)).mean() - 0.05


def test_a_forest_keeps_counts_of_what_is_in_its_leaves_and_nothing_else(sightings):
    arrays = RandomForest(**ENVIRONMENT, trees=4).fit(sightings).arrays
    assert arrays["leaf.counts"].sum() == 4 * len(sightings.train)
    assert (np.diff(arrays["leaf.offsets"])[arrays["trees.feature"] >= 0] == 0).all()
    assert len(arrays["leaf.codes"]) <= 4 * len(sightings.train)


def test_forests_of_single_species_leave_rare_ones_alone(presences, sites):
    fitted = RandomForest(**ENVIRONMENT, trees=5, sampling="down-sampled", least=5).fit(presences)
    assert 3 not in fitted.arrays["species"]
    assert (fitted.predict(sites[0], LABELS).scores[:, 3] == 0.5).all()


def test_maxent_is_what_elapid_predicts(presences, sites):
    elapid = pytest.importorskip("elapid")
    part, _ = sites
    method = Maxent(**ENVIRONMENT, hinges=4)
    fitted = method.fit(presences)
    background = presences.unlabeled.features["environment"]
    low, high = background.min(axis=0), background.max(axis=0)
    present = presences.train.features["environment"][presences.train.truth == 2]
    table = np.clip(np.concatenate([present, background, low[None], high[None]]), low, high)
    model = elapid.MaxentModel(feature_types="lqh", n_hinge_features=4, transform="raw", n_cpus=1, use_sklearn=True)
    model.fit((table - low) / (high - low), np.repeat([1, 0], [len(present), len(background) + 2]))
    asked = (np.clip(part.features["environment"], low, high) - low) / (high - low)
    raw = np.log(model.predict(asked))
    ours = method.log_ratios(fitted.arrays, fitted.method.points(fitted.arrays, part))[:, 2]
    shift = ours - raw
    np.testing.assert_allclose(shift, shift.mean(), atol=0.05)  # as close as two runs of its solver
    everywhere = method.log_ratios(fitted.arrays, Points(np.zeros(300), np.zeros(300), background))[:, 2]
    assert np.exp(everywhere.astype(float)).mean() == pytest.approx(1, abs=1e-4)


def test_penalized_logistic_regression_equals_scikit_learns():
    rng = np.random.default_rng(0)
    columns, weights = rng.normal(size=(300, 4)), rng.uniform(0.5, 2, 300)
    truth = (rng.random(300) < expit(columns @ [1.0, -2.0, 0.5, 0.0])).astype(float)
    ours = penalized_logistic(columns, truth, weights, np.full(4, 2.0))
    peer = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(columns, truth, sample_weight=weights)
    np.testing.assert_allclose(ours, [*peer.intercept_, *peer.coef_[0]], atol=1e-4)


def test_neighbors_vote_by_their_distance(sightings):
    fitted = NeighborsInSpace(k=3, strength=1.0).fit(sightings)
    lat, lon, truth = (sightings.train.items["lat"], sightings.train.items["lon"], sightings.train.truth)
    asked = part_at(np.array([0.3]), np.array([0.4]))
    # On so small a piece of the Earth degrees are as good as kilometers.
    apart = np.hypot(lat.to_numpy() - 0.3, (lon.to_numpy() - 0.4) * np.cos(np.radians(0.3)))
    nearest = np.argsort(apart)[:3]
    votes = np.exp(-((apart[nearest] / apart[nearest[1]]) ** 2) / 2)
    prior = np.exp(fitted.arrays["log_prior"].astype(float))
    expected = (np.bincount(truth[nearest], weights=votes, minlength=5) + prior) / (votes.sum() + 1)
    np.testing.assert_allclose(np.exp(fitted.predict(asked, LABELS).scores[0]), expected / expected.sum(), rtol=1e-3)


@pytest.mark.parametrize("loss", ["slds", "ssdl"])
def test_sampled_losses_learn_as_well(loss, sightings, sites):
    part, truth = sites
    small = {"epochs": 25, "width": 32, "depth": 1, "rate": 3e-3, "batch": 32, "dropout": 0.0, "coordinates": "none"}
    right = Sinr(**ENVIRONMENT, **small, loss=loss).fit(sightings).predict(part, LABELS).top(1)[:, 0]
    assert (right == truth.argmax(axis=1)).mean() > 0.5


def test_the_location_encoder_says_what_geoclip_says():
    # Computed with LocationEncoder of the package geoclip 1.3.0: the first three of 512 numbers.
    made = encode_places(np.array([46.5, -20.3, 89.0]), np.array([7.1, -50.2, 179.0]))
    first = [[0.001149, -0.007586, 0.016352], [-0.022736, 0.006888, 0.030818], [0.010494, -0.007547, 0.012996]]
    assert made.shape == (3, 512)
    np.testing.assert_allclose(made[:, :3], first, atol=2e-5)


def test_the_encoder_of_geoclip_is_declared_and_works_in_the_network(sightings, sites):
    method = Sinr(**ENVIRONMENT, coordinates="geoclip", epochs=1, width=8, depth=0)
    assert "GeoCLIP" in method.external_data[0] and Sinr().external_data == ()
    assert PlaceEnsemble(members="neighbors,sinr:coordinates=geoclip").external_data == method.external_data
    assert np.isfinite(method.fit(sightings).predict(sites[0], LABELS).scores).all()


def test_an_ensemble_of_presences_is_the_mean_of_standardized_members(presences, sites):
    part, _ = sites
    ensemble = PlaceEnsemble(**ENVIRONMENT, members="spline-logistic,spline-logistic:penalty=50.0")
    fitted = ensemble.fit(presences)
    points = fitted.method.points(fitted.arrays, part)
    together = fitted.method.log_ratios(fitted.arrays, points)
    scaled = []
    for number, member in enumerate(fitted.method.made(len(LABELS))):
        own = {k.removeprefix(f"{number}."): v for k, v in fitted.arrays.items() if k.startswith(f"{number}.")}
        common = {name: fitted.arrays[name] for name in ("log_prior", "survey")}
        everywhere = member.log_ratios({**own, **common}, Points(np.zeros(300), np.zeros(300), _background(presences)))
        asked = member.log_ratios({**own, **common}, points)
        scaled.append(
            (asked - everywhere.mean(axis=0)) / np.where(everywhere.std(axis=0) > 0, everywhere.std(axis=0), 1)
        )
    mean = np.mean(scaled, axis=0)
    for species in (0, 1, 2, 4):
        assert np.corrcoef(mean[:, species], together[:, species])[0, 1] == pytest.approx(1, abs=1e-5)


def test_a_member_of_an_ensemble_may_have_a_background_of_its_own(presences, sites):
    part, _ = sites
    members = "spline-logistic,spline-logistic:background=random"
    fitted = PlaceEnsemble(**ENVIRONMENT, members=members, background="target-group").fit(presences)
    assert fitted.method.learns_from == ("train", "unlabeled")
    points = fitted.method.points(fitted.arrays, part)
    of_members = fitted.method.of_members(fitted.arrays, points)
    for ratios, background in zip(of_members, ("target-group", "random"), strict=True):
        alone = SplineLogistic(**ENVIRONMENT, background=background).fit(presences)
        np.testing.assert_allclose(ratios, alone.method.log_ratios(alone.arrays, points), atol=1e-5)


def test_trees_of_common_species_grow_on_some_of_their_places(presences, sites):
    whole, few = (RandomForest(**ENVIRONMENT, trees=20, most=most).fit(presences) for most in (500, 10))
    assert len(few.arrays["trees.feature"]) < len(whole.arrays["trees.feature"]) / 2
    part, truth = sites
    assert np.corrcoef(few.predict(part, LABELS).scores[:, 2], truth[:, 2])[0, 1] > 0.4


def test_a_network_sees_many_records_less_often(presences):
    small = {**ENVIRONMENT, "width": 8, "depth": 0}
    often = Sinr(**small, batch=8).fit(presences).method
    assert often.epochs == 30
    assert Sinr(**small, batch=1).fit(presences).method.epochs == 10


def _background(view):
    return view.unlabeled.features["environment"]


def test_weights_from_val_are_those_of_the_lowest_log_loss(sightings):
    members = "spline-logistic,neighbors:strength=10000.0"  # the second says what is common, and no more
    fitted = PlaceEnsemble(**ENVIRONMENT, members=members, weights="val").fit(sightings)
    assert fitted.arrays["weights"][0] > 0.8
    again = fitted.method.fit_again(fitted.arrays, replace(sightings, val=None))
    assert (again.arrays["weights"] == fitted.arrays["weights"]).all()
    chance = np.random.default_rng(0).uniform(0.1, 0.9, (3, 50))
    best = mixture_weights(chance)
    loss = -np.log(best @ chance).mean()
    for other in np.random.default_rng(1).dirichlet(np.ones(3), 200):
        assert loss <= -np.log(other @ chance).mean() + 1e-4


def test_similarity_is_that_of_elith_and_others():
    known = np.sort(np.random.default_rng(0).normal(size=(40, 1)).astype(np.float32), axis=0)
    for value in (-5.0, float(known[0, 0]), -0.3, 0.9, 7.0):
        low, high = float(known.min()), float(known.max())
        below = 100 * (known < np.float32(value)).mean()
        if below == 0:
            expected = 100 * (value - low) / (high - low)
        elif value > high:
            expected = 100 * (high - value) / (high - low)
        else:
            expected = 2 * below if below <= 50 else 2 * (100 - below)
        found = similarities(known, np.array([[value]], dtype=np.float32))[0, 0]
        assert found == pytest.approx(expected, abs=1e-3)


def test_a_place_far_away_and_unlike_train_is_told_apart(sightings):
    fitted = Sinr(**ENVIRONMENT, epochs=1, width=8, depth=0).fit(sightings)
    lat, lon = (np.array([sightings.train.items[name][5], other]) for name, other in (("lat", 40.0), ("lon", 0.0)))
    asked = Points(lat, lon, nature(lat, lon))
    near, far = extrapolations(fitted.arrays, asked)
    assert not near.is_far and not near.is_outside
    assert far.is_far and far.is_outside and far.covariate == 0
    assert distances_km(fitted.arrays, asked)[1] == pytest.approx(38 * 111.2, rel=0.05)


# Degrees of the drawn region are some 111 km long: it has a dozen blocks of this side.
BLOCKS = {"blocks_m": 150_000.0, "folds": 3}


@pytest.mark.parametrize("kind", ["sightings", "presences", "survey"])
def test_weights_from_folds_prefer_the_member_that_knows_blocks_it_has_not_seen(kind, request):
    view = replace(request.getfixturevalue(kind), val=None)
    members = "spline-logistic,neighbors:strength=10000.0"  # the second says what is common, and no more
    fitted = PlaceEnsemble(**ENVIRONMENT, **BLOCKS, members=members, weights="folds").fit(view)
    weights = fitted.arrays["weights"]
    assert weights[0] > 0.8 and weights.sum() == pytest.approx(1)
    assert fitted.remarks[-1].startswith(
        f"Weights of the members, by folds: spline-logistic {weights[0]:.2f}, neighbors"
    )
    again = fitted.method.fit_again(fitted.arrays, view)
    assert (again.arrays["weights"] == weights).all() and again.method.weights == "folds"
    assert again.remarks == fitted.remarks


def test_a_member_that_remembers_where_it_has_been_gets_its_weight_by_blocks_and_not_by_nearby_places():
    """Species live in patches of their own: neighbors know them, until whole patches are held out."""
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(-2, 2, (2, 400))
    patch = (np.floor(lat) + 2) * 4 + np.floor(lon) + 2
    code = np.random.default_rng(1).integers(0, 5, 16)[patch.astype(int)].astype(np.int32)
    points = Points(lat, lon, np.zeros((400, 1), dtype=np.float32))
    records = PlaceRecords(points, np.arange(400), code, 5, points)
    methods = [NeighborsInSpace(), NeighborsInSpace(strength=10000.0)]
    near, far = (mixture_weights(held_out_chances(methods, records, 4, side, 0))[0] for side in (5_000.0, 222_000.0))
    assert near > 0.9 and far < 0.5


def test_what_is_held_out_is_what_a_member_says_that_has_learned_from_the_rest():
    """Two blocks, held out in turn, by hand."""
    lat, lon = np.array([0.5, 0.6, 0.7, 9.5, 9.6, 9.7]), np.array([0.5, 0.6, 0.7, 9.5, 9.6, 9.7])
    points = Points(lat, lon, np.zeros((6, 1), dtype=np.float32))
    row, code = np.array([0, 1, 2, 2, 3, 4, 5]), np.array([0, 0, 0, 1, 1, 1, 0], dtype=np.int32)
    survey = PlaceRecords(points, row, code, 2, None)
    member = NeighborsInSpace(several=True, strength=1e9)
    found = held_out_chances([member], survey, 2, 500_000.0, 0)
    # Elsewhere: species 0 at 3 of 3 and 1 of 3 places, species 1 at 1 of 3 and 2 of 3, with half a place added.
    first, second = np.array([3.5, 1.5]) / 4, np.array([1.5, 2.5]) / 4
    holds = np.array([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [1, 0]], dtype=bool)
    said = np.vstack([np.tile(second, (3, 1)), np.tile(first, (3, 1))])
    expected = np.where(holds, said, 1 - said)
    halves = [expected[:3].ravel(), expected[3:].ravel()]
    np.testing.assert_allclose(np.sort(found[0]), np.sort(np.concatenate(halves)), atol=1e-4)


def test_too_few_blocks_for_the_folds_are_refused_in_a_sentence(survey):
    ensemble = PlaceEnsemble(**ENVIRONMENT, members="spline-logistic", weights="folds", blocks_m=1e7)
    with pytest.raises(MisuseError, match=r"blocks of 1e\+07 m cannot be cut into 5 folds: set smaller blocks_m"):
        ensemble.fit(survey)
    with pytest.raises(MisuseError, match="folds=1: expected a whole number of at least 2"):
        PlaceEnsemble(folds=1)


@pytest.mark.parametrize(("species", "against"), [(4, True), (5, False)])
def test_five_recorded_species_are_set_against_each_others_places(species, against):
    code = (np.arange(60) % species).astype(np.int32)
    lat, lon = np.random.default_rng(0).uniform(-2, 2, (2, 60))
    train = part_at(lat, lon, pairs(code))
    points = Points(lat, lon, train.features["environment"])
    given = Points(lat[:7], lon[:7], points.table[:7])
    records = records_of(train, points, 5, "auto", given, seed=0)
    assert records.against_background is against
    assert len(records.background) == (7 if against else 60)


def test_the_scale_of_members_is_measured_on_some_of_many_background_points():
    points = Points(np.arange(3000.0), np.zeros(3000), np.arange(3000, dtype=np.float32)[:, None])
    some = sample(points, seed=1)
    assert len(some) == 1000 and len(np.unique(some.lat)) == 1000
    assert sample(some, seed=1) is some
