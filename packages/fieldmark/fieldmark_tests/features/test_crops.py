"""Boxes: how they grow, what they cut out, and what is stored under which key."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.crops import SMALLEST_SIDE, Box, PhotoBoxes, box_of_masks, box_of_pixels, cropped_key, grown
from fieldmark.features.extraction import extract
from fieldmark.features.photos import Preprocessing, decode_photo, decode_square, upright_size
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.store import FeatureStore, content_key
from fieldmark.releases.photo_boxes import PixelBox

shares = st.floats(0, 1)
boxes = st.tuples(shares, shares, shares, shares).map(
    lambda edges: Box(min(edges[::2]), min(edges[1::2]), max(edges[::2]), max(edges[1::2]))
)
COLORS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "white": (255, 255, 255)}
QUARTERS = {"red": Box(0, 0, 0.5, 0.5), "green": Box(0.5, 0, 1, 0.5), "blue": Box(0, 0.5, 0.5, 1)}
HOW = Preprocessing(8, 1.0, (0.5,) * 3, (0.5,) * 3)


def quarters(size=(40, 20), *, orientation=1, form="PNG", mode="RGB") -> bytes:
    """A photo of four colors that is red, green, blue and white, in the order of reading, when it stands upright."""
    width, height = size
    photo = Image.new("RGB", size)
    for color, place in zip(COLORS.values(), ((0, 0), (1, 0), (0, 1), (1, 1)), strict=True):
        photo.paste(color, (place[0] * width // 2, place[1] * height // 2, width, height))
    if orientation == 6:  # whoever looks at it turns it clockwise
        photo = photo.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    data = io.BytesIO()
    photo.convert(mode).save(data, form, exif=exif)
    return data.getvalue()


def mean_color(photo: Image.Image) -> tuple[int, ...]:
    return tuple(int(value) for value in np.asarray(photo).mean(axis=(0, 1)).round())


@given(boxes, st.floats(0.2, 5), st.floats(0, 1))
def test_a_grown_box_lies_on_the_photo_holds_the_box_and_is_square_where_there_is_room(box, aspect, margin):
    cut = grown(box, aspect, margin)
    if cut is None:
        return
    assert cut.left <= box.left + 1e-5 and box.right - 1e-5 <= cut.right
    assert cut.top <= box.top + 1e-5 and box.bottom - 1e-5 <= cut.bottom
    assert min(cut) >= 0 and max(cut) <= 1
    width, height = (cut.right - cut.left) * aspect, cut.bottom - cut.top
    assert min(width, height) >= SMALLEST_SIDE * min(aspect, 1) - 1e-4
    filled = cut.right - cut.left > 1 - 1e-9 or height > 1 - 1e-9
    assert filled or width == pytest.approx(height, rel=1e-3)


@given(boxes, st.integers(1, 500), st.integers(1, 500))
def test_a_box_has_at_least_one_pixel_of_any_photo(box, width, height):
    left, top, right, bottom = box.pixels(width, height)
    assert 0 <= left < right <= width and 0 <= top < bottom <= height


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("color", QUARTERS)
def test_a_box_is_cut_out_of_the_upright_photo_before_it_is_scaled(color, orientation):
    data = quarters(orientation=orientation)
    assert upright_size(data) == (40, 20)
    assert mean_color(decode_photo(data, box=QUARTERS[color])) == COLORS[color]
    square = decode_square(data, HOW, QUARTERS[color])
    assert square.shape == (8, 8, 3) and (square == COLORS[color]).all()


def test_a_small_box_of_a_large_jpeg_is_decoded_with_all_the_pixels_it_needs():
    data = quarters((1600, 1200), form="JPEG")
    assert min(decode_photo(data, at_least_px=100).size) < 200  # what is thrown away for a whole photo
    assert min(decode_photo(data, at_least_px=100, box=Box(0.45, 0.45, 0.55, 0.55)).size) >= 100


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_photos_of_other_modes_are_cut_as_well(mode):
    form = "TIFF" if mode == "CMYK" else "PNG"
    red = decode_photo(quarters(form=form, mode=mode), box=QUARTERS["red"])
    assert red.mode == "RGB" and red.size == (20, 10)


def test_a_photo_of_one_pixel_is_cut_to_itself():
    assert decode_photo(quarters((1, 1)), box=Box(0.9, 0.9, 0.95, 0.95)).size == (1, 1)


class MeanColor:
    def decode(self, data: bytes, box: Box | None = None) -> np.ndarray:
        return decode_square(data, HOW, box)

    def __call__(self, squares) -> dict[str, np.ndarray]:
        return {"features": np.stack([square.mean(axis=(0, 1)) for square in squares]).astype(np.float16)}


PHOTOS = {f"{side}": quarters((side, side)) for side in range(10, 18)}


cuts = boxes.map(lambda box: grown(box, aspect=1.0)).filter(lambda box: box is not None)
drawings = st.dictionaries(st.sampled_from(list(PHOTOS)), cuts)


@settings(max_examples=40, deadline=None)
@given(st.permutations(list(PHOTOS)), st.integers(1, len(PHOTOS)), drawings)
def test_what_a_photo_gives_depends_on_its_box_and_on_no_other_photo(order, number, drawn):
    with tempfile.TemporaryDirectory() as folder:
        store = FeatureStore(Path(folder), "x")
        found = extract(
            order[:number], PHOTOS.__getitem__, MeanColor(), store, boxes=PhotoBoxes("boxes", drawn, number)
        )
    alone = [MeanColor()([decode_square(PHOTOS[one], HOW, drawn.get(one))])["features"][0] for one in order[:number]]
    assert (found == np.stack(alone)).all()


def test_whole_photos_keep_the_keys_they_have_always_had_and_boxes_never_share_one(tmp_path):
    data = quarters()
    assert cropped_key(content_key(data), None) == content_key(data)
    read, ids = {"p": data}.__getitem__, ["p"]
    store = FeatureStore(tmp_path, "x")
    extract(ids, read, MeanColor(), store)
    extract(ids, read, MeanColor(), store, boxes=PhotoBoxes("saliency", {}, 1))
    assert len(store) == 1 and content_key(data) in store
    red, green = (
        extract(ids, read, MeanColor(), store, boxes=PhotoBoxes("saliency", {"p": QUARTERS[color]}, 1))[0]
        for color in ("red", "green")
    )
    assert len(store) == 3 and red.tolist() == [255, 0, 0] and green.tolist() == [0, 255, 0]


def test_masks_give_the_box_around_all_parts_in_the_proportions_of_the_photo():
    cap, stem = np.zeros((2, 100, 200), dtype=bool)
    cap[40:50, 80:120], stem[50:60, 95:105] = True, True
    box = box_of_masks({"cap": cap, "stem": stem}, margin=0.0)
    assert box == Box(0.4, 0.3, 0.6, 0.7)  # 40 x 40 pixels: as wide as the cap
    assert box_of_masks({"cap": np.zeros((5, 5), dtype=bool)}, 0.1) is None and box_of_masks({}, 0.1) is None


def test_a_box_beyond_its_photo_is_refused_with_its_line():
    drawn = PixelBox(10, 0, 40, 20, "boxes.csv, line 7")
    with pytest.raises(InputError, match=r"boxes.csv, line 7: found a box to x = 50, y = 20 for a.jpg, .* 40 x 20"):
        box_of_pixels(drawn, (40, 20), "a.jpg", 0.1)
    assert box_of_pixels(PixelBox(30, 0, 10.6, 20), (40, 20), "a.jpg", 0.0) is not None  # rounding is forgiven


def test_settings_refuse_crops_that_there_are_not():
    with pytest.raises(MisuseError, match=r"crop=salency: expected .* or boxes .*Did you mean saliency"):
        FeatureSettings(crop="salency")
    with pytest.raises(MisuseError, match=r"crop_margin=-1: expected a number from 0 to 2.0"):
        FeatureSettings(crop="boxes", crop_margin=-1)
    assert any("U²-Netp" in sentence for sentence in FeatureSettings(crop="saliency").external_data)
