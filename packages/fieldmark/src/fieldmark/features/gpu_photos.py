"""JPEGs decoded, resized and cut on a GPU, many at once."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from fieldmark.features.photos import Preprocessing, square_plan
from fieldmark.features.resampling import BITS, taps

# Raised whenever the GPU would make other pixels of the same photo.
DECODER_VERSION = 1
# Values that are resized at once: photos of one size up to so many, which take two bytes each.
VALUES_AT_ONCE = 1 << 28
LOOK_PX = 16


@cache
def gpu_decodes() -> bool:
    """Whether torchvision decodes JPEGs on the GPU at hand."""
    if not torch.cuda.is_available():
        return False
    small = io.BytesIO()
    Image.new("RGB", (16, 16)).save(small, "JPEG")
    try:
        return len(decoded([np.frombuffer(bytearray(small.getvalue()), np.uint8)], "cuda")) == 1
    except (RuntimeError, ImportError):
        return False


def decoded(contents: Sequence[NDArray[np.uint8]], device: str) -> list[Any]:
    """The pixels of JPEGs, each given as a row of bytes, on a device, channels first.

    Raises:
        RuntimeError: When one of them cannot be decoded.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # where it is gone, the CPU decodes (`gpu_decodes`)
        from torchvision.io import ImageReadMode, decode_jpeg

    encoded = [torch.from_numpy(data) for data in contents]
    return list(decode_jpeg(encoded, mode=ImageReadMode.RGB, device=device))


def resized_squares(photos: Sequence[Any], how: Preprocessing) -> Any:
    """Squares of photos on their device, resized by the weights of Pillow: photos x 3 x side x side, bytes.

    Photos of one size are resized together, by two products of matrices.
    """
    side, device = how.size_px, photos[0].device
    squares = torch.empty((len(photos), 3, side, side), dtype=torch.uint8, device=device)
    alike: dict[tuple[int, int], list[int]] = {}
    for number, photo in enumerate(photos):
        alike.setdefault(tuple(photo.shape[1:]), []).append(number)
    for (height, width), numbers in alike.items():
        resized, window = square_plan(how, width, height)
        down = _weights(height, resized[1], window.top, side, str(device))
        across = _weights(width, resized[0], window.left, side, str(device)).T
        step = max(1, VALUES_AT_ONCE // (3 * height * width))
        for start in range(0, len(numbers), step):
            some = numbers[start : start + step]
            pixels = torch.stack([photos[number] for number in some]).to(down.dtype)
            square = down @ pixels @ across
            squares[torch.tensor(some, device=device)] = square.clamp_(0, 255).round_().to(torch.uint8)
    return squares.flip(3) if how.mirrored else squares


@lru_cache(maxsize=4096)
def _weights(length: int, resized: int, start: int, number: int, device: str) -> Any:
    """What each new row is made of, as a matrix; in half precision on a GPU, which loses a tenth of a gray level."""
    first, weights = taps(length, resized, start, number)
    matrix = np.zeros((number, length), dtype=np.float32)
    np.put_along_axis(matrix, first[:, None] + np.arange(weights.shape[1]), weights / np.float32(1 << BITS), axis=1)
    return torch.from_numpy(matrix).to(device, torch.float32 if device == "cpu" else torch.float16)


def looks_of(squares: Any) -> Any:
    """Squares as copies of them are found, as `photo_blocks.look_of` has them."""
    box = _box(squares.shape[-1], str(squares.device))
    return (box @ squares[:, 1].float() @ box.T).round().to(torch.uint8)


@lru_cache(maxsize=64)
def _box(side: int, device: str) -> Any:
    eye = Image.fromarray(np.eye(side, dtype=np.float32))
    return torch.from_numpy(np.asarray(eye.resize((LOOK_PX, side), Image.Resampling.BOX)).T.copy()).to(device)
