"""Backbones given as objects: networks of several libraries, anything with `encode`, and modules in a folder."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import open_clip
import pytest
import timm
import torch
import torchvision
from PIL import Image
from torchvision.transforms import v2

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.given_backbones import given_backbone
from fieldmark.features.settings import FeatureSettings
from fieldmark.models.supply.sources import FeatureSource, load_backbone
from fieldmark.sandbox.trusted_code import trusting_code

CONFIG = {"input_size": (3, 32, 32), "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "crop_pct": 1.0}
TRANSFORM = v2.Compose(
    [v2.Resize((32, 32)), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.5] * 3)]
)


class MeanColor(torch.nn.Module):
    """A network of one's own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, batch):
        return batch.mean(dim=(2, 3)) * self.scale


class Colors:
    """An encoder that is no network."""

    def encode(self, images):
        return [np.asarray(image, dtype=np.float64).mean(axis=(0, 1)) for image in images]


def photo(color=(200, 100, 50)) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (64, 48), color).save(data, "PNG")
    return data.getvalue()


def layers(seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=4), torch.nn.ReLU())


def features(backbone) -> np.ndarray:
    return backbone([backbone.decode(photo())])["features"]


def test_a_network_is_shown_photos_as_its_preprocessing_says():
    expected = (np.array([200, 100, 50]) / 255 - 0.5) / 0.5
    for preprocessing in (CONFIG, TRANSFORM):
        made = features(given_backbone(MeanColor(), preprocessing))
        assert made == pytest.approx(expected[None], abs=1e-5) and made.dtype == np.float32
    assert features(given_backbone(Colors())) == pytest.approx(np.array([[200, 100, 50]]), abs=1e-3)


def test_networks_of_timm_and_open_clip_bring_their_preprocessing():
    network = timm.create_model("resnet10t", pretrained=False, num_classes=3)
    backbone = given_backbone(network)
    assert backbone.squares.size_px == network.pretrained_cfg["input_size"][-1] and features(backbone).shape == (1, 512)
    named = load_backbone(FeatureSettings("resnet10t", weights="random"))
    network.load_state_dict({**network.state_dict(), **_without_head(named.network)})
    pixels = backbone.decode(photo())
    assert backbone([pixels])["features"] == pytest.approx(named([pixels])["features"], rel=2e-3, abs=2e-3)
    from fieldmark_tests.features.test_clip import TINY

    tower = open_clip.CLIP(**TINY)
    tower.visual.preprocess_cfg = {"size": 32, "mean": (0, 0, 0), "std": (1, 1, 1), "resize_mode": "squash"}
    assert given_backbone(tower).squares.resize == "squash" and features(given_backbone(tower)).shape == (1, 16)


def _without_head(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in network.state_dict().items() if not name.startswith("fc.")}


def test_a_network_stays_in_the_mode_that_it_was_in():
    network = torch.nn.Sequential(MeanColor(), torch.nn.Dropout(0.9)).train()
    network[0].eval()
    backbone = given_backbone(network, CONFIG)
    assert (features(backbone) == features(backbone)).all()
    assert network.training and network[1].training and not network[0].training


def test_the_fingerprint_follows_weights_preprocessing_and_structure():
    same = {given_backbone(layers(), CONFIG).digest for _ in range(2)}
    assert len(same) == 1 and given_backbone(layers(), CONFIG).kept
    others = [
        given_backbone(layers(1), CONFIG),
        given_backbone(layers(), {**CONFIG, "mean": (0.4, 0.5, 0.5)}),
        given_backbone(torch.nn.Sequential(*layers(), torch.nn.Tanh()), CONFIG),
        given_backbone(layers(), TRANSFORM),
        given_backbone(layers(), v2.Compose([*TRANSFORM.transforms, v2.Identity()])),
    ]
    assert all(one.kept for one in others) and len({*same, *(one.digest for one in others)}) == 6


def test_the_fingerprint_is_the_same_in_another_process():
    program = (
        "import torch; from fieldmark.features.given_backbones import given_backbone; torch.manual_seed(0)\n"
        "network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=4), torch.nn.ReLU())\n"
        f"print(given_backbone(network, {CONFIG}).digest)"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert other.strip() == given_backbone(layers(), CONFIG).digest


def test_code_of_ones_own_has_no_fingerprint_and_never_the_same_name():
    hooked = layers()
    hooked.register_forward_hook(lambda module, given, made: made * 2)
    backbones = [
        given_backbone(MeanColor(), CONFIG),
        given_backbone(Colors()),
        given_backbone(hooked, CONFIG),
        given_backbone(layers(), lambda image: TRANSFORM(image.rotate(90))),
        given_backbone(MeanColor(), CONFIG),
    ]
    assert not any(one.kept for one in backbones) and len({one.digest for one in backbones}) == len(backbones)
    assert "not stored" in backbones[0].remarks[0] and backbones[0].about["digest"] is None


def test_what_is_no_backbone_is_refused_with_what_is():
    with pytest.raises(MisuseError, match=r"torch.nn.Module with its preprocessing, or an object with encode"):
        given_backbone(3)
    with pytest.raises(MisuseError, match="A network needs its preprocessing"):
        given_backbone(layers())
    with pytest.raises(MisuseError, match="no data_config of timm"):
        given_backbone(layers(), {"size": 3})
    tokens = given_backbone(torch.nn.Sequential(torch.nn.Flatten(2)), CONFIG)
    with pytest.raises(MisuseError, match=r"made \(1, 3, 1024\) numbers of 1 photos; expected one row"):
        features(tokens)
    with pytest.raises(MisuseError, match="size=64: a backbone that is given as an object decides this itself"):
        given_backbone(Colors()).refuse_settings(FeatureSettings(size=64))


def local(folder):
    return FeatureSource(FeatureSettings(f"local-dir:{folder}")).backbone


@pytest.fixture
def traced(tmp_path):
    network = torchvision.models.squeezenet1_0(weights=None, num_classes=4).eval()
    torch.jit.trace(network, torch.zeros(1, 3, 32, 32)).save(tmp_path / "network.pt")
    (tmp_path / "preprocessing.json").write_text(json.dumps(CONFIG))
    return network, tmp_path


def test_a_traced_module_in_a_folder_gives_the_features_of_its_network(traced):
    network, folder = traced
    backbone = local(folder)
    assert features(backbone) == pytest.approx(features(given_backbone(network, CONFIG)), abs=1e-5) and backbone.kept
    digest = backbone.digest
    (folder / "preprocessing.json").write_text(json.dumps({**CONFIG, "crop_pct": 0.9}))
    assert local(folder).digest != digest
    (folder / "preprocessing.json").unlink()
    with pytest.raises(InputError, match=r"found no preprocessing.json, expected .* input_size, mean and std"):
        local(folder)


def test_a_pickled_module_is_read_only_where_its_code_is_trusted(traced):
    network, folder = traced
    torch.save(network, folder / "network.pt")
    with pytest.raises(
        InputError, match=r"network.pt: found a file of torch.save, which can run any code .*--trust-code"
    ):
        local(folder)
    with trusting_code():
        backbone = local(folder)
        torch.save(network.state_dict(), folder / "network.pt")
        with pytest.raises(InputError, match=r"found a OrderedDict, expected a torch.nn.Module. Weights alone"):
            local(folder)
    assert features(backbone).shape == (1, 4)


def test_a_folder_of_transformers_gives_the_features_of_its_network(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    network = transformers.Dinov2Model(transformers.Dinov2Config(**small, image_size=28, patch_size=14)).eval()
    network.save_pretrained(tmp_path)
    processor = transformers.AutoImageProcessor
    written = {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 28}, "crop_size": 28}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(written))
    backbone = local(tmp_path)
    pixels = processor.from_pretrained(tmp_path)(images=Image.open(io.BytesIO(photo())), return_tensors="pt")
    with torch.inference_mode():
        expected = network(**pixels).pooler_output.numpy()
    assert features(backbone) == pytest.approx(expected, abs=1e-4) and backbone.kept
    (tmp_path / "preprocessor_config.json").unlink()
    with pytest.raises(InputError, match=r"found no preprocessor_config.json"):
        local(tmp_path)


def test_the_command_line_trusts_code_for_one_command(traced, make_release, tmp_path, run_main):
    network, folder = traced
    torch.save(network, folder / "network.pt")
    asked = ("fit", "folder", "--data", make_release(), "--method", "centroid", "--set", f"backbone=local-dir:{folder}")
    code, _, told = run_main(*asked, "--out", tmp_path / "run")
    assert code == 1 and "--trust-code" in told and not (tmp_path / "run").exists()
    assert run_main(*asked, "--out", tmp_path / "run", "--trust-code")[0] == 0
    photo = next((tmp_path / "photos").rglob("*.jpg"))
    assert run_main("predict", tmp_path / "run", photo)[0] == 1
    assert run_main("predict", tmp_path / "run", photo, "--trust-code")[0] == 0
