"""Features of networks that were fine-tuned here, from their folders to models that stand on them."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.cli.main import app
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.store import FeatureStore, content_key
from fieldmark.methods.finetune import INPUTS, Finetune
from fieldmark.models import feature_source, load_model
from fieldmark.models.supply import FeatureSource
from fieldmark.releases import open_dataset
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.sections import SECTIONS
from fieldmark.tables.inputs import MediaFiles
from fieldmark.tables.media import PHOTO
from fieldmark.training.networks import change_size
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark_tests.fixtures import COLORS, save_photo

SETTINGS = {"recipe": "scratch", "size": 32, "epochs": 1, "batch": 4, "workers": 1}


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """Photos that are wider than tall, so that it matters which part of them is shown."""
    root = tmp_path_factory.mktemp("fine-tuned") / "photos"
    for number, (label, color) in enumerate(COLORS.items()):
        for photo in range(8):
            where = "train" if photo < 4 else "val" if photo % 2 else "test"
            save_photo(
                root / where / label / f"{number}-{photo}.jpg", color, 100 * number + photo, (60 + 3 * photo, 40)
            )
    return root


@pytest.fixture(scope="module")
def trained(release, tmp_path_factory):
    """The folder of a run in which a small network was trained."""
    out = tmp_path_factory.mktemp("trained") / "run"
    fieldmark.fit("folder", release, "finetune", out, settings=SETTINGS)
    return out


@pytest.fixture
def asked(release):
    return open_benchmark(BENCHMARKS["folder"], open_dataset("folder", release)).view.test


def retrained(trained, folder):
    """A copy of a run whose network has learned a little more."""
    shutil.copytree(trained, folder, dirs_exist_ok=True)
    path = folder / "model" / "weights.safetensors"
    arrays = load_file(path)
    save_file(arrays | {"conv1.0.weight": 1.5 * arrays["conv1.0.weight"]}, path)
    return folder


@pytest.mark.parametrize("eval_crop", ["squash", "center"])
def test_the_head_makes_the_logits_of_the_fine_tuned_model_out_of_the_features(trained, asked, tmp_path, eval_crop):
    model = load_model(trained)
    method = replace(model.fitted.method, eval_crop=eval_crop)
    model = replace(model, fitted=replace(model.fitted, method=method))
    logits = model.fitted.predict(asked, model.labels).scores
    source = FeatureSource(FeatureSettings("fine-tuned:resnet10t"), tmp_path, fine_tuned=model)
    features = source.supply(asked).features["photo"]
    head = source.backbone.network.get_classifier()
    weight, bias = head.weight.cpu().numpy(), head.bias.cpu().numpy()
    # Features are stored in half precision: each is off by at most 2^-11 of itself.
    allowed = 2.0**-11 * np.abs(features) @ np.abs(weight).T + 1e-4
    assert (np.abs(features @ weight.T + bias - logits) <= allowed).all()
    assert logits.std(axis=0).mean() > 10 * allowed.mean()  # or else any photo would do
    keys = [content_key(asked.media.read(medium)) for medium in asked.items["media_ids"].explode()]
    stored = FeatureStore(tmp_path, source.backbone.digest).get(keys, "logits")
    np.testing.assert_allclose(stored, logits, rtol=1e-4, atol=1e-5)


def test_crops_differ_in_what_the_network_is_shown(trained, asked, tmp_path):
    shown = {
        resize: feature_source(FeatureSettings(str(trained), resize=resize), tmp_path).supply(asked).features["photo"]
        for resize in ("", "squash", "cut")
    }
    assert (shown[""] == shown["squash"]).all()  # as on val
    assert not np.allclose(shown["cut"], shown["squash"], rtol=1e-2)


def test_a_network_that_was_trained_on_crops_answers_crops_and_embeds_them(release, tmp_path):
    root = tmp_path / "photos"
    shutil.copytree(release, root)
    photos = sorted(path.relative_to(root).as_posix() for path in root.glob("*/*/*.jpg"))
    lines = [f"{photo},0,0,20,20" for photo in photos[1:]]
    (root / "boxes.csv").write_text("\n".join(["photo,x,y,width,height", *lines]) + "\n")
    result = fieldmark.fit("folder", root, "finetune", tmp_path / "run", settings={**SETTINGS, "crop": "boxes"})
    assert result.run.options["crop"] == "boxes"
    assert not any(
        remark.startswith("Of train, crop=boxes") for remark in result.run.remarks
    )  # the other one is of test
    asked = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", root)).view.test
    model = load_model(tmp_path / "run")
    assert "crop=boxes" in model.card()
    logits = model.fitted.predict(asked, model.labels).scores
    source = feature_source(FeatureSettings(str(tmp_path / "run")), tmp_path / "store")
    assert source.settings.crop == "boxes"
    features = source.supply(asked).features["photo"]
    head = source.backbone.network.get_classifier()
    weight, bias = head.weight.cpu().numpy(), head.bias.cpu().numpy()
    assert np.abs(features @ weight.T + bias - logits).max() < 1e-2 * np.abs(logits).max()
    whole = feature_source(FeatureSettings(str(tmp_path / "run"), crop="none"), tmp_path / "store")
    different = np.abs(whole.supply(asked).features["photo"] - features).max(axis=1) > 1e-3
    assert different.tolist() == [name != photos[0].rpartition("/")[2] for name in asked.item_ids]


def test_a_flip_is_the_mirrored_photo_shown_as_on_val(trained, asked, tmp_path):
    class Mirrored:
        def read(self, path):
            data = io.BytesIO()
            with Image.open(io.BytesIO(asked.media.read(path))) as photo:
                ImageOps.mirror(photo).save(data, "PNG")
            return data.getvalue()

        def read_many(self, paths):
            return map(self.read, paths)

    mirrored = replace(asked, media=MediaFiles(PHOTO, Mirrored(), {one: one for one in asked.media.ids}))
    plain = feature_source(FeatureSettings(str(trained)), tmp_path)
    flips = feature_source(FeatureSettings(str(trained), views="flips"), tmp_path)
    one, other = (plain.supply(part).features["photo"] for part in (asked, mirrored))
    np.testing.assert_allclose(flips.supply(asked).features["photo"], (one + other) / 2, atol=2e-3 * one.max())


def test_a_folder_that_was_trained_anew_gives_other_features(trained, asked, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    before = feature_source(FeatureSettings(str(folder)), tmp_path / "store")
    moved = feature_source(FeatureSettings(str(trained / "model")), tmp_path / "store")
    assert before.backbone.digest == moved.backbone.digest  # content, not place
    features = before.supply(asked).features["photo"]
    after = feature_source(FeatureSettings(str(retrained(trained, folder))), tmp_path / "store")
    assert after.backbone.digest != before.backbone.digest
    assert not np.allclose(after.supply(asked).features["photo"], features, rtol=1e-2)


def test_another_size_is_taken_where_the_network_can(trained, asked, tmp_path):
    source = feature_source(FeatureSettings(str(trained), size=64), tmp_path)
    assert source.backbone.preprocessing.size_px == 64 and source.about["size"] == 64
    assert source.supply(asked).features["photo"].shape == (len(asked), 512)


def test_a_network_with_positions_has_them_resampled_for_another_size(release):
    method = Finetune(network="test_vit", weights="random", size=32)
    network = method.new_network(3, "random")
    arrays = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    arrays |= dict.fromkeys(INPUTS, np.full(3, 0.5))
    larger = method.backbone(arrays, size=64)
    photo = next((release / "test").rglob("*.jpg"))
    square = larger.decode(photo.read_bytes())
    assert larger([square])["features"].shape == (1, 64)
    with pytest.raises(MisuseError, match="beit_base_patch16_224 takes only photos of the size it was trained for"):
        change_size(torch.nn.Identity(), "beit_base_patch16_224", 64)


def test_a_model_on_a_fine_tuned_backbone_holds_all_it_needs(trained, release, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    result = fieldmark.fit("folder", release, "centroid", tmp_path / "model", settings={"backbone": str(folder)})
    assert str(tmp_path) not in (tmp_path / "model/model/model.json").read_text()
    assert result.run.features["backbone"] == "resnet10t" and result.run.features["size"] == 32
    expected = fieldmark.predict(result.model, release)
    shutil.rmtree(folder)  # the backbone is gone,
    moved = shutil.move(tmp_path / "model", tmp_path / "elsewhere")  # and the model lies elsewhere
    again = fieldmark.predict(moved, release)
    assert (again.scores == expected.scores).all()
    photo = next((release / "test").rglob("*.jpg"))
    assert fieldmark.identify(photo, moved).names[0].label in COLORS
    replace(load_model(moved), license="mit").save(tmp_path / "pushed")  # what `models push` uploads
    assert (fieldmark.predict(tmp_path / "pushed", release).scores == expected.scores).all()
    shutil.rmtree(moved / "model" / "backbone")
    with pytest.raises(InputError, match="found no backbone/, expected the fine-tuned network"):
        load_model(moved)


def test_the_license_of_the_backbone_binds_the_model(trained, release, tmp_path):
    replace(load_model(trained), license="cc-by-nc-4.0").save(tmp_path / "licensed")
    settings = {"backbone": str(tmp_path / "licensed")}
    result = fieldmark.fit("folder", release, "centroid", tmp_path / "run", settings=settings)
    assert result.model.license == "cc-by-nc-4.0"
    assert any("cc-by-nc-4.0" in remark for remark in result.run.remarks)


def test_a_run_names_the_data_behind_its_backbone(trained, release, tmp_path):
    out = tmp_path / "run"
    command = f"fit folder --data {release} --method linear --set backbone={trained} --out {out}"
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, (done.output, done.exception)
    said = "The backbone is resnet10t, fine-tuned on train of folder (version 2, seed 0)"
    assert f"note: {said}" in done.output and "It has learned from no observation of val or test" in done.output
    assert "external data: none" in done.output  # random weights, and nothing but the train of this benchmark
    assert said in (out / "model" / "README.md").read_text()
    run = json.loads((out / "run.json").read_text())
    assert run["features"]["fine_tuned"]["seen"]["test"] == {"items": 6, "learned": 0, "chosen_by": 0}
    context = load_context([out])
    page = "".join(SECTIONS[name].render(context) for name in ("origin", "scores"))
    assert said in page and "resnet10t (fine-tuned on folder, 32 px)" in page


def test_other_weights_are_refused(trained, release, tmp_path):
    settings = {"backbone": str(trained), "weights": "random"}
    with pytest.raises(MisuseError, match=r"weights=random: the network in .*run comes with its own weights"):
        fieldmark.fit("folder", release, "centroid", tmp_path / "out", settings=settings)


def empty(folder, trained):
    folder.mkdir()


def another_method(folder, trained):
    shutil.copytree(trained, folder)
    path = folder / "model" / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"method": "frequent", "options": {}}))


def cut_short(folder, trained):
    shutil.copytree(trained, folder)
    path = folder / "model" / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def of_another_network(folder, trained):
    shutil.copytree(trained, folder)
    path = folder / "model" / "weights.safetensors"
    arrays = load_file(path)
    arrays.pop("conv1.0.weight")
    save_file(arrays, path)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (empty, "found no model, expected the folder of a model or a run"),
        (another_method, "found a model of the method frequent, expected one that has trained a network"),
        (cut_short, "model.json: found something else .*, expected a model of Fieldmark"),
        (of_another_network, "found tensors of something else, expected the trained weights of resnet10t"),
    ],
)
def test_a_folder_without_a_network_for_photos_is_refused(trained, asked, tmp_path, spoil, sentence):
    folder = tmp_path / "folder"
    spoil(folder, trained)
    with pytest.raises(InputError, match=sentence):
        feature_source(FeatureSettings(str(folder)), tmp_path / "store").supply(asked)


def test_a_folder_without_a_slash_is_taken_for_a_name_and_the_way_out_is_said(trained, asked, tmp_path, monkeypatch):
    shutil.copytree(trained, tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MisuseError, match=r"no backbone called 'mine'. Write the folder .* with a slash: ./mine"):
        feature_source(FeatureSettings("mine"), tmp_path / "store").supply(asked)
    assert feature_source(FeatureSettings("./mine"), tmp_path / "store").settings.backbone == "fine-tuned:resnet10t"
