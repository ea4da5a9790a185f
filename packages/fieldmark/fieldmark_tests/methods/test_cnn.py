"""Methods that hear: on a tiny world, and on names that BirdNET knows."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

import fieldmark
from fieldmark.audio.spectrograms import SPECTROGRAMS, MelSettings
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.features.settings import FeatureSettings
from fieldmark.identification import Timeline
from fieldmark.methods import Fitted
from fieldmark.methods.base import features_of
from fieldmark.methods.cnn import SpectrogramNetwork
from fieldmark.models import load_model
from fieldmark.models.supply import FeatureSource
from fieldmark.releases import open_dataset
from fieldmark.training.gabor import GaborFrontEnd
from fieldmark.views.open_benchmark import open_benchmark

SMALL = {"network": "lcnet_050", "weights": "random", "epochs": 1, "windows": 1, "choirs": 0.5}


@pytest.fixture(scope="module")
def run(bird_world, tmp_path_factory):
    steps = ["presence", "neighbors"]
    out = tmp_path_factory.mktemp("cnn") / "run"
    return fieldmark.fit("birdclef-2020", bird_world, "cnn", out, settings=SMALL, steps=steps)


def test_the_network_runs_from_recordings_to_a_run_of_the_ten_best_species_of_a_segment(run):
    rows = [line.split(";") for line in (run.folder / "run.csv").read_text().splitlines()]
    assert rows and max(Counter((row[0], row[1]) for row in rows).values()) <= 10
    assert all(0 < float(row[3]) <= 1 for row in rows)
    assert run.run.simulated and run.run.trained_on == ["train"]
    assert run.run.steps[0]["step"] == "presence"
    assert any("Best of 1 epochs" in remark for remark in run.run.remarks)


def test_a_network_from_its_folder_answers_as_the_one_that_was_fitted(run, bird_world):
    again = fieldmark.predict(run.folder, bird_world)
    assert again.scores == pytest.approx(fieldmark.predict(run.model, bird_world).scores, abs=1e-5)
    assert again.scale == "score" and again.scores.max() <= 1


def test_a_fitted_network_answers_a_soundscape_with_a_timeline(run, bird_world):
    soundscape = next((bird_world / "test").glob("*.flac"))
    answer = fieldmark.identify(soundscape, run.folder, at_least=0.0)
    assert isinstance(answer, Timeline) and answer.simulated
    assert all(found.end_s <= answer.seconds for found in answer.windows)


def lively(method: SpectrogramNetwork, labels: int) -> dict[str, np.ndarray]:
    """Random weights whose outputs differ from sound to sound, as those after a single epoch hardly do."""
    network = method.new_network(labels, "random").train()
    pictures = torch.rand((16, 1, method.settings.bands, method.settings.frames), generator=torch.manual_seed(0))
    with torch.no_grad():
        for _ in range(30):
            network(pictures)  # moves the statistics of batch norm to where signals neither die nor explode
    return {name: tensor.numpy() for name, tensor in network.state_dict().items()}


def test_a_trained_network_embeds_recordings_and_its_head_makes_its_answers_of_them(run, bird_world, tmp_path):
    opened = open_benchmark(BENCHMARKS["birdclef-2020"], open_dataset("birdclef-2020", bird_world))
    segments = opened.view.val  # each as long as one window of the network
    method = SpectrogramNetwork(network="resnet10t", weights="random", windows=1)
    model = replace(run.model, fitted=Fitted(method, lively(method, len(run.model.labels))))
    source = FeatureSource(FeatureSettings("fine-tuned:resnet10t"), tmp_path, fine_tuned=model)
    features, head = features_of(source.supply(segments)), source.backbone.network.get_classifier()
    weight, bias = head.weight.cpu().numpy(), head.bias.cpu().numpy()
    answers = 1 / (1 + np.exp(-features @ weight.T - bias))
    expected = model.fitted.predict(segments, opened.view.labels).scores
    # Features are stored in half precision; a sigmoid is at most a quarter as steep as its logit.
    allowed = 2.0**-11 * np.abs(features) @ np.abs(weight).T / 4 + 1e-5
    assert (np.abs(answers - expected) <= allowed).all()
    assert expected.std(axis=0).max() > 10 * allowed.max()  # or else any sound would do


def test_a_model_on_a_trained_embedder_holds_it_and_says_what_it_learned_from(run, bird_world, tmp_path):
    settings = {"backbone": str(run.folder)}
    result = fieldmark.fit("birdclef-2020", bird_world, "centroid", tmp_path / "run", settings=settings)
    assert any("lcnet_050, fine-tuned on train of birdclef-2020" in remark for remark in result.run.remarks)
    assert result.run.external_data == []
    model = load_model(tmp_path / "run")
    assert (fieldmark.predict(model, bird_world).scores == fieldmark.predict(result.model, bird_world).scores).all()
    assert isinstance(fieldmark.identify(next((bird_world / "test").glob("*.flac")), model), Timeline)


def test_a_network_for_sounds_is_no_backbone_for_photos(run, make_release, tmp_path):
    with pytest.raises(MisuseError, match="fine-tuned:lcnet_050 does not read photos: take a network for photos"):
        fieldmark.fit("folder", make_release(), "centroid", tmp_path / "run", settings={"backbone": str(run.folder)})


@pytest.mark.parametrize(("method", "settings"), [("centroid", {}), ("knn", {"k": 3})])
def test_methods_for_photos_work_unchanged_on_segments(bird_world, tmp_path, method, settings):
    result = fieldmark.fit("birdclef-2020", bird_world, method, tmp_path / "run", settings=settings)
    assert result.run.features["backbone"] == "logmel" and set(result.scorecards) == {"val", "test"}


def test_fit_says_which_recordings_were_cut(bird_world, tmp_path):
    shutil.copytree(bird_world, tmp_path / "world")
    path = max((tmp_path / "world" / "train").rglob("*.ogg"), key=lambda path: path.stat().st_size)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 4])
    for run in ("first", "second"):  # the second time features come from the store
        result = fieldmark.fit("birdclef-2020", tmp_path / "world", "centroid", tmp_path / run)
        (said,) = [remark for remark in result.run.remarks if "cut" in remark]
        assert said.startswith("1 recording was cut and is used as far as it goes: ") and path.stem in said


def test_a_backbone_for_photos_is_refused_for_recordings(bird_world, tmp_path):
    with pytest.raises(MisuseError, match="does not read recordings: take one of logmel, birdnet"):
        fieldmark.fit("birdclef-2020", bird_world, "knn", tmp_path / "r", settings={"backbone": "efficientnet_lite0"})
    with pytest.raises(MisuseError, match="BirdNET knows none of the 10 labels"):
        fieldmark.fit("birdclef-2020", bird_world, "birdnet", tmp_path / "r")


def test_settings_that_cannot_be_are_misuse():
    with pytest.raises(MisuseError, match="no spectrogram called 'melody'"):
        SpectrogramNetwork(spectrogram="melody")
    with pytest.raises(MisuseError, match=r"choirs=.*: expected a number from 0 to 1"):
        SpectrogramNetwork(choirs=2.0)


def test_a_learned_front_end_and_triplets_run_from_recordings_to_a_model(bird_world, tmp_path, monkeypatch):
    little = MelSettings(8000, 1.0, bands=12, frames=26, fft=128, low_hz=200, high_hz=3500)
    monkeypatch.setitem(SPECTROGRAMS, "little", little)
    settings = {"front_end": "gabor", "objective": "triplet:each=2", "spectrogram": "little", "batch": 8}
    result = fieldmark.fit("birdclef-2020", bird_world, "cnn", tmp_path / "run", settings=SMALL | settings)
    learned = torch.from_numpy(result.model.fitted.arrays["front_end.log_center"])
    began = GaborFrontEnd(little).log_center.detach()
    assert 0 < (learned - began).abs().max() < 0.5
    again = fieldmark.load_model(tmp_path / "run")
    assert again.fitted.method.options["front_end"] == "gabor"
    one, other = (fieldmark.predict(model, bird_world).scores for model in (again, result.model))
    assert (one == other).all() and one.std() > 0
    embedder = FeatureSource(FeatureSettings("fine-tuned:lcnet_050"), tmp_path, fine_tuned=again).backbone
    assert np.isfinite(embedder(np.zeros((2, little.samples), dtype=np.float32))["features"]).all()


def test_objectives_that_sounds_do_not_have_are_refused():
    with pytest.raises(MisuseError, match="cnn has no objective=masks: expected labels or triplet"):
        SpectrogramNetwork(objective="masks")
    with pytest.raises(MisuseError, match="set layer_decay=1"):
        SpectrogramNetwork(front_end="gabor", layer_decay=0.7)


def test_inception_takes_spectrograms_that_are_flatter_than_its_smallest_picture():
    method = SpectrogramNetwork(network="inception_v3", weights="random")
    network = method.new_network(3, "random").eval()
    with torch.inference_mode():
        assert network(torch.rand(1, 1, 64, method.settings.frames)).shape == (1, 3)
        assert network(torch.rand(1, 1, 300, 300)).shape == (1, 3)
