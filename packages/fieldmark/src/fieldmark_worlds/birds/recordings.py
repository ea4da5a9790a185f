"""Recording birds: who sings when, from how far, and what a microphone hears of it.

Workers import this module afresh, so it imports no table library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from fieldmark.registry import require
from fieldmark.work.blocks import Executor, all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress
from fieldmark_worlds.birds.birdsong import RATE_HZ, Samples, Voice, sing, voice_of
from fieldmark_worlds.birds.outdoors import Surroundings, noise, travel
from fieldmark_worlds.nature.kingdom import Specimen

MOST_AT_ONCE = 8
CALL_SHARE = 0.25
_RECORDINGS_PER_BLOCK = 4


@dataclass(frozen=True)
class Singer:
    """One bird within earshot.

    Args:
        species: Its number.
        specimen: Its traits.
        distance_m: How far away it sits.
        eager: Which share of the time it is in the mood to sing.
    """

    species: int
    specimen: Specimen
    distance_m: float
    eager: float


@dataclass(frozen=True)
class RecordingJob:
    """One recording to make.

    Args:
        file: Where it goes, relative to the root of the release.
        seconds: How long it is.
        place: What it sounds like there without birds.
        singers: The birds; in a focal recording the first is the one it is about.
        peak: The loudest sample, for recordists who set their level; None leaves the level as it is.
        seed: What its chance comes from.
    """

    file: str
    seconds: float
    place: Surroundings
    singers: tuple[Singer, ...]
    peak: float | None
    seed: tuple[int, ...]


class Rendition(NamedTuple):
    """One song or call in a recording."""

    file: str
    species: int
    singer: int
    what: str
    start_s: float
    end_s: float
    distance_m: float


def make_recordings(root: Path, jobs: Sequence[RecordingJob], executor: Executor | None = None) -> list[Rendition]:
    """Writes recordings below `root`, on all cores unless an executor is given, and returns what is sung in them."""
    require("soundfile", "A world of sounds")
    for folder in sorted({(root / job.file).parent for job in jobs}):
        folder.mkdir(parents=True, exist_ok=True)
    sung: list[Rendition] = []
    with progress("recording birds", len(jobs)) as tick:
        blocks = blocks_of(jobs, _RECORDINGS_PER_BLOCK)
        for done in map_blocks(partial(_record_block, root), blocks, executor or all_cores()):
            sung += [rendition for renditions in done for rendition in renditions]
            tick(len(done))
    return sung


def _record_block(root: Path, jobs: Sequence[RecordingJob]) -> list[list[Rendition]]:
    soundfile = cast(Any, require("soundfile", "A world of sounds"))
    done = []
    for job in jobs:
        samples, sung = record(job)
        soundfile.write(root / job.file, samples, RATE_HZ)
        done.append(sung)
    return done


def record(job: RecordingJob) -> tuple[Samples, list[Rendition]]:
    """The samples of a recording, and every song and call in it by its start."""
    rng = np.random.default_rng(np.random.SeedSequence(job.seed))
    mix = noise(job.seconds, job.place, rng)
    planned = [
        (start, number, what) for number, singer in enumerate(job.singers) for start, what in _plan(job, singer, rng)
    ]
    voices = [voice_of(singer.specimen) for singer in job.singers]
    sung: list[Rendition] = []
    free_at = [0.0] * len(voices)
    for start, number, what in sorted(planned):
        singer = job.singers[number]
        if start < free_at[number] or _crowded(sung, singer.species, start):
            continue
        song = _loud(voices[number], what, rng)
        end = start + len(song) / RATE_HZ
        _add(mix, travel(song, singer.distance_m, job.place, rng), start)
        free_at[number] = end + 0.3
        sung.append(Rendition(job.file, singer.species, number, what, start, min(end, job.seconds), singer.distance_m))
    if job.peak is not None:
        mix = mix * np.float32(job.peak / max(float(np.abs(mix).max()), 1e-6))
    return np.clip(mix, -0.999, 0.999), sung


def _plan(
    job: RecordingJob, singer: Singer, rng: np.random.Generator
) -> Iterator[tuple[float, Literal["song", "call"]]]:
    """When a bird begins to sing: in bouts, with rests between them."""
    voice = voice_of(singer.specimen)
    bout_s = 22.0
    rest_s = bout_s * (1 - singer.eager) / max(singer.eager, 1e-3)
    time = rng.uniform(0, 0.8) if singer.eager >= 1 else rng.uniform(-bout_s, rest_s)
    while time < job.seconds:
        bout_end = job.seconds if singer.eager >= 1 else time + rng.exponential(bout_s)
        mostly: Literal["song", "call"] = "call" if rng.random() < CALL_SHARE else "song"
        while time < min(bout_end, job.seconds):
            if time >= 0 and time < job.seconds - 0.2:
                yield time, mostly
            time += voice.pause_s * rng.uniform(0.7, 1.5) * (0.6 if mostly == "call" else 1.0) + 0.8
        time += rng.exponential(rest_s) + 1.0


def _crowded(sung: Sequence[Rendition], species: int, start: float) -> bool:
    """Whether as many species as there may be are singing already."""
    singing = {other.species for other in sung[-200:] if other.end_s > start}
    return species not in singing and len(singing) >= MOST_AT_ONCE


def _loud(voice: Voice, what: str, rng: np.random.Generator) -> Samples:
    song = sing(voice, "call" if what == "call" else "song", rng)
    level_db = voice.loudness_db + rng.normal(0, 1.0) - (3.0 if what == "call" else 0.0)
    return np.asarray(song * 10 ** (level_db / 20), dtype=np.float32)


def _add(mix: Samples, song: Samples, start_s: float) -> None:
    first = round(start_s * RATE_HZ)
    last = min(first + len(song), len(mix))
    mix[first:last] += song[: last - first]
