"""Small recordings for the tests, as the bytes of files."""

from __future__ import annotations

import io

import numpy as np
import soundfile


def tone(seconds: float, rate_hz: int, *, hz: float = 3000.0, channels: int = 1, level: float = 0.3) -> np.ndarray:
    """A steady tone, samples x channels."""
    time = np.arange(round(seconds * rate_hz)) / rate_hz
    return np.repeat((level * np.sin(2 * np.pi * hz * time)).astype(np.float32)[:, None], channels, axis=1)


def song(seconds: float, rate_hz: int, *, hz: float, seed: int = 0, hiss: float = 0.003) -> np.ndarray:
    """Short notes around a pitch in faint noise: one chirp every half second."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate_hz)) / rate_hz
    within = time % 0.5
    chirp = np.sin(2 * np.pi * hz * (1 + 0.2 * within) * within) * np.exp(-(((within - 0.15) / 0.05) ** 2))
    return (0.3 * chirp + rng.normal(0, hiss, len(time))).astype(np.float32)


def encoded(samples: np.ndarray, rate_hz: int, kind: str = "WAV") -> bytes:
    """The bytes of a file of that kind."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate_hz, format=kind)
    return file.getvalue()
