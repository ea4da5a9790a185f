import json

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.methods.published import output_order
from fieldmark.tables.labels import Labels


@pytest.fixture
def make_checkpoint(tmp_path):
    """A tiny random network in the files that timm writes to the hub."""

    def make(classes=3, form="safetensors", **extra):
        torch.manual_seed(0)
        network = timm.create_model("resnet10t", num_classes=classes)
        folder = tmp_path / f"checkpoint-{form}-{classes}"
        folder.mkdir()
        known = {"input_size": [3, 48, 48], "mean": [0.5] * 3, "std": [0.25] * 3, "num_classes": classes}
        config = {"architecture": "resnet10t", "num_classes": classes, "pretrained_cfg": known, **extra}
        (folder / "config.json").write_text(json.dumps(config))
        if form == "safetensors":
            save_file(network.state_dict(), folder / "model.safetensors")
        else:
            torch.save(network.state_dict(), folder / "pytorch_model.bin")
        return folder, network.eval()

    return make


@pytest.mark.parametrize("form", ["safetensors", "bin"])
def test_a_published_checkpoint_answers_a_benchmark(make_release, make_checkpoint, tmp_path, form):
    root, (folder, network) = make_release(), make_checkpoint(form=form)
    result = fieldmark.fit(
        "folder", root, "published", tmp_path / "run", settings={"checkpoint": str(folder)}, steps=[]
    )
    assert result.run.options["size"] == 48
    assert "others have trained" in result.run.external_data[0]
    photo = sorted((root / "test").rglob("*.jpg"))[0]
    from PIL import Image

    squashed = Image.open(photo).convert("RGB").resize((48, 48), Image.Resampling.BICUBIC)
    pixels = torch.from_numpy(np.array(squashed)).permute(2, 0, 1)[None].float() / 255
    with torch.inference_mode():
        expected = network((pixels - 0.5) / 0.25).numpy()
    found = fieldmark.load_model(tmp_path / "run").predict_photos([photo]).scores
    np.testing.assert_allclose(found, expected, atol=0.05 * np.abs(expected).max())


def test_outputs_are_matched_by_name_where_the_checkpoint_names_them():
    labels, names = Labels(("a", "b", "c")), {"a": "Amanita alba", "b": "Boletus b", "c": "Clavaria c"}
    config = {"num_classes": 4, "label_names": ["Clavaria c", "x", "a", "Boletus b"]}
    assert output_order(config, labels, names, "it").tolist() == [2, 3, 0]
    with pytest.raises(InputError, match="two labels of the benchmark with one name"):
        output_order(config, labels, {"b": "Boletus b", "c": "Boletus b"}, "it")
    with pytest.raises(InputError, match="no output for b"):
        output_order({"num_classes": 2, "label_names": ["a", "c"]}, labels, {}, "it")


def test_outputs_without_names_are_category_ids():
    labels = Labels(("0", "1", "10", "2", "3", "4", "5", "6", "7", "8", "9"))
    assert output_order({"num_classes": 11}, labels, {}, "it").tolist() == [0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9]


def test_a_checkpoint_of_another_subset_is_refused(make_release, make_checkpoint, tmp_path):
    folder, _ = make_checkpoint(classes=5)
    with pytest.raises(InputError, match=r"5 outputs, expected 3.*another subset"):
        fieldmark.fit("folder", make_release(), "published", tmp_path / "run", settings={"checkpoint": str(folder)})


def test_a_hub_that_does_not_answer_is_a_sentence(make_release, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    settings = {"checkpoint": "fungitastic-mini-beit_base-224"}
    with pytest.raises(MisuseError, match=r"BVRA/beit_base.*--set checkpoint=FOLDER"):
        fieldmark.fit("folder", make_release(), "published", tmp_path / "run", settings=settings)
