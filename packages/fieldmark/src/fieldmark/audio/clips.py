"""Cutting a stream of samples into clips, and filling up those that are too short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Literal

import numpy as np

from fieldmark.audio.samples import Samples

Padding = Literal["zeros", "repeat", "noise"]
Span = tuple[int, int]  # first sample, and the one after the last

# As loud as the hiss of a quiet recorder; enough that a network does not meet digital silence it was never shown.
NOISE_LEVEL = 1e-4


def cut(blocks: Iterable[Samples], spans: Iterable[Span]) -> Iterator[Samples]:
    """Yields the samples of each span, holding no more than a span and a block in memory.

    Args:
        blocks: The stream, from its beginning.
        spans: In the order of their first samples; they may overlap. What lies beyond the end of the stream is left
            off, so that a clip may be short or empty.
    """
    stream = iter(blocks)
    held, first, ended = np.empty(0, dtype=np.float32), 0, False
    for start, end in spans:
        while not ended and first + len(held) < end:
            block = next(stream, None)
            if block is None:
                ended = True
            else:
                passed = min(max(start - first, 0), len(held))
                held, first = np.concatenate([held[passed:], block]), first + passed
        yield held[max(start - first, 0) : max(end - first, 0)].copy()


def all_windows(blocks: Iterable[Samples], window: int, hop: int) -> Iterator[Samples]:
    """Yields windows of the whole stream, one every `hop` samples, until one would begin at or after its end."""
    spans = ((start, start + window) for start in count(0, hop))
    for clip in cut(blocks, spans):
        if len(clip) == 0:
            return
        yield clip


def starts_within(span: int, window: int) -> list[int]:
    """Where windows begin that cover a span, evenly spread, as few as possible.

    >>> starts_within(5, 3), starts_within(6, 3), starts_within(2, 3)
    ([0, 2], [0, 3], [0])
    """
    number = max(1, -(-span // window))
    return [round(place * (span - window) / max(1, number - 1)) for place in range(number)] if number > 1 else [0]


def fill(clip: Samples, length: int, padding: Padding = "zeros") -> Samples:
    """The clip at exactly this length: cut, or filled up by silence, by itself again, or by faint noise.

    >>> fill(np.array([1, 2], dtype=np.float32), 5, "repeat")
    array([1., 2., 1., 2., 1.], dtype=float32)
    """
    missing = length - len(clip)
    if missing <= 0:
        return clip[:length]
    if padding == "repeat" and len(clip):
        return np.resize(clip, length)
    if padding == "noise":
        # The same noise for the same gap: what is computed from a clip must not change from one time to the next.
        noise = np.random.default_rng(missing).normal(0, NOISE_LEVEL, missing)
        return np.concatenate([clip, noise.astype(np.float32)])
    return np.concatenate([clip, np.zeros(missing, dtype=np.float32)])
