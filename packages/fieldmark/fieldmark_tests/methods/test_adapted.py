"""Networks on sheets and field photos: each way trains, answers every observation, and is loaded again."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.methods import METHODS
from fieldmark.releases import open_dataset
from fieldmark.training.adaptation import Adaptation, DomainNetwork, DomainPictures, DomainTraining, nearest_sheets
from fieldmark.training.packs import Pack
from fieldmark.views.open_benchmark import open_benchmark

SMALL = {"network": "test_efficientnet", "weights": "random", "size": 32, "sheet_epochs": 1, "field_epochs": 1}


@pytest.fixture(scope="module")
def view(plant_world):
    return open_benchmark(BENCHMARKS["plantclef-2020"], open_dataset("plantclef-2020", plant_world)).view


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("two-stage", {"answers": "classifier", "auxiliary": 0.3}),
        ("fsada", {"jigsaw": 0.2}),
        ("triplet", {"answers": "nearest", "encoders": "two", "pack": "jpeg"}),
    ],
)
def test_each_way_scores_every_species_of_every_observation(view, name, settings):
    fitted = METHODS[name](**SMALL, batch=16, **settings).fit(view)
    scores = fitted.method.scores(fitted.arrays, view.test.unlabeled())
    assert scores.shape == (len(view.test), len(view.labels)) and np.isfinite(scores).all()
    assert fitted.method.asked == "photo" and not fitted.method.external_data


def test_pictures_are_read_from_the_pack_a_batch_at_a_time(view, monkeypatch):
    read = []
    squares = Pack.squares

    def watched(pack, rows):
        read.append(len(rows))
        return squares(pack, rows)

    monkeypatch.setattr(Pack, "squares", watched)
    METHODS["two-stage"](**SMALL, batch=16, answers="classifier").fit(view)
    assert max(read) <= 16 < view.train.items["media_ids"].list.len().sum()


def test_each_of_two_encoders_sees_its_own_domain():
    network = DomainNetwork(Adaptation("triplet", "test_efficientnet", "random", 32, encoders="two"), 3, {}).eval()
    with torch.no_grad():
        network.field_encoder.conv_stem.weight.zero_()
        pixels, in_field = torch.rand(4, 3, 32, 32), torch.tensor([True, False, True, False])
        both = network(pixels, in_field)
        torch.testing.assert_close(both[~in_field], network(pixels[~in_field], in_field[~in_field]))
        torch.testing.assert_close(both[0], both[2])  # the encoder for photos is blind here
        assert not torch.allclose(both[1], both[3])


def test_pairs_across_domains_are_what_their_kind_says():
    rng = np.random.default_rng(0)
    labels, in_field = rng.integers(0, 5, 60), rng.random(60) < 0.4
    squares = np.zeros((60, 8, 8, 3), dtype=np.uint8)
    pictures = DomainPictures(squares, labels, in_field, 5)
    how = Adaptation("fsada", "test_efficientnet", "random", 32)
    first, second, kinds = DomainTraining(how, DomainNetwork(how, 5, {}), pictures, torch.device("cpu")).pairs(40)
    assert not in_field[first].any() and (in_field[second] == np.isin(kinds, (1, 3))).all()
    assert ((labels[first] == labels[second]) == np.isin(kinds, (0, 1))).all()
    assert len(np.unique(second[kinds == 3])) > 10


def test_neuons_rule_weighs_by_the_fifth_power_of_the_distance():
    sheets = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    asked = np.array([[0.6, 0.8]], dtype=np.float32)
    weights = np.exp(nearest_sheets(sheets, np.array([0, 1]), 3, asked))[0]
    assert weights[1] / weights[0] == pytest.approx((0.4 / 0.2) ** 5, rel=1e-3)
    assert weights.sum() == pytest.approx(1.0) and weights[2] < 1e-3


def test_settings_that_do_not_go_together_are_refused():
    with pytest.raises(MisuseError, match="set encoders=two"):
        METHODS["triplet"](field_weights="photos.pt")
    with pytest.raises(MisuseError, match="fsada has no answers=nearest: expected align, classifier"):
        METHODS["fsada"](answers="nearest")
