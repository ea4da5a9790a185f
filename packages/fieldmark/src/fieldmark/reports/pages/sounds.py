"""Stretches of recordings for a page: as a picture to look at and as a clip to play."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any, cast

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray
from PIL import Image

from fieldmark.audio.samples import Recording, SoundError
from fieldmark.registry import require

HIGHEST_HZ = 12_000
WINDOW_S = 0.024
# How far below the loudest a picture goes, in decibels above the noise of each band.
DEPTH_DB = 42.0
LEAST_TOP_DB = 28.0
JPEG_QUALITY = 78


@dataclass(frozen=True)
class Stretch:
    """A few seconds of a recording, in one channel."""

    samples: NDArray[np.float32]
    rate_hz: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate_hz


def read_stretch(file: IO[bytes], start_s: float, seconds: float) -> Stretch:
    """Reads a stretch of a recording; shorter where the recording ends.

    Raises:
        OSError: When the file is no recording, or has nothing there.
    """
    try:
        with Recording(file) as recording:
            samples, rate = recording.stretch(start_s, seconds), recording.rate_hz
    except SoundError as error:
        raise OSError(str(error)) from error
    if not len(samples):
        raise OSError("no samples there")
    return Stretch(samples, rate)


def clip_uri(stretch: Stretch) -> str:
    """The stretch as a clip that every browser plays, made as loud as it may be without changing its sound."""
    soundfile = cast(Any, require("soundfile", "A report about recordings"))
    loudest = float(np.abs(stretch.samples).max())
    louder = stretch.samples * np.float32(0.85 / loudest) if loudest > 0 else stretch.samples
    buffer = BytesIO()
    # MP3 and not OGG, which bears a random number: the same run gives the same page.
    soundfile.write(buffer, louder, stretch.rate_hz, format="MP3")
    return f"data:audio/mpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def highest_hz(stretch: Stretch) -> float:
    """The upper edge of the picture of a stretch; recordings at a low rate hold nothing up to 12 kHz."""
    return min(HIGHEST_HZ, stretch.rate_hz / 2)


def picture_uri(stretch: Stretch, *, width: int, height: int) -> str:
    """The spectrogram of the stretch up to 12 kHz as a data URI, high notes on top."""
    shades = spectrogram(stretch, columns=width)
    colors = (colormaps["magma"](shades)[..., :3] * 255).astype(np.uint8)
    picture = Image.fromarray(colors[::-1]).resize((width, height), Image.Resampling.LANCZOS)
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def spectrogram(stretch: Stretch, *, columns: int) -> NDArray[np.float32]:
    """Shades from 0 to 1, one row per band from low to high, one column per moment.

    The noise of each band (what it has in its quieter moments) is black, so that songs stand out whatever hums below.
    """
    size = 2 ** round(np.log2(WINDOW_S * stretch.rate_hz))
    padded = np.pad(stretch.samples, (size // 2, size))
    starts = np.linspace(0, len(stretch.samples) - 1, columns).astype(np.int64)
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[starts] * np.hanning(size).astype(np.float32)
    power = np.abs(np.fft.rfft(frames, axis=1)).astype(np.float32) ** 2
    bands = power[:, np.fft.rfftfreq(size, 1 / stretch.rate_hz) <= HIGHEST_HZ].T
    decibels = 10 * np.log10(bands + 1e-12)
    above = decibels - np.quantile(decibels, 0.3, axis=1, keepdims=True)
    # Where nothing sounds, noise must not be blown up to look like something.
    top = max(float(np.quantile(above, 0.999)), LEAST_TOP_DB)
    return np.asarray(np.clip(1 - (top - above) / min(DEPTH_DB, top + 6.0), 0, 1), dtype=np.float32)
