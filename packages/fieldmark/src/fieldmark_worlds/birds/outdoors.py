"""What the air does to a song, and what else is to be heard: distance, reverberation, wind, water, insects, machines.

Workers import this module afresh, so it imports no table library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark_worlds.birds.birdsong import RATE_HZ, Samples

# How loud a bird is one meter away, beside the noise of a quiet site; everything else follows from distance.
SONG_AT_1_M_DB = 31.0
# What the air takes away for each meter at 4 kHz; it grows with the frequency.
ABSORPTION_DB_PER_M = 0.035
NOISE_LEVEL = 0.006
TILE_SAMPLES = 2**18
MOST_TILES = 3
FADE_S = 1.0


@dataclass(frozen=True)
class Surroundings:
    """How a place sounds without birds.

    Args:
        slope: How fast noise falls with frequency (1 is pink, 2 is brown).
        wind: Gusts of low noise, 0 to 1.
        water: A brook, 0 to 1.
        insects: Bands of chirping at the top, 0 to 1.
        machines: Traffic and the like below 300 Hz, 0 to 1.
        hiss: Of the recorder, 0 to 1.
        echo_s: How long it takes for reverberation to die away by 60 dB.
    """

    slope: float
    wind: float
    water: float
    insects: float
    machines: float
    hiss: float
    echo_s: float


def noise(seconds: float, place: Surroundings, rng: np.random.Generator) -> Samples:
    """The noise of a place: tiles that fade into each other, each turned to begin elsewhere when it comes again."""
    length, fade = round(seconds * RATE_HZ), round(FADE_S * RATE_HZ)
    tile = min(TILE_SAMPLES, _fast_length(length + fade))
    step = tile - fade
    out = np.zeros(length + 2 * tile, dtype=np.float32)
    window = np.ones(tile, dtype=np.float32)
    # Noises that know nothing of each other add by power: quarter circles keep the level through a fade.
    window[:fade] = np.sin(np.linspace(0, np.pi / 2, fade))
    window[-fade:] = np.cos(np.linspace(0, np.pi / 2, fade))
    starts = range(0, length + fade, step)
    insects = [(rng.uniform(4800, 11_000), rng.uniform(6, 34)) for _ in range(round(4 * place.insects))]
    tiles = [_tile(tile, place, insects, rng) for _ in range(min(len(starts), MOST_TILES))]
    for number, start in enumerate(starts):
        # A tile is periodic, so that it can begin anywhere.
        turn = int(rng.integers(tile)) if number >= len(tiles) else 0
        out[start : start + tile] += window * np.roll(tiles[number % len(tiles)], turn)
    return NOISE_LEVEL * out[fade : length + fade]


def _tile(n: int, place: Surroundings, insects: Sequence[tuple[float, float]], rng: np.random.Generator) -> Samples:
    frequency = np.fft.rfftfreq(n, 1 / RATE_HZ).astype(np.float32)
    steady = 0.9 * (np.maximum(frequency, 40.0) / 400.0) ** (-place.slope / 2)
    steady += 0.35 * place.hiss
    steady += 1.2 * place.water * np.exp(-0.5 * (np.log2(np.maximum(frequency, 1) / 1400.0) / 0.9) ** 2)
    steady += 4.0 * place.machines * (frequency < 300) * (frequency > 45)
    sound = _shaped(steady, n, rng)
    if place.wind > 0:
        gusts = _slow(n, 0.35, rng) ** 2
        sound += 3.0 * place.wind * gusts * _shaped((np.maximum(frequency, 30.0) / 100.0) ** -1.6, n, rng)
    for pitch_hz, pulse_hz in insects:
        sound += place.insects * _insect(n, pitch_hz, pulse_hz, rng)
    return sound


def _insect(n: int, pitch_hz: float, pulse_hz: float, rng: np.random.Generator) -> Samples:
    """One insect: a high tone that trembles, switched on and off many times a second."""
    loop = min(n, 2**16)
    time = np.arange(loop, dtype=np.float32) / RATE_HZ
    tremble = 12.0 * _slow(loop, 40.0, rng) + 5.0 * _slow(loop, 400.0, rng)
    tone = np.sin(np.float32(2 * np.pi * pitch_hz) * time + tremble)
    pulse = np.sin(np.float32(2 * np.pi * pulse_hz) * time) > -0.2
    level = 0.6 * (0.3 + 0.7 * _slow(n, 0.15, rng))
    return np.asarray(level * np.resize((0.3 + 0.7 * pulse) * tone, n), dtype=np.float32)


def _shaped(spectrum: NDArray[np.floating], n: int, rng: np.random.Generator) -> Samples:
    """Gaussian noise with a spectrum, at the level that the same spectrum always has."""
    parts = rng.standard_normal((2, len(spectrum)), dtype=np.float32)
    wave = np.fft.irfft((spectrum * (parts[0] + 1j * parts[1])).astype(np.complex64), n)
    return np.asarray(wave * np.float32(np.sqrt(n / 2)), dtype=np.float32)


def _slow(n: int, per_s: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """A curve between 0 and 1 that changes so often a second."""
    knots = max(4, round(n / RATE_HZ * per_s) + 3)
    return np.interp(np.linspace(0, 1, n), np.linspace(0, 1, knots), rng.random(knots)).astype(np.float32)


def travel(song: Samples, distance_m: float, place: Surroundings, rng: np.random.Generator) -> Samples:
    """A song as it arrives: weaker and duller with distance, and with the echoes of the place behind it.

    Returns:
        Samples on the scale of `noise`, longer than the song by its reverberation.
    """
    tail = round(min(place.echo_s, 1.2) * RATE_HZ)
    n = _fast_length(len(song) + tail)
    frequency = np.fft.rfftfreq(n, 1 / RATE_HZ)
    loss_db = ABSORPTION_DB_PER_M * distance_m * (frequency / 4000.0) ** 1.3 + 20 * np.log10(max(distance_m, 1.0))
    spectrum = np.fft.rfft(song, n) * (10.0 ** ((SONG_AT_1_M_DB - loss_db) / 20)).astype(np.float32)
    echo = np.zeros(n, dtype=np.float32)
    time = np.arange(tail, dtype=np.float32) / RATE_HZ
    echo[:tail] = rng.standard_normal(tail, dtype=np.float32) * 10.0 ** (-3.0 * time / np.float32(place.echo_s))
    echo /= max(float(np.sqrt((echo**2).sum())), 1e-9)
    # The farther away, the more of what arrives has gone roundabout ways.
    roundabout = 0.75 * distance_m / (distance_m + 35.0)
    wave = np.fft.irfft(spectrum * (1 - 0.4 * roundabout + roundabout * np.fft.rfft(echo)), n)
    return np.asarray(NOISE_LEVEL * wave[: len(song) + tail], dtype=np.float32)


def _fast_length(n: int) -> int:
    """A length of at least n whose transform is fast: a product of twos with 1, 3 or 5."""
    return min(int(odd * 2 ** int(np.ceil(np.log2(n / odd)))) for odd in (1, 3, 5))
