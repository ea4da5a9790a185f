from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from fieldmark.features.photos import PhotoError, Preprocessing, decode_photo, decode_square

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
