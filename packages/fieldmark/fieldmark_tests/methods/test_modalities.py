"""What `tabular`, `fusion` and `joint` promise alike: nothing that is missing stops an answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fieldmark.errors import MisuseError
from fieldmark.methods.base import Need
from fieldmark.methods.fusion import Fusion
from fieldmark.methods.joint import Joint
from fieldmark.methods.modalities import modalities_of
from fieldmark.methods.tabular import Tabular
from fieldmark.tables.inputs import CONTEXT, PHOTO_INPUT, Input
from fieldmark_tests.lessons import part_of
from fieldmark_tests.methods.modalities_of_three import LABELS, accuracy, make_part, make_view, without

BOTH = "photo,habitat"
METHODS = {
    "boosting": Tabular(inputs=BOTH, rounds=10),
    "network": Tabular(inputs=BOTH, model="network", epochs=4),
    "fusion": Fusion(inputs=BOTH),
    "gated": Joint(inputs=BOTH, epochs=8, width=32),
    "dynamic": Joint(inputs=BOTH, mixing="dynamic", epochs=8, width=32),
}


@pytest.fixture(scope="module")
def fitted():
    view = make_view(lacking=0.3)
    return {name: method.fit(view) for name, method in METHODS.items()}


@pytest.mark.parametrize("name", METHODS)
def test_every_answer_is_finite_whatever_an_item_lacks(fitted, name):
    test = make_part(7, 40, lacking=1.0)
    for part in (test, without(test, "photo"), without(test, "habitat"), without(test, "photo", "habitat")):
        scores = fitted[name].predict(part, LABELS).scores
        assert scores.shape == (40, 4) and np.isfinite(scores).all()
    assert len(set(map(tuple, fitted[name].predict(without(test, "photo", "habitat"), LABELS).scores.tolist()))) == 1


@pytest.mark.parametrize("name", METHODS)
def test_both_together_beat_each_alone_and_a_label_never_seen_is_never_answered(fitted, name):
    test = make_part(8, 200)
    whole = accuracy(fitted[name], test)
    assert whole > 0.9 > accuracy(fitted[name], without(test, "photo"))
    assert whole > accuracy(fitted[name], without(test, "habitat")) > 0.4
    assert (fitted[name].predict(test, LABELS).top(1) != 3).all()


@pytest.mark.parametrize("name", METHODS)
def test_the_same_comes_again_from_the_arrays(fitted, name):
    test = make_part(9, 20, lacking=0.3)
    kept = {key: np.array(value) for key, value in fitted[name].arrays.items()}
    again = fitted[name].method.scores(kept, test)
    assert (again == fitted[name].predict(test, LABELS).scores).all()


@pytest.mark.parametrize("name", ["fusion", "gated"])
def test_more_labels_to_learn_from_keep_the_choices_that_were_made(fitted, name):
    view = make_view(lacking=0.3).with_val_in_train()
    again = fitted[name].method.fit_again(fitted[name].arrays, view)
    assert again.method == fitted[name].method and accuracy(again, make_part(8, 200)) > 0.9


def test_a_modality_that_train_lacks_altogether_has_no_part_in_a_fusion():
    view = make_view()
    view = replace(view, train=without(view.train, "habitat"))
    learned = Fusion(inputs=BOTH).fit(view)
    assert np.isfinite(learned.predict(view.test, LABELS).scores).all()
    assert np.array_equal(
        learned.predict(view.test, LABELS).scores, learned.predict(without(view.test, "habitat"), LABELS).scores
    )


def test_a_modality_of_pure_noise_has_next_to_no_weight():
    view, rng = make_view(items=300), np.random.default_rng(0)
    noisy = {
        part: replace(
            own, features={"photo": own.features["photo"], "habitat": rng.normal(size=(300, 2)).astype(np.float32)}
        )
        for part, own in (("train", view.train), ("val", view.val))
    }
    learned = Fusion(inputs=BOTH).fit(replace(view, **noisy))
    scores = learned.predict(view.test, LABELS)
    alone = learned.predict(without(view.test, "habitat"), LABELS)
    assert np.abs(scores.probabilities() - alone.probabilities()).max() < 0.15
    assert "from val: frequencies" in learned.remarks[0] and "photo" in learned.remarks[0]


def test_members_are_fitted_once_for_all_fusions_that_share_a_folder(tmp_path):
    view = replace(make_view(), shared=tmp_path)
    Fusion(inputs="photo").fit(view)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    both = Fusion(inputs=BOTH).fit(view)
    assert len(before) == 1 and len(list(tmp_path.iterdir())) == 2
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    fresh = Fusion(inputs=BOTH).fit(replace(view, shared=None))
    assert (both.predict(view.test, LABELS).scores == fresh.predict(view.test, LABELS).scores).all()


def test_val_decides_when_training_stops():
    view = make_view()
    for method in (Tabular(inputs="habitat", rate=0.5), Joint(inputs="photo", width=32)):
        options = method.fit(view).method.options
        assert options.get("rounds", 0) + options["epochs"] > 0
        with pytest.raises(MisuseError, match="val"):
            method.fit(view.with_val_in_train())


def test_all_inputs_are_those_that_the_release_has_less_masks_and_observers():
    declared = {one.name: one for one in (PHOTO_INPUT, *CONTEXT, Input("masks"), Input("caption", extractor="words"))}
    fusion = Fusion(tables="tabular").for_release(declared)
    assert fusion.members.split(",")[:2] == ["linear", "tabular"] and fusion.members.endswith("linear")
    assert set(Fusion().for_release(declared).members.split(",")) == {"linear"}
    assert {"observer", "masks"} & {need.input for need in fusion.needs} == set()
    assert Need("features", "photo") in fusion.needs
    tables = {need.input for need in Tabular().for_release(declared).needs}
    assert tables == {one.name for one in CONTEXT} - {"observer"}
    with pytest.raises(MisuseError, match="finds no inputs here: the release and task have masks"):
        Joint().for_release({"masks": Input("masks")})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Fusion(inputs="photo,observer"), "observer is left out on purpose"),
        (lambda: Fusion(inputs=BOTH, members="linear"), "2 modalities .* and 1 members"),
        (lambda: Fusion(tables="liner"), "no member called 'liner'. Did you mean linear"),
        (lambda: Fusion(others="finetune"), "members that make probabilities of features; finetune does not"),
        (lambda: Joint(mixing="stirred"), "mixing=stirred: expected gated or dynamic"),
        (lambda: Joint(drop=1.0), "drop=1.0: expected a number of at least 0 and below 1"),
        (lambda: Tabular(model="forest"), "model=forest: expected"),
        (lambda: modalities_of("photo,,habitat"), "expected each input once"),
    ],
)
def test_impossible_settings_are_refused(make, sentence):
    with pytest.raises(MisuseError, match=sentence):
        make()


def test_above_a_number_of_labels_a_network_learns_in_place_of_trees():
    view = make_view()
    boosted, trained = (Tabular(inputs="habitat", rounds=1, epochs=1, most_labels=most).fit(view) for most in (4, 3))
    assert "trees" in boosted.arrays and "trees" not in trained.arrays
    assert any(name.startswith("network.") for name in trained.arrays)


def months(seed: int, number: int, name: str):
    """Series of four variables over 36 months; a wet spell at any time is of one label, a dry one of the other."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, number).astype(np.int32)
    series = rng.normal(0, 0.3, (number, 4, 36)).astype(np.float32)
    for row, start in enumerate(rng.integers(2, 30, number)):
        series[row, 0, start : start + 4] += 3 if truth[row] else -3
    part = part_of([f"{name}{row}" for row in range(number)], truth, series.reshape(number, -1))
    return replace(part, features={"climate_series": series.reshape(number, -1)}, missing={})


def test_a_small_network_over_months_sees_a_spell_whenever_it_came():
    view = replace(make_view(), train=months(0, 200, "t"), val=months(1, 60, "v"))
    fitted = Joint(inputs="climate_series", epochs=12, width=32).fit(view)
    assert accuracy(fitted, months(2, 100, "a")) > 0.9
    again = fitted.method.scores({key: np.array(one) for key, one in fitted.arrays.items()}, months(3, 5, "b"))
    assert again.shape == (5, 4) and np.isfinite(again).all()


def test_exif_and_series_are_read_only_where_they_are_named():
    inputs = {one.name: one for one in (PHOTO_INPUT, Input("exif", extractor="numbers"))}
    inputs["climate_series"] = Input("climate_series", extractor="series")
    assert Joint().for_release(inputs).inputs == "photo" and Fusion().for_release(inputs).inputs == "photo"
    assert Need("features", "exif") in Joint(inputs="photo,exif").for_release(inputs).needs
