"""Features of recordings and of segments of them: computed once, kept by content and interval.

A segment has the features of the windows that cover it, averaged; a whole recording those of its most salient
windows. Of logits the highest is taken in place of the mean: a voice in one window is heard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fieldmark.audio.cutting import Padding, all_windows, cut, fill, starts_within
from fieldmark.audio.reading import Recording, Samples, SoundError
from fieldmark.audio.salience import most_salient, salience
from fieldmark.audio.spectrograms import MelSettings, MelSpectrogram
from fieldmark.errors import InputError
from fieldmark.features.store import KEY_BYTES, FeatureStore, Key
from fieldmark.progress import progress

# Windows that a network gets at once, and of a whole recording at most.
BATCH_WINDOWS = 32
SALIENT_WINDOWS = 8
SALIENCE_HOP = 512
HASHED_BYTES = 1 << 20


class Clip(NamedTuple):
    """A stretch of a recording, or the whole of it where there is neither beginning nor end."""

    media_id: str
    start_s: float | None = None
    end_s: float | None = None


class SoundEmbedder(Protocol):
    """Turns windows of sound into named arrays, one row per window."""

    rate_hz: int
    window_s: float
    padding: Padding

    def __call__(self, windows: Samples) -> dict[str, NDArray[Any]]: ...


def extract_sounds(
    clips: Sequence[Clip],
    open_medium: Callable[[str], IO[bytes]],
    embedder: SoundEmbedder,
    store: FeatureStore,
    *,
    output: str = "features",
    where: Callable[[str], str] = str,
    what: str = "recordings",
) -> NDArray[np.float32]:
    """Returns the features of clips, one row each.

    Each recording is read once, as a stream. What is computed is stored as it comes, so that an interrupted
    extraction goes on where it stopped.

    Args:
        clips: The clips, those of a recording in the order of time.
        open_medium: Opens a recording.
        embedder: The network.
        store: Where its outputs are kept.
        output: Which of its outputs.
        where: The place of a recording as a person would look for it, for messages.
        what: What is being read, for the progress bar.

    Raises:
        InputError: When recordings cannot be read; all have been tried, and the good ones are stored.
    """
    rows_of: dict[str, list[int]] = {}
    for row, clip in enumerate(clips):
        rows_of.setdefault(clip.media_id, []).append(row)
    keys: list[Key] = [b""] * len(clips)
    problems: list[tuple[str, str]] = []
    batch = _Batch(embedder, store)
    with progress(f"reading {what}", len(clips)) as tick:
        for media_id, rows in rows_of.items():
            try:
                with closing(open_medium(media_id)) as file:
                    content = _content_key(file)
                    for row in rows:
                        keys[row] = _clip_key(content, clips[row])
                    missing = {keys[row]: clips[row] for row in rows if keys[row] not in store}
                    for key, windows in _windows(file, missing, embedder) if missing else ():
                        batch.add(key, windows)
            except SoundError as error:
                problems.append((media_id, str(error)))
            tick(len(rows))
        batch.flush()
    if problems:
        media_id, problem = problems[0]
        more = f" {len(problems) - 1} more recordings cannot be read either." if len(problems) > 1 else ""
        hint = f"Replace the file or remove it (and its line in any table).{more}"
        raise InputError(where(media_id), found=problem, expected="a WAV, FLAC, OGG or MP3 file", hint=hint)
    return store.get(keys, output).astype(np.float32)


def _windows(
    file: IO[bytes], missing: Mapping[Key, Clip], embedder: SoundEmbedder
) -> Iterator[tuple[Key, list[Samples]]]:
    """The windows of each clip, at the length that the network takes."""
    rate, length = embedder.rate_hz, round(embedder.rate_hz * embedder.window_s)
    file.seek(0)
    with Recording(file) as recording:
        segments = {key: clip for key, clip in missing.items() if clip.start_s is not None and clip.end_s is not None}
        if segments:
            spans, owners = [], []
            for key, clip in segments.items():
                assert clip.start_s is not None and clip.end_s is not None  # chosen above
                first, stretch = round(clip.start_s * rate), round((clip.end_s - clip.start_s) * rate)
                for start in starts_within(stretch, length):
                    spans.append((first + start, first + start + min(length, stretch)))
                    owners.append(key)
            found: dict[Key, list[Samples]] = {}
            for number, clip_samples in enumerate(cut(recording.blocks(rate), spans)):
                key = owners[number]
                found.setdefault(key, []).append(fill(clip_samples, length, embedder.padding))
                if number + 1 == len(owners) or owners[number + 1] != key:
                    yield key, found.pop(key)
        for key in missing.keys() - segments.keys():
            yield key, salient_windows(recording, embedder)


def salient_windows(recording: Recording, embedder: SoundEmbedder, at_most: int = SALIENT_WINDOWS) -> list[Samples]:
    """The windows of a recording in which most sounds, in the order of time; all of them where there are few.

    Raises:
        SoundError: When there is not a single window.
    """
    length = round(embedder.rate_hz * embedder.window_s)
    high_hz = min(15_000.0, embedder.rate_hz / 2)
    frames = length // SALIENCE_HOP + 1
    how = MelSettings(embedder.rate_hz, embedder.window_s, 64, frames, 2 * SALIENCE_HOP, 150.0, high_hz)
    spectrogram = MelSpectrogram(how, "cpu")
    kept: list[Samples] = []
    scores = np.empty(0, dtype=np.float32)
    waiting: list[Samples] = []

    def choose() -> None:
        nonlocal kept, scores
        scores = np.append(scores, salience(spectrogram.loudness(np.stack(waiting))))
        best = most_salient(scores, at_most)
        together = kept + waiting
        kept, scores = [together[place] for place in best], scores[best]
        waiting.clear()

    for number, clip in enumerate(all_windows(recording.blocks(embedder.rate_hz), length, length)):
        # The rest of a longer recording is no window of its own unless there is something of it.
        if number == 0 or len(clip) >= length // 2:
            waiting.append(fill(clip, length, embedder.padding))
        if len(waiting) == BATCH_WINDOWS:
            choose()
    if not kept and len(waiting) <= at_most:
        if not waiting:
            raise SoundError("a recording without a single sample")
        return waiting
    if waiting:
        choose()
    return kept


@dataclass
class _Batch:
    """Gathers windows until a network is worth calling, and stores what comes out."""

    embedder: SoundEmbedder
    store: FeatureStore
    waiting: dict[Key, list[Samples]] = field(default_factory=dict)
    number: int = 0

    def add(self, key: Key, windows: list[Samples]) -> None:
        self.number += len(windows)
        self.waiting[key] = windows
        if self.number >= BATCH_WINDOWS:
            self.flush()

    def flush(self) -> None:
        if not self.waiting:
            return
        counts = np.array([len(windows) for windows in self.waiting.values()])
        outputs = self.embedder(np.stack([window for windows in self.waiting.values() for window in windows]))
        self.store.add(list(self.waiting), {name: _pooled(name, rows, counts) for name, rows in outputs.items()})
        self.waiting, self.number = {}, 0


def _pooled(name: str, rows: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[np.float16]:
    starts = np.cumsum(counts) - counts
    if name == "logits":
        return np.asarray(np.maximum.reduceat(rows, starts, axis=0), dtype=np.float16)
    return np.asarray(np.add.reduceat(rows, starts, axis=0) / counts[:, None], dtype=np.float16)


def _content_key(file: IO[bytes]) -> Key:
    """The key of a whole recording, read in pieces: it may be longer than memory."""
    hasher = hashlib.blake2b(digest_size=KEY_BYTES)
    while piece := file.read(HASHED_BYTES):
        hasher.update(piece)
    return hasher.digest()


def _clip_key(content: Key, clip: Clip) -> Key:
    interval = f"{clip.start_s}:{clip.end_s}".encode()
    return hashlib.blake2b(content + interval, digest_size=KEY_BYTES).digest()
