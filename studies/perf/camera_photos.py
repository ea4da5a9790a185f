"""JPEGs as cameras write them, for measuring: real photos made larger, with the grain that enlarging leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studies.evidence.results import real_data

QUALITY = 90
# Levels (of 255) of a field with the spectrum of nature, 1/f, and of the noise of a sensor.
TEXTURE, SENSOR_NOISE = 8.0, 2.0
REAL = "fungi_genera"


def write_camera_photos(
    folder: Path, number: int, long_px: int, seed: int = 0, quality: int = QUALITY, sources: Sequence[str] = (REAL,)
) -> str:
    """Writes photos whose long side has `long_px` pixels to `folder`/photo/; returns where their contents come from."""
    rng = np.random.default_rng(seed)
    roots = [root for root in map(real_data, sources) if root]
    (folder / "photo").mkdir(parents=True)
    for place, small in enumerate(_real(roots, number) if roots else _drawn(rng, number)):
        scale = long_px / max(small.size)
        size = round(small.width * scale), round(small.height * scale)
        large = np.asarray(small.resize(size, Image.Resampling.BICUBIC), dtype=np.float64)
        large = large + TEXTURE * natural_field(size[1], size[0], rng)[..., None]
        large = large + rng.normal(0, SENSOR_NOISE, large.shape)
        Image.fromarray(large.clip(0, 255).astype(np.uint8)).save(folder / "photo" / f"{place:04}.jpg", quality=quality)
    names = ", ".join(root.name for root in roots)
    return f"{names}, enlarged, with grain" if roots else "drawn fields with the spectrum 1/f, with grain"


def read_photo(path: str) -> bytes:
    """The bytes of one of them, for any process."""
    return Path(path).read_bytes()


def natural_field(height: int, width: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A random field whose amplitudes fall with 1/f, of mean 0 and standard deviation 1."""
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    frequency[0, 0] = np.inf
    field = np.fft.irfft2(np.fft.rfft2(rng.normal(size=(height, width))) / frequency, s=(height, width))
    return np.asarray(field / field.std())


def _real(roots: Sequence[Path], number: int) -> Iterator[Image.Image]:
    paths = sorted(path for root in roots for path in root.rglob("*.jpg"))
    for place in range(number):
        with Image.open(paths[place * len(paths) // number]) as photo:
            yield photo.convert("RGB")


def _drawn(rng: np.random.Generator, number: int) -> Iterator[Image.Image]:
    for _ in range(number):
        channels = [128 + 50 * natural_field(240, 320, rng) for _ in range(3)]
        yield Image.fromarray(np.stack(channels, axis=2).clip(0, 255).astype(np.uint8))
