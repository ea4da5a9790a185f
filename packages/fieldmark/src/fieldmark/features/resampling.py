"""Bicubic resampling of photos, compiled: the pixels of Pillow, to the last digit, in a sixth of its time.

Pillow weights rows and columns by integers of 22 bits and rounds in between; so does this. The loops below are plain
Python that numba compiles where it is installed (extra `fast`). Compiling takes seconds, so it waits until a process
has read many photos, and what was compiled is only used after it has given the pixels of the Pillow at hand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from types import ModuleType
from typing import NamedTuple

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image

from fieldmark.features.fast_packages import SlowReadingError, broken_package, need_fast_package
from fieldmark.work.progress import say

Pixels = NDArray[np.uint8]

# So many photos are read by Pillow before a process compiles: what that takes, they would hardly give back.
FEW_PHOTOS = 1000
# From twice this ratio of sizes on, Pillow averages blocks of pixels before it resamples.
REDUCING_GAP = 2.0
BITS = 22
HALF = 1 << (BITS - 1)
CUBIC = -0.5


class ResizedWindow(NamedTuple):
    """The part of a resized photo that is wanted, in pixels."""

    left: int
    top: int
    width: int
    height: int


class Taps(NamedTuple):
    """What each new row (or column) is made of: old ones in a row, from the first, each with its weight."""

    first: NDArray[np.int64]
    weights: NDArray[np.int32]

    @property
    def used(self) -> slice:
        """The old rows that are needed at all."""
        return slice(int(self.first[0]), int(self.first[-1]) + self.weights.shape[1])


@lru_cache(maxsize=4096)
def taps(length: int, resized: int, start: int, number: int) -> Taps:
    """The taps of `number` new rows from `start` on, where `length` old rows become `resized` new ones.

    >>> taps(4, 4, 0, 4).weights.max(axis=1) >> BITS
    array([1, 1, 1, 1], dtype=int32)
    """
    scale = length / resized
    wide = max(scale, 1.0)
    center = (np.arange(start, start + number) + 0.5) * scale
    low = np.maximum((center - 2 * wide + 0.5).astype(np.int64), 0)
    high = np.minimum((center + 2 * wide + 0.5).astype(np.int64), length)
    most = int((high - low).max())
    first = np.minimum(low, length - most)  # all have as many taps, some of weight 0
    place = first[:, None] + np.arange(most)
    inside = (place >= low[:, None]) & (place < high[:, None])
    weights = np.where(inside, _cubic(np.abs(place - center[:, None] + 0.5) / wide), 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    return Taps(first, np.trunc(weights * (1 << BITS) + np.copysign(0.5, weights)).astype(np.int32))


def _cubic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    near = ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0
    far = (((x - 5.0) * x + 8.0) * x - 4.0) * CUBIC
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def weigh_rows(source: Pixels, first: NDArray[np.int64], weights: NDArray[np.int32], out: Pixels) -> None:
    """Each row of `out` is the weighted sum of rows of `source`."""
    length = source.shape[1]
    sums = np.empty(length, np.int32)
    for row in range(len(weights)):
        sums[:] = HALF
        for tap in range(weights.shape[1]):
            weight = weights[row, tap]
            line = source[first[row] + tap]
            for place in range(length):
                sums[place] += weight * np.int32(line[place])
        filled = out[row]
        for place in range(length):
            filled[place] = min(max(sums[place] >> BITS, 0), 255)


def exchange_axes(source: Pixels, out: Pixels) -> None:
    """Copies `source` (rows x columns x 3) to `out` with rows and columns exchanged."""
    for row in range(source.shape[0]):
        for column in range(source.shape[1]):
            for channel in range(3):
                out[column, row, channel] = source[row, column, channel]


def always_across_first(width: int, height: int, size: tuple[int, int]) -> bool:
    """Whether a photo is made narrower before it is made lower: always, in Pillow 12 and older."""
    return True


def fewer_rows_later(width: int, height: int, size: tuple[int, int]) -> bool:
    """The same for Pillow 13, which makes a photo lower first where that takes away more than twice as many lines."""
    return height <= size[1] or height - size[1] <= 2 * (width - size[0])


@dataclass(frozen=True)
class Resampler:
    """The loops, compiled or not, in the order in which the Pillow at hand goes about it."""

    weigh_rows: Callable[..., None] = weigh_rows
    exchange_axes: Callable[..., None] = exchange_axes
    across_first: Callable[[int, int, tuple[int, int]], bool] = fewer_rows_later

    def __call__(self, pixels: Pixels, size: tuple[int, int], window: ResizedWindow) -> Pixels:
        """A window of `pixels` (rows x columns x 3) resized to `size`, which is width and height."""
        height, width, _ = pixels.shape
        if max(width / size[0], height / size[1]) >= 2 * REDUCING_GAP:
            return _by_pillow(pixels, size, window)
        across = taps(width, size[0], window.left, window.width)
        down = taps(height, size[1], window.top, window.height)
        part = np.ascontiguousarray(pixels[down.used, across.used])
        if self.across_first(width, height, size):
            return self._weighed(self._across(part, across), down)
        return self._across(self._weighed(part, down), across)

    def _across(self, pixels: Pixels, across: Taps) -> Pixels:
        return self._exchanged(self._weighed(self._exchanged(pixels), across))

    def _weighed(self, pixels: Pixels, by: Taps) -> Pixels:
        done = np.empty((len(by.first), *pixels.shape[1:]), np.uint8)
        source, out = (array.reshape(len(array), -1) for array in (pixels, done))
        self.weigh_rows(source, by.first - by.used.start, by.weights, out)
        return done

    def _exchanged(self, pixels: Pixels) -> Pixels:
        out = np.empty((pixels.shape[1], pixels.shape[0], 3), np.uint8)
        self.exchange_axes(pixels, out)
        return out


def _by_pillow(pixels: Pixels, size: tuple[int, int], window: ResizedWindow) -> Pixels:
    photo = Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC, reducing_gap=REDUCING_GAP)
    left, top, width, height = window
    return np.asarray(photo.crop((left, top, left + width, top + height)))


def same_pixels(resampler: Resampler) -> bool:
    """Whether a resampler gives the pixels of the Pillow at hand, for a wide photo, a tall one and a small one."""
    rng = np.random.default_rng(0)
    for (width, height), size in (((80, 60), (43, 32)), ((30, 93), (20, 62)), ((40, 40), (40, 17)), ((9, 7), (40, 31))):
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        window = ResizedWindow(1, 2, size[0] - 2, size[1] - 3)
        if not np.array_equal(resampler(pixels, size, window), _by_pillow(pixels, size, window)):
            return False
    return True


def compiled() -> Resampler:
    """A compiled resampler that gives the pixels of the Pillow at hand.

    Raises:
        SlowReadingError: When numba does not work here, or Pillow goes about it in a way not known here.
    """
    need_fast_package("numba")
    import numba

    try:
        same = next((resampler for resampler in _made_by(numba) if same_pixels(resampler)), None)
    except Exception as error:  # numba and LLVM fail in many ways, all of which leave the photos to Pillow
        raise broken_package("numba", "does not compile here", error) from error
    if same is None:
        why = f"Pillow {PIL.__version__} resamples in an order that is not known here"
        raise SlowReadingError(why, "pip install --upgrade fieldmark")
    return same


def _made_by(numba: ModuleType) -> Iterator[Resampler]:
    try:  # what was compiled is kept beside the sources, or in the cache folder of the user
        weigh, exchange = (numba.njit(loop, nogil=True, cache=True) for loop in (weigh_rows, exchange_axes))
    except RuntimeError:  # neither can be written to
        weigh, exchange = (numba.njit(loop, nogil=True) for loop in (weigh_rows, exchange_axes))
    for order in (fewer_rows_later, always_across_first):
        yield Resampler(weigh, exchange, order)


class CompiledForMany:
    """The compiled resampler once a process has asked for it more than a number of times.

    Where there can be none, one line says so at that point: whoever reads many photos can change it.
    """

    def __init__(self, few: int) -> None:
        self._few, self._asked, self._compiling = few, count(1), threading.Lock()
        self._tried = False
        self._resampler: Resampler | None = None
        self._reader = f"Pillow, as for {few:,} photos or fewer"

    def expect(self, photos: int) -> None:
        """Lets the first of so many photos count as many, where they are; the others wait until it has compiled."""
        if photos > self._few:
            self._few = 0

    def __call__(self) -> Resampler | None:
        """The resampler, None as long as there is none."""
        if self._tried or next(self._asked) <= self._few:
            return self._resampler
        return self.compile_now()

    def compile_now(self, *, tell: bool = True) -> Resampler | None:
        """The same for a process that knows it will read many photos; while another thread is at it there is none.

        Args:
            tell: Whether a line says why there can be none.
        """
        if self._tried or not self._compiling.acquire(blocking=self._few == 0):
            return self._resampler
        try:
            if self._tried:  # by the thread that this one waited for
                return self._resampler
            need_fast_package("simplejpeg")  # which hands over the pixels
            self._resampler, self._reader = compiled(), "compiled loops"
        except SlowReadingError as error:
            self._reader = f"Pillow: {error}"
            if tell:
                say(
                    f"Photos are read by Pillow alone, which takes longer: {error}. To read them faster: {error.remedy}"
                )
        finally:
            self._tried = True
            self._compiling.release()
        return self._resampler

    @property
    def reader(self) -> str:
        """What reads photos now, in words."""
        return self._reader


resampler_for_many = CompiledForMany(FEW_PHOTOS)
