"""From the bytes of a photo to the pixels a network takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps

from fieldmark.features.crops import Box
from fieldmark.features.jpegs import decode_jpeg, draft_for, is_jpeg
from fieldmark.features.resampling import REDUCING_GAP, ResizedWindow, resampler_for_many
from fieldmark.storage.picture_files import PictureError, as_rgb, open_picture, refuse_huge, what_is_broken


class PhotoError(Exception):
    """A photo that cannot be decoded; the message says what is wrong with it."""


@dataclass(frozen=True)
class Preprocessing:
    """How a photo becomes a square of `size_px` pixels.

    Args:
        size_px: The side of the square.
        crop: The share of the short side that the square covers.
        mean, std: What the network expects each channel to be normalized by, for values between 0 and 1.
        resize: "cut" keeps the proportions, scales the short side and cuts a square out of the photo; "squash" scales
            both sides to the same length first, so that with `crop` 1 the whole photo is seen, out of proportion.
        place: Where the square is cut out: the shares of the room left that lie to its left and above it.
        mirrored: Whether left and right are exchanged in the end.
    """

    size_px: int
    crop: float
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    resize: Literal["cut", "squash"] = "cut"
    place: tuple[float, float] = (0.5, 0.5)
    mirrored: bool = False


# The share of the photo that the squares of "crops" cover at most: there must be room to move them.
CROPS_COVER = 0.875
# Orientations of EXIF that exchange width and height.
TURNED = (5, 6, 7, 8)
CORNERS = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
# The squares of "zooms" cover this share of the short side, and lie a third from the upper and the lower edge.
ZOOMS_COVER, ZOOMS = 0.75, ((0.5, 1 / 3), (0.5, 2 / 3))
# The closest square of "scales" covers this share of the short side.
CLOSE_COVERS = 0.65

# What most networks take, so that small looks at a photo need no decoding of their own.
LOOKED_AT_PX = 256
# A picture that is held serves a further network where it has this share of the side that the network wants.
LARGE_ENOUGH = 0.85
# Larger pictures than this are held at a fraction of their size.
HELD_PIXELS = 4_000_000
# A picture is plain where its gray values, at this side, spread less than this (of 255) around their mean.
PLAIN_PX, PLAIN_SPREAD = 32, 3.0
# It is noise where the correlation of its neighboring gray values, at that side, is lower than this.
NOISE_LIKENESS = 0.2


def views_of(how: Preprocessing, views: str) -> list[Preprocessing]:
    """The ways to look at a photo that features are averaged over, the widest first.

    >>> [view.mirrored for view in views_of(Preprocessing(8, 1.0, (0.5,) * 3, (0.5,) * 3), "flips")]
    [False, True]
    """
    crops = [how]
    if "zooms" in views:
        close = replace(how, crop=ZOOMS_COVER, resize="cut")
        crops = [_whole(how), *(replace(close, place=place) for place in ZOOMS)]
    if "scales" in views:
        crops = [_whole(how), how, replace(how, crop=CLOSE_COVERS, resize="cut")]
    if "crops" in views:
        narrow = replace(how, crop=min(how.crop, CROPS_COVER))
        crops = [narrow, *(replace(narrow, place=corner) for corner in CORNERS)]
    if "flips" in views:
        crops += [replace(view, mirrored=True) for view in crops]
    return crops


def _whole(how: Preprocessing) -> Preprocessing:
    return replace(how, crop=1.0, resize="squash")


class HeldPhoto(bytes):
    """The bytes of a photo that is looked at several times: what was decoded of it last is held beside them.

    Attributes:
        picture: The upright photo; reduced where it has more than `HELD_PIXELS`, which serves small looks alone.
        decoded: The size at which the file was decoded to it, empty where it is reduced.
    """

    picture: Image.Image | None = None
    decoded: tuple[int, ...] = ()

    def hold(self, picture: Image.Image, decoded: tuple[int, int]) -> None:
        """Holds a photo that was decoded."""
        factor = math.ceil(math.sqrt(picture.width * picture.height / HELD_PIXELS))
        self.picture, self.decoded = (picture, decoded) if factor <= 1 else (picture.reduce(factor), ())


def decode_photo(data: bytes, *, at_least_px: int | None = None, box: Box | None = None) -> Image.Image:
    """Decodes a photo completely, upright and in RGB, and cuts a box out of it.

    Args:
        data: The bytes of the file.
        at_least_px: The short side that is needed. JPEGs much larger than that are decoded at a half, a quarter or an
            eighth of their size, which costs a fraction of the time.
        box: The part that is needed, of the upright photo; None for all of it.

    Raises:
        PhotoError: When the bytes are no photo or end too early.
    """
    try:
        with open_picture(data) as photo:
            draft_for(photo, at_least_px, box)
            refuse_huge(photo)
            upright = _upright(photo, data)
            return upright if box is None else upright.crop(box.pixels(*upright.size))
    except PictureError as error:
        raise PhotoError(str(error)) from error
    except (OSError, SyntaxError, ValueError) as error:
        raise PhotoError(what_is_broken(error)) from error


def _upright(photo: Image.Image, data: bytes) -> Image.Image:
    """An opened photo decoded, or as it is held where somebody has decoded it at this size."""
    size = photo.size
    if isinstance(data, HeldPhoto) and data.picture is not None and data.decoded == size:
        return data.picture
    photo.load()
    upright = as_rgb(ImageOps.exif_transpose(photo))
    if isinstance(data, HeldPhoto):
        data.hold(upright, size)
    return upright


def small_photo(data: bytes, side_px: int, mode: str = "RGB") -> Image.Image:
    """A photo scaled to a small square, from what is held of it where that is enough.

    Args:
        data: The photo.
        side_px: The side of the square.
        mode: "RGB", or "L" for its gray values.

    Raises:
        PhotoError: When the bytes are no photo or end too early.
    """
    photo = data.picture if isinstance(data, HeldPhoto) else None
    if photo is None or min(photo.size) < side_px:
        photo = decode_photo(data, at_least_px=LOOKED_AT_PX if isinstance(data, HeldPhoto) else side_px)
    return photo.convert(mode).resize((side_px, side_px), Image.Resampling.BOX)


def is_plain(data: bytes, spread: float = PLAIN_SPREAD) -> bool:
    """Whether a photo shows nothing but one color: its gray values hardly differ.

    Args:
        data: The photo.
        spread: Below which standard deviation of its gray values, of 255, it is plain.

    Raises:
        PhotoError: When the bytes are no photo or end too early.
    """
    small = small_photo(data, PLAIN_PX, "L")
    return float(np.asarray(small, dtype=np.float64).std()) < spread


def is_noise(data: bytes) -> bool:
    """Whether a photo shows nothing but noise: neighboring parts of it are no more alike than distant ones.

    Raises:
        PhotoError: When the bytes are no photo or end too early.
    """
    small = np.asarray(small_photo(data, PLAIN_PX, "L"), dtype=np.float64)
    small -= small.mean()
    shared = ((small[1:] * small[:-1]).mean() + (small[:, 1:] * small[:, :-1]).mean()) / 2
    return bool(shared < NOISE_LIKENESS * np.square(small).mean())


def upright_size(data: bytes) -> tuple[int, int]:
    """Width and height of a photo as it is shown, from its header alone.

    Raises:
        PhotoError: When the bytes are no photo.
    """
    try:
        with open_picture(data) as photo:
            turned = photo.getexif().get(ExifTags.Base.Orientation, 1) in TURNED
            width, height = photo.size
            return (height, width) if turned else (width, height)
    except PictureError as error:
        raise PhotoError(str(error)) from error
    except (OSError, SyntaxError, ValueError) as error:
        raise PhotoError(f"no photo ({error})") from error


def decode_square(data: bytes, how: Preprocessing, box: Box | None = None) -> NDArray[np.uint8]:
    """Decodes, scales and cuts a photo, or a box of it, to the square a network takes, as height x width x 3."""
    square, _ = decode_resized(data, round(how.size_px / how.crop), partial(square_plan, how), box)
    return np.ascontiguousarray(square[:, ::-1]) if how.mirrored else square


def held_square(data: bytes, how: Preprocessing) -> NDArray[np.uint8]:
    """As `decode_square`, but from what is held of a photo where that is large enough.

    A network that need not see the very pixels that it would see by itself spares decoding a second time.

    Raises:
        PhotoError: When the bytes are no photo or end too early.
    """
    photo = data.picture if isinstance(data, HeldPhoto) else None
    if photo is None or min(photo.size) < LARGE_ENOUGH * how.size_px / how.crop:
        return decode_square(data, how)
    square = _resized_window(photo, partial(square_plan, how))
    return np.ascontiguousarray(square[:, ::-1]) if how.mirrored else square


def square_plan(how: Preprocessing, width: int, height: int) -> tuple[tuple[int, int], ResizedWindow]:
    """To which size a photo is resized, and which window of that is the square."""
    side = round(how.size_px / how.crop)
    resized = (max(how.size_px, side),) * 2
    if how.resize == "cut":
        scale = side / min(width, height)
        resized = max(how.size_px, round(width * scale)), max(how.size_px, round(height * scale))
    left, top = (int((room - how.size_px) * share) for room, share in zip(resized, how.place, strict=True))
    return resized, ResizedWindow(left, top, how.size_px, how.size_px)


def decode_resized(
    data: bytes,
    at_least_px: int,
    plan: Callable[[int, int], tuple[tuple[int, int], ResizedWindow]],
    box: Box | None = None,
) -> tuple[NDArray[np.uint8], float]:
    """A window of a photo, or of a box of it, resized, and width / height of what was resized.

    Args:
        data: The bytes of the file.
        at_least_px: The short side that is needed.
        plan: To which size a photo of some width and height is resized, and which window of that is wanted.
        box: The part of the upright photo that is resized; None for all of it.

    Raises:
        PhotoError: When the bytes are no photo or end too early.
    """
    # Only JPEGs count as many: for others nothing is compiled, and nobody is told that something is missing.
    resample = resampler_for_many() if is_jpeg(data) and not isinstance(data, HeldPhoto) else None
    if resample is not None and (pixels := decode_jpeg(data, at_least_px, box)) is not None:
        height, width, _ = pixels.shape
        return resample(pixels, *plan(width, height)), width / height
    photo = decode_photo(data, at_least_px=at_least_px, box=box)
    return _resized_window(photo, plan), photo.width / photo.height


def _resized_window(
    photo: Image.Image, plan: Callable[[int, int], tuple[tuple[int, int], ResizedWindow]]
) -> NDArray[np.uint8]:
    resized, (left, top, width, height) = plan(*photo.size)
    photo = photo.resize(resized, Image.Resampling.BICUBIC, reducing_gap=REDUCING_GAP)
    return np.asarray(photo.crop((left, top, left + width, top + height)))
