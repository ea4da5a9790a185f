"""Real masks of butterflies, with edges as programs that smooth and tint them leave behind."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageFilter

from fieldmark.masks.pictures import TINTED, read_mask


def with_tinted_edges(mask: Image.Image, photo: Image.Image) -> bytes:
    """The mask in white on black; its smoothed edge takes some of the colors of the photo."""
    share = np.asarray(mask.convert("L").filter(ImageFilter.BoxBlur(1)), dtype=np.float64)[..., None] / 255
    colors = np.asarray(photo.convert("RGB").resize(mask.size), dtype=np.float64)
    edge = (share > 0) & (share < 1)
    tinted = np.where(edge, 0.75 * 255 * share + 0.25 * colors * share, 255 * share)
    file = io.BytesIO()
    Image.fromarray(tinted.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def test_masks_with_tinted_edges_are_read_as_they_were_drawn(real_data):
    folder = real_data / "butterflies_leeds"
    paths = sorted((folder / "masks").iterdir())[::40]
    for path in paths:
        with Image.open(path) as mask, Image.open(folder / "images" / f"{path.name[:7]}.jpg") as photo:
            data, drawn = with_tinted_edges(mask, photo), np.asarray(mask.convert("L")) > 127
        read, how = read_mask(data, path.name)
        assert how == TINTED
        assert (read & drawn).sum() / (read | drawn).sum() > 0.95
    assert len(paths) > 8
