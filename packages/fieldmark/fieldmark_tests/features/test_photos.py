from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from fieldmark.features.photos import PhotoError, Preprocessing, decode_photo, decode_square, views_of

HOW = Preprocessing(size_px=32, crop=0.875, mean=(0.5,) * 3, std=(0.5,) * 3)


def encode(image: Image.Image, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, **({"format": "JPEG", "quality": 95} | options))
    return file.getvalue()


@pytest.mark.parametrize("size", [(300, 200), (200, 300), (33, 500), (5, 5), (1, 1)])
def test_any_photo_becomes_a_square(size):
    assert decode_square(encode(Image.new("RGB", size)), HOW).shape == (32, 32, 3)


def test_a_photo_is_turned_upright():
    image = Image.new("RGB", (60, 40))
    exif = image.getexif()
    exif[0x0112] = 6  # the camera was held sideways
    assert decode_photo(encode(image, exif=exif)).size == (40, 60)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK"])
def test_other_color_modes_become_rgb(mode):
    image = Image.new("RGB", (40, 40), (200, 30, 30)).convert(mode)
    data = encode(image, format="JPEG" if mode in ("L", "CMYK") else "PNG")
    assert decode_photo(data).mode == "RGB"


def test_large_photos_are_decoded_small_but_never_too_small():
    noise = np.random.default_rng(0).integers(0, 255, (640, 800, 3), dtype=np.uint8)
    small = decode_photo(encode(Image.fromarray(noise)), at_least_px=100)
    assert small.size == (200, 160)


def test_decoding_small_gives_nearly_the_same_square():
    gradient = np.linspace(0, 255, 640 * 800 * 3).reshape(640, 800, 3).astype(np.uint8)
    smooth = Image.fromarray(gradient).resize((800, 640))
    fast = decode_square(encode(smooth), HOW).astype(float)
    exact = decode_square(encode(smooth, format="PNG", quality=None), HOW).astype(float)
    assert np.abs(fast - exact).mean() < 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (encode(Image.effect_noise((200, 200), 50))[:1500], "a truncated photo"),
        (b"not a photo", "11 bytes that are not a photo"),
        (b"", "an empty file"),
    ],
)
def test_a_broken_photo_is_refused_with_what_is_wrong(data, message):
    with pytest.raises(PhotoError, match=message):
        decode_photo(data)


def quarters() -> bytes:
    """A wide photo: red and green above, blue and white below."""
    pixels = np.zeros((64, 128, 3), dtype=np.uint8)
    pixels[:32, :64], pixels[:32, 64:], pixels[32:, :64], pixels[32:, 64:] = (255, 0, 0), (0, 255, 0), (0, 0, 255), 255
    return encode(Image.fromarray(pixels), format="PNG", quality=None)


def corner_colors(square: np.ndarray) -> list[list[int]]:
    return [(square[row, column] > 127).astype(int).tolist() for row in (1, -2) for column in (1, -2)]


RED, GREEN, BLUE, WHITE = [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]


def test_a_squashed_photo_is_seen_whole_and_a_cut_one_from_its_center():
    whole = replace(HOW, crop=1.0)
    pixels = np.zeros((40, 120, 3), dtype=np.uint8)
    pixels[:, :30] = 255  # a mark at the left edge
    photo = encode(Image.fromarray(pixels), format="PNG", quality=None)
    assert decode_square(photo, whole).max() < 30
    squashed = decode_square(photo, replace(whole, resize="squash"))
    assert squashed.shape == (32, 32, 3) and (squashed[:, :6] > 220).all() and (squashed[:, 10:] < 30).all()


def test_views_show_the_corners_and_the_mirror_image():
    how = replace(HOW, crop=0.5, resize="squash")
    shown = [corner_colors(decode_square(quarters(), view))[0] for view in views_of(how, "crops")]
    assert shown[1:] == [RED, GREEN, BLUE, WHITE]
    plain, mirrored = (decode_square(quarters(), view) for view in views_of(replace(how, crop=1.0), "flips"))
    assert corner_colors(plain) == [RED, GREEN, BLUE, WHITE] and (mirrored == plain[:, ::-1]).all()


@pytest.mark.parametrize(
    ("views", "number"), [("one", 1), ("flips", 2), ("crops", 5), ("flips+crops", 10), ("zooms", 3), ("scales", 3)]
)
def test_all_views_are_different_and_leave_room_to_move(views, number):
    found = views_of(replace(HOW, crop=1.0), views)
    assert len(set(found)) == number and all(view.crop <= 0.875 for view in found if "crops" in views)
