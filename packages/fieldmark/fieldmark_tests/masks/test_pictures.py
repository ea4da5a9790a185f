"""Masks as people save them: one object, however it was written."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from fieldmark.errors import InputError
from fieldmark.masks.pictures import read_mask
from fieldmark.runs.mask_files import read_masks

OBJECT = np.zeros((6, 8), dtype=bool)
OBJECT[1:4, 2:7] = True


def saved(picture: Image.Image, form: str = "PNG") -> bytes:
    file = io.BytesIO()
    picture.save(file, form)
    return file.getvalue()


def gray(inside: int, outside: int = 0, kind: type = np.uint8) -> Image.Image:
    return Image.fromarray(np.where(OBJECT, inside, outside).astype(kind))


def palette() -> Image.Image:
    picture = gray(1).convert("P")
    picture.putdata(np.asarray(gray(1)).ravel().tolist())
    picture.putpalette([0, 0, 0, 128, 0, 0, *[0] * 750])
    return picture


def colored(inside: tuple[int, ...], outside: tuple[int, ...]) -> Image.Image:
    return Image.fromarray(np.where(OBJECT[..., None], inside, outside).astype(np.uint8))


@pytest.mark.parametrize(
    ("picture", "how"),
    [
        (gray(255), ""),
        (gray(200, 100), ""),
        (gray(255).convert("1"), ""),
        (gray(255).convert("RGB"), ""),
        (gray(255).convert("P"), ""),
        (gray(1), "0 and 1"),
        (gray(1, kind=np.uint16), "0 and 1"),
        (gray(255, kind=np.uint16), ""),
        (gray(65535, kind=np.uint16), "upper half"),
        (palette(), "colors"),
        (colored((128, 0, 0), (0, 0, 0)), "colors"),
        (colored((0, 0, 0, 255), (0, 0, 0, 0)), "transparency"),
    ],
)
def test_the_object_is_found_however_it_was_saved(picture, how):
    mask, said = read_mask(saved(picture), "a.png")
    assert np.array_equal(mask, OBJECT) and how in said and bool(how) == bool(said)


def tinted(color: tuple[int, int, int] = (255, 255, 255), width_px: float = 1.0) -> tuple[Image.Image, np.ndarray]:
    """A disk in a color on black, whose edge fades through hundreds of tints; and the disk."""
    rows, columns = np.indices((120, 160))
    inward = 40 - np.hypot(rows - 60, columns - 80)
    share = np.clip(0.5 + inward / (2 * width_px), 0, 1)[..., None]
    tint = np.random.default_rng(0).integers(-25, 26, (120, 160, 3)) * ((share > 0) & (share < 1))
    return Image.fromarray(np.clip(share * color + tint, 0, 255).astype(np.uint8)), inward > 0


@pytest.mark.parametrize("color", [(255, 255, 255), (200, 40, 90)])
def test_tinted_edges_belong_to_the_nearer_of_two_colors(color):
    picture, disk = tinted(color)
    assert len(picture.getcolors(1 << 20)) > 303
    mask, how = read_mask(saved(picture), "a.png")
    assert (mask == disk).mean() > 0.997 and "edges" in how
    with pytest.raises(InputError, match=r"a.png: found [\d,]+ colors, expected the object in one color on black"):
        read_mask(saved(tinted(color, 20)[0]), "a.png")  # more than edges


def test_an_empty_mask_is_empty_and_jpeg_is_read_by_white_alone():
    assert not read_mask(saved(gray(0)), "a.png").mask.any()
    assert not read_mask(saved(gray(1), "JPEG"), "a.jpg").mask.any()
    assert read_mask(saved(Image.new("L", (8, 8), 255), "JPEG"), "a.jpg").mask.all()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (saved(gray(2)), "gray values up to 2, expected white .above 127. where the object is, or 0 and 1"),
        (saved(gray(300, kind=np.uint16)), "gray values up to 300, expected white .above 32767."),
        (saved(colored((128, 0, 0), (0, 0, 128))), "2 colors and no black, expected the object in one color on black"),
        (b"no picture", "something unreadable, expected a picture of a mask"),
    ],
)
def test_what_does_not_say_where_the_object_is_is_refused(data, sentence):
    with pytest.raises(InputError, match=f"a.png: found {sentence}"):
        read_mask(data, "a.png")


def test_the_masks_of_a_run_are_read_by_white_alone(tmp_path):
    (tmp_path / "masks").mkdir()
    (tmp_path / "masks" / "a.png").write_bytes(saved(gray(1)))
    run = read_masks(tmp_path / "masks", ["a"])
    assert not any(mask.any() for mask in run.open("a").values())
