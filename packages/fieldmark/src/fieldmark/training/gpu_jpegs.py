"""JPEGs decoded by the GPU that learns from them, where there are few cores to do it.

A GPU with a decoder of its own (nvJPEG) needs one thread, and only files are copied to it; but it decodes beside the
network, which then is slower. Beside 16 cores threads were ahead by seven percent (`docs/performance.md`).
"""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg

from fieldmark.training.packs import EncodedSquares, filled

Tensor = Any

# What ResNet-50 on an H200 learns from in a second, six cores decode.
ENOUGH_THREADS = 8


def decodes_itself(device: Any, threads: int) -> bool:
    """Whether a device is to decode what it learns from, given how many threads could do it."""
    return threads < ENOUGH_THREADS and can_decode(device)


@lru_cache(maxsize=16)
def can_decode(device: Any) -> bool:
    """Whether a device decodes JPEGs, and to the pixels that we have without it: tried once, on a drawn one."""
    if device.type != "cuda":
        return False
    drawn = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    file = BytesIO()
    Image.fromarray(drawn).resize((64, 64)).save(file, "JPEG", quality=90, subsampling=0)
    squares = EncodedSquares((np.frombuffer(file.getvalue(), dtype=np.uint8).copy(),), 64)
    try:
        found = decode_on(device, squares).cpu().numpy()
    except RuntimeError:  # torchvision was built without it, or the GPU has none
        return False
    return bool((np.abs(found.astype(int) - filled(squares)) <= 1).all())


def decode_on(device: Any, squares: EncodedSquares) -> Tensor:
    """Squares on a device, decoded there; they are complete when this returns."""
    stream = _stream(device)
    with torch.cuda.stream(stream):
        files = [torch.from_numpy(file) for file in squares.files]
        photos = torch.stack(decode_jpeg(files, mode=ImageReadMode.RGB, device=device))
        stream.synchronize()
    return photos.permute(0, 2, 3, 1)


@lru_cache(maxsize=16)
def _stream(device: Any) -> Any:
    """A stream of its own: on the usual one decoding would wait for the network."""
    return torch.cuda.Stream(device)
