"""Methods that draw masks, end to end on photos of red disks on green."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.crops import Box
from fieldmark.methods.cutout import SHARES, mean_of
from fieldmark.methods.ellipse import ellipse
from fieldmark.methods.grabcut import along_edges
from fieldmark.methods.mask_drawings import overlap
from fieldmark.methods.organism_maps import FrozenMaps, moments_of, organism_map, sum_of
from fieldmark.methods.sam import Sam, inner_points, prompt_of
from fieldmark.methods.unet import UNet
from fieldmark.runs.mask_files import read_masks

UNET = {"network": "resnet10t", "weights": "random", "size": 32, "epochs": 12, "batch": 4, "workers": 1, "lr": 3e-3}


def disk(seed: int, size: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows, columns = np.indices((size[1], size[0]))
    x, y = rng.uniform(0.4, 0.6, 2) * size
    return (rows - y) ** 2 + (columns - x) ** 2 <= (rng.uniform(0.2, 0.35) * min(size)) ** 2


@pytest.fixture(scope="module")
def disks(tmp_path_factory):
    """20 photos with masks of the whole and of its upper half, in parts; one photo of train has no mask."""
    root = tmp_path_factory.mktemp("disks")
    rng = np.random.default_rng(0)
    for number in range(21):
        part = "train" if number < 13 else "val" if number < 17 else "test"
        size = (64, 48) if number % 2 else (48, 48)
        mask = disk(number, size)
        photo = np.where(mask[..., None], (200, 40, 40), (40, 140, 60)) + rng.normal(0, 8, (*mask.shape, 3))
        (root / "images" / part).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.clip(photo, 0, 255).astype(np.uint8)).save(root / "images" / part / f"{number}.jpg")
        if number == 0:
            continue
        upper = mask & (np.indices(mask.shape)[0] < mask.shape[0] / 2)
        for folder, drawn in (("masks", mask), ("masks/cap", upper)):
            (root / folder).mkdir(parents=True, exist_ok=True)
            Image.fromarray(drawn).save(root / folder / f"{number}_seg0.png")
    return root


@pytest.fixture(scope="module")
def unet(disks, tmp_path_factory):
    return fieldmark.fit("folder/segmentation", disks, "unet", tmp_path_factory.mktemp("unet") / "run", settings=UNET)


def test_an_ellipse_is_fitted_to_train_and_drawn_on_every_photo(disks, tmp_path):
    result = fieldmark.fit("folder/segmentation", disks, "ellipse", tmp_path / "run")
    assert 0.3 < result.scorecard.metrics["iou"].value < 0.95
    drawn = read_masks(tmp_path / "run/run.parquet")
    first = drawn.open("17")["fruiting_body"]
    np.testing.assert_array_equal(
        first, ellipse((48, 64), result.model.fitted.method.width, result.model.fitted.method.height)
    )


def test_a_unet_learns_whole_and_parts(unet):
    metrics = unet.scorecard.metrics
    assert metrics["iou"].value > 0.8 and metrics["miou"].value > 0.6
    assert unet.scorecard.classes == 1 and unet.model.labels.names == ("cap",)
    assert any("have no mask" in remark for remark in unet.run.remarks)


def test_a_drawn_run_is_scored_from_its_folder_and_against_written_truth(unet, disks, tmp_path):
    from fieldmark.views.score_run import write_truth

    again = fieldmark.score("folder/segmentation", unet.folder, data=disks)
    assert again.metrics == unet.scorecard.metrics
    write_truth("folder/segmentation", disks, tmp_path / "truth")
    alone = fieldmark.score("folder/segmentation", unet.folder / "run.parquet", truth=tmp_path / "truth/truth.parquet")
    assert alone.metrics["iou"].value == pytest.approx(unet.scorecard.metrics["iou"].value)
    assert (alone.items, alone.units) == (unet.scorecard.items, unet.scorecard.units)


def test_a_saved_unet_draws_the_same_masks_of_loose_photos(unet, disks):
    photos = sorted((disks / "images/test").glob("*.jpg"))
    model = fieldmark.load_model(unet.folder)
    drawn = model.predict_photos(photos)
    before = unet.model.predict_photos(photos)
    assert drawn.items == before.items
    for item in drawn.items:
        for part, mask in before.open(item).items():
            np.testing.assert_array_equal(drawn.open(item)[part], mask)


def test_tiles_cover_every_pixel(unet, disks):
    from dataclasses import replace

    method = replace(unet.model.fitted.method, tiles=3)
    network = method.start(unet.model.fitted.arrays)
    with Image.open(sorted((disks / "images/test").glob("*.jpg"))[0]) as photo:
        shares = method.shares(network, photo.convert("RGB").resize((200, 130)))
    assert shares.shape == (3, 130, 200)
    np.testing.assert_allclose(shares.sum(axis=0), 1, atol=1e-4)


def test_grabcut_parts_colors(disks, tmp_path):
    pytest.importorskip("cv2")
    result = fieldmark.fit("folder/segmentation", disks, "grabcut", tmp_path / "run", settings={"rounds": 2})
    margin = result.model.fitted.method.margin
    assert f"Chosen on train: margin {margin:g}." in result.run.remarks
    assert not any("SMALL VAL" in remark for remark in result.run.remarks)  # val chose nothing
    assert f"Chosen on train: margin {margin:g}." in (tmp_path / "run/model/README.md").read_text()
    assert result.scorecard.metrics["iou"].value > 0.9
    assert result.model.fitted.method.margin > 0


def test_saliency_draws_disks_without_training(disks, tmp_path):
    result = fieldmark.fit("folder/segmentation", disks, "saliency", tmp_path / "run", settings={"threshold": 0.5})
    assert result.scorecard.metrics["iou"].value > 0.7
    assert result.run.external_data == ["DUTS, by the weights of U²-Netp"]


def outlines(photo, prompts):
    """What a network of the SAM family might answer: logits by how red each place is."""
    red = np.asarray(photo, dtype=np.float32)[:, :, 0] / 255
    return dict.fromkeys(prompts, 20 * (red - 0.5))


@pytest.mark.parametrize("learned", [True, False])
def test_a_cutout_is_the_mean_of_a_map_and_of_sam_that_is_shown_it(disks, tmp_path, monkeypatch, learned):
    pytest.importorskip("cv2")
    asked = []

    def offers(self, tools, photo, prompts, values):
        asked.append((prompts, values.shape))
        return outlines(photo, prompts)

    monkeypatch.setattr(Sam, "offers", offers)
    settings = {"prompt": "saliency-box", "saliency": "u2netp", "learned": learned}
    result = fieldmark.fit("folder/segmentation", disks, "cutout", tmp_path / "run", settings=settings)
    method = result.model.fitted.method
    assert method.share in SHARES and method.threshold > 0
    assert f"Chosen on train: share {method.share:g}, threshold {method.threshold:g}." in result.run.remarks
    assert result.scorecard.metrics["iou"].value > 0.95
    assert set(asked) == {(("saliency-box",), (320, 320))}  # SAM is shown the map that is drawn with
    assert (len(result.run.external_data) == 3) == learned  # the network that sees the organism knows ImageNet
    photos = sorted((disks / "images/test").glob("*.jpg"))
    before, after = (one.predict_photos(photos) for one in (result.model, fieldmark.load_model(tmp_path / "run")))
    for item in before.items:
        np.testing.assert_array_equal(before.open(item)["fruiting_body"], after.open(item)["fruiting_body"])


def test_masks_of_other_photos_show_where_the_organism_is(disks):
    maps, seen = FrozenMaps(), []
    for number in range(1, 14):
        with Image.open(next(disks.glob(f"images/*/{number}.jpg"))) as photo:
            channels = maps.look(photo.convert("RGB"))
        with Image.open(disks / f"masks/{number}_seg0.png") as mask:
            seen.append((channels, np.asarray(mask)))
    weights = sum_of(moments_of(*one) for one in seen[:-1]).weights()
    likely, true = organism_map(seen[-1][0], weights), Image.fromarray(seen[-1][1]).resize((48, 48))
    assert likely.shape == (48, 48) and likely.min() >= 0 and likely.max() <= 1
    assert likely[np.asarray(true)].mean() > likely[~np.asarray(true)].mean() + 0.5


def test_a_boundary_moves_to_where_colors_change_and_no_farther_than_it_may():
    pytest.importorskip("cv2")
    rows, columns = np.indices((90, 120))
    distance = np.hypot(rows - 45, columns - 60)
    noise = np.random.default_rng(0).normal(0, 8, (90, 120, 3))
    pixels = np.where((distance <= 30)[..., None], (200, 40, 40), (40, 140, 60)) + noise
    photo = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    assert overlap(along_edges(photo, distance <= 28, 0.06), distance <= 30) > 0.99
    moved = along_edges(photo, distance <= 20, 0.06)
    assert not moved[distance > 20 + 0.06 * np.sqrt(np.pi) * 20 + 1].any()
    assert not along_edges(photo, np.zeros((90, 120), dtype=bool), 0.06).any()


def test_shares_weigh_what_stands_out_against_the_outline():
    salient, logits = np.full((4, 4), 0.8, np.float32), np.full((8, 8), -50, np.float32)
    for share in (0.0, 0.25, 1.0):
        np.testing.assert_allclose(mean_of(salient, logits, share, (8, 8)), 0.8 * share, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "settings", "sentence"),
    [
        ("cutout", {"share": 1.5}, "share=1.5"),
        ("saliency", {"network": "u3net"}, "u2netp, u2net"),
        ("unet", {"size": 100}, "multiple of 32"),
        ("unet", {"pack": "none"}, "pack=raw"),
        ("sam", {"prompt": "box"}, "saliency-box"),
        ("grabcut", {"margin": 0.7}, "margin=0.7: expected a number of at least 0 and below 0.5"),
        ("linear", {}, "masks"),
    ],
)
def test_what_cannot_draw_is_refused(disks, tmp_path, method, settings, sentence):
    with pytest.raises(MisuseError, match=sentence):
        fieldmark.fit("folder/segmentation", disks, method, tmp_path / "run", settings=settings)
    assert not (tmp_path / "run").exists()


def test_a_photo_that_cannot_be_read_is_named(disks, tmp_path):
    import shutil

    shutil.copytree(disks, tmp_path / "disks")
    (tmp_path / "disks/images/test/20.jpg").write_bytes(b"no photo")
    with pytest.raises(InputError, match=r"20\.jpg.*not a photo"):
        fieldmark.fit("folder/segmentation", tmp_path / "disks", "ellipse", tmp_path / "run")


class _OfEachPixel(torch.nn.Module):
    """A network whose answer for a pixel depends on that pixel alone; it remembers what it was shown."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(3, 2, 1)
        torch.nn.init.constant_(self.layer.bias, 0.0)
        self.layer.weight.data = torch.tensor([[[[0.5]], [[-1.0]], [[0.0]]], [[[0.0]], [[1.0]], [[1.0]]]])
        self.input_mean, self.input_std = (0.5,) * 3, (0.25,) * 3
        self.shown = []

    def forward(self, inputs):
        self.shown.append(tuple(inputs.shape))
        return self.layer(inputs)


@pytest.mark.parametrize(("size", "tiles"), [(32, 3), (64, 1), (64, 8)])
def test_a_large_photo_is_answered_in_tiles_without_seams_and_in_the_memory_of_one(size, tiles):
    """What depends on single pixels must come out as from one look at the whole; a seam would show."""
    noise = np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    photo = Image.fromarray(noise).resize((3000, 2000), Image.Resampling.BILINEAR)
    tiled, network = UNet(size=size, tiles=tiles), _OfEachPixel().requires_grad_(False)
    shares = tiled.shares(network, photo)
    side = size * (tiles + 1) // 2
    assert shares.shape == (2, 683, 1024) and set(network.shown) == {(1, 3, size, size)}
    assert len(network.shown) == 2 * (1 + (tiles**2 if tiles > 1 else 0))  # each is mirrored as well
    np.testing.assert_allclose(shares.sum(axis=0), 1, atol=1e-5)
    # The same photo at the size of all tiles together, in one piece.
    whole, coarse = (UNet(size=px).shares(network, photo) for px in (side, size))
    np.testing.assert_allclose(shares, whole if tiles == 1 else (whole + coarse) / 2, atol=1e-5)


def test_points_lie_inside_and_apart():
    mask = np.zeros((40, 60), dtype=bool)
    mask[5:35, 10:50] = True
    points = inner_points(mask, 3) * (60, 40)
    assert all(mask[int(y), int(x)] for x, y in points)
    assert min(np.hypot(*(a - b)) for n, a in enumerate(points) for b in points[:n]) > 5
    assert len(inner_points(np.zeros((4, 4), dtype=bool), 3)) == 0


def test_a_prompt_is_the_middle_where_nothing_stands_out():
    box, points = prompt_of("saliency", np.zeros((8, 8), dtype=np.float32))
    assert box is None and points.tolist() == [[0.5, 0.5]]
    spot = np.zeros((8, 8), dtype=np.float32)
    spot[2:4, 2:6] = 1
    assert prompt_of("saliency-box", spot) == (Box(0.25, 0.25, 0.75, 0.5), None)


def test_sam_draws_what_a_prompt_shows(disks):
    from fieldmark.tables.labels import Labels

    method = Sam(prompt="saliency-box")
    tools = method.start({})
    for number in (17, 18):
        with (
            Image.open(disks / f"images/test/{number}.jpg") as photo,
            Image.open(disks / f"masks/{number}_seg0.png") as mask,
        ):
            drawn = method.draw(tools, {}, photo.convert("RGB"), Labels(()))
            assert overlap(drawn["fruiting_body"], np.asarray(mask)) > 0.8


def test_masks_are_predicted_from_the_shell_as_shares_run_lengths_and_pictures(unet, disks, tmp_path, run_main):
    photos = disks / "images/test"
    code, shown, _ = run_main("predict", unet.folder, photos / "17.jpg")
    assert code == 0 and "fruiting_body" in shown and "%" in shown
    for out in ("masks.parquet", "pictures"):
        assert run_main("predict", unet.folder, photos, "--out", tmp_path / out)[0] == 0
    from_pictures, from_runs = read_masks(tmp_path / "pictures"), read_masks(tmp_path / "masks.parquet")
    for item in from_runs.items:
        for part, mask in from_runs.open(item).items():
            np.testing.assert_array_equal(from_pictures.open(item)[part], mask)


def test_a_model_that_draws_is_not_asked_for_names(unet, disks):
    with pytest.raises(MisuseError, match="draws masks and names nothing"):
        fieldmark.identify(disks / "images/test/17.jpg", unet.folder)
