"""From the traits of a bird to the sound it makes: whistles, chirps, trills and buzzes.

A voice has up to three syllables. Each is a glide of pitch (`slope`, `bend`) with or without vibrato, some repeated
fast enough to become a trill; harmonics and roughness (a fast beat of loudness) belong to the whole voice. A song
strings syllables together (`aab`), a call is one or two of them. Workers import this module afresh, so it imports no
table library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldmark_worlds.nature.kingdom import Specimen

Samples = NDArray[np.float32]
RATE_HZ = 32_000
LOWEST_HZ, HIGHEST_HZ = 700.0, 9_500.0
MIDDLE_HZ = 3_100.0
MOST_HARMONICS = 6
LONGEST_SONG_S = 6.0
RAMP_S = 0.006


@dataclass(frozen=True)
class Syllable:
    """One syllable: pitch relative to the voice in octaves, times in seconds."""

    step_octaves: float
    slope_octaves: float
    bend_octaves: float
    length_s: float
    gap_s: float
    repeats: int
    vibrato_octaves: float
    vibrato_hz: float


@dataclass(frozen=True)
class Voice:
    """What one bird can sing."""

    pitch_hz: float
    harmonics: float
    roughness: float
    roughness_hz: float
    loudness_db: float
    pause_s: float
    song: str
    call: str
    syllables: dict[str, Syllable]


def voice_of(specimen: Specimen) -> Voice:
    """The voice behind the traits of a bird."""
    value = {name: float(trait) for name, trait in specimen.items() if not isinstance(trait, str)}
    tempo = 2.0 ** (0.35 * np.tanh(value["tempo"] / 1.5))
    return Voice(
        pitch_hz=MIDDLE_HZ * 2.0 ** (1.15 * np.tanh(value["pitch"] / 2.2)),
        harmonics=0.75 * _share(value["harmonics"]),
        roughness=_share(1.4 * value["roughness"]),
        roughness_hz=70.0 + 60.0 * _share(value["tempo"]),
        loudness_db=2.5 * np.tanh(value["loudness"]),
        pause_s=1.6 * 2.0 ** (0.8 * np.tanh(value["pause"])),
        song=str(specimen["song"]),
        call=str(specimen["call"]),
        syllables={which: _syllable(value, which, tempo) for which in "abc"},
    )


def _syllable(value: dict[str, float], which: str, tempo: float) -> Syllable:
    length = 0.13 * 2.0 ** (1.6 * np.tanh(value[f"length_{which}"] / 1.8)) / tempo
    # Short syllables are repeated more: that is what a trill is.
    repeats = 2.2 * 2.0 ** (1.3 * np.tanh(value[f"repeats_{which}"] / 1.5)) * (0.13 / length) ** 0.8
    return Syllable(
        step_octaves=0.55 * np.tanh(value[f"step_{which}"] / 1.5),
        slope_octaves=0.9 * np.tanh(value[f"slope_{which}"] / 1.5),
        bend_octaves=0.5 * np.tanh(value[f"bend_{which}"] / 1.5),
        length_s=length,
        gap_s=0.018 + 0.35 * length,
        repeats=int(np.clip(round(repeats), 1, 16)),
        vibrato_octaves=0.10 * max(0.0, np.tanh(value[f"vibrato_{which}"])),
        vibrato_hz=24.0 + 14.0 * _share(value["tempo"]),
    )


def _share(latent: float) -> float:
    return float(1 / (1 + np.exp(-latent)))


def sing(voice: Voice, what: Literal["song", "call"], rng: np.random.Generator) -> Samples:
    """One rendition, at a loudness of 1 (root mean square of its loud parts), never twice the same."""
    order = voice.song if what == "song" else voice.call
    wander = 2.0 ** rng.normal(0, 0.012)
    pieces: list[Samples] = []
    for which in order:
        syllable = voice.syllables[which]
        repeats = syllable.repeats if what == "song" else min(syllable.repeats, 3)
        repeats = max(1, repeats + int(rng.integers(-1, 2)) * (repeats > 4))
        # Two turns are never quite the same; in a trill nobody hears more than that.
        turns = [_render(voice, syllable, wander, rng) for _ in range(min(repeats, 2))]
        for number in range(repeats):
            fade = 1.0 - 0.25 * (number / repeats)
            pieces.append(np.float32(fade) * turns[number % len(turns)])
            pieces.append(np.zeros(round(syllable.gap_s * rng.uniform(0.9, 1.1) * RATE_HZ), dtype=np.float32))
        pieces.append(np.zeros(round(rng.uniform(0.02, 0.07) * RATE_HZ), dtype=np.float32))
    samples = np.concatenate(pieces)[: round(LONGEST_SONG_S * RATE_HZ)]
    sounding = samples[np.abs(samples) > 0.05]
    level = float(np.sqrt(np.mean(sounding**2))) if sounding.size else 1.0
    return np.asarray(samples / max(level, 1e-6), dtype=np.float32)


def _render(voice: Voice, syllable: Syllable, wander: float, rng: np.random.Generator) -> Samples:
    """One syllable: a glide with harmonics, shaped so that it neither clicks nor drones."""
    n = max(round(syllable.length_s * rng.uniform(0.94, 1.06) * RATE_HZ), 64)
    u = np.linspace(0.0, 1.0, n)
    time = np.arange(n) / RATE_HZ
    octaves = (
        syllable.step_octaves
        + syllable.slope_octaves * (u - 0.5)
        + syllable.bend_octaves * (4 * u * (1 - u) - 2 / 3)
        + syllable.vibrato_octaves * np.sin(2 * np.pi * (syllable.vibrato_hz * time + rng.random()))
    )
    pitch = np.clip(voice.pitch_hz * wander * 2.0**octaves, LOWEST_HZ, HIGHEST_HZ)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE_HZ
    sound = np.sin(phase)
    for harmonic in range(2, MOST_HARMONICS + 1):
        strength = voice.harmonics ** (harmonic - 1)
        if strength < 0.02:
            break
        # A harmonic fades out before it would fold back from half the sampling rate.
        audible = np.clip((0.47 * RATE_HZ - harmonic * pitch) / 1500.0, 0.0, 1.0)
        sound = sound + strength * audible * np.sin(harmonic * phase)
    beat = 0.5 * (1 + np.cos(2 * np.pi * voice.roughness_hz * time))
    sound = sound * (1 - voice.roughness * (1 - beat))
    ramp = min(round(RAMP_S * RATE_HZ), n // 3)
    envelope = np.sin(np.pi * u) ** 0.35
    envelope[:ramp] *= np.linspace(0, 1, ramp)
    envelope[-ramp:] *= np.linspace(1, 0, ramp)
    return np.asarray(sound * envelope, dtype=np.float32)
