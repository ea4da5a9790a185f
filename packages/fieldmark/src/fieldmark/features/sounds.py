"""Features of recordings and of segments of them: computed once, kept by content and interval.

A segment has the features of the windows that cover it, averaged; a whole recording those of its most salient
windows. Of logits the highest is taken in place of the mean: a voice in one window is heard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterator, Mapping, MutableMapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from fieldmark.audio.clips import Padding, all_windows, cut, fill, starts_within
from fieldmark.audio.samples import Recording, Samples, SoundError
from fieldmark.audio.spectrograms import MelSettings, MelSpectrogram, most_salient, salience
from fieldmark.errors import InputError
from fieldmark.features.store import KEY_BYTES, FeatureStore, Key
from fieldmark.work.blocks import map_blocks, reader_of
from fieldmark.work.engines import cluster
from fieldmark.work.parallel_reads import open_each
from fieldmark.work.progress import progress

K = TypeVar("K")

# Windows that a network gets at once, and of a whole recording at most.
BATCH_WINDOWS = 32
SALIENT_WINDOWS = 8
# Windows, about, of the recordings that a worker of a cluster gets at once.
BLOCK_WINDOWS = 4 * BATCH_WINDOWS
SALIENCE_HOP = 512
HASHED_BYTES = 1 << 20
# So many recordings that were cut are named.
SHOWN_CUT = 5


class Clip(NamedTuple):
    """A stretch of a recording, or the whole of it where there is neither beginning nor end."""

    media_id: str
    start_s: float | None = None
    end_s: float | None = None


class Windowing(Protocol):
    """What windows a network takes: their rate, their length, and what fills up a short one."""

    @property
    def rate_hz(self) -> int: ...

    @property
    def window_s(self) -> float: ...

    @property
    def padding(self) -> Padding: ...


class SoundEmbedder(Windowing, Protocol):
    """Turns windows of sound into named arrays, one row per window."""

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
    cut_short: MutableMapping[str, str] | None = None,
) -> NDArray[np.float32]:
    """Returns the features of clips, one row each.

    Each recording is read once, as a stream. What is computed is stored here as it comes, so that an interrupted
    extraction goes on where it stopped; on a cluster (`work.engines`), block by block.

    Args:
        clips: The clips, those of a recording in the order of time.
        open_medium: Opens a recording.
        embedder: The network.
        store: Where its outputs are kept.
        output: Which of its outputs.
        where: The place of a recording as a person would look for it, for messages.
        what: What is being read, for the progress bar.
        cut_short: Where recordings that were cut are noted, with how much there is of each; what is there is used.

    Raises:
        InputError: When recordings cannot be read, or were cut before a clip; all have been tried, and the good ones
            are stored.
    """
    keys: list[Key] = [b""] * len(clips)
    problems: list[tuple[str, str]] = []
    with store.gathering(), progress(f"reading {what}", len(clips)) as tick:
        for done in _embedded(clips, open_medium, embedder, store):
            for row, key in done.keys.items():
                keys[row] = key
            problems += done.problems
            if done.cut:
                store.remark(done.content, done.cut)
            if cut_short is not None and done.content and (cut := store.remark_on(done.content)):
                cut_short[done.media_id] = cut
            store.add_new(done.new, done.outputs)
            tick(done.clips)
    if problems:
        media_id, problem = problems[0]
        more = f" {len(problems) - 1} more recordings cannot be read either." if len(problems) > 1 else ""
        hint = f"Replace the file or remove it (and its line in any table).{more}"
        raise InputError(where(media_id), found=problem, expected="a WAV, FLAC, OGG, MP3 or M4A file", hint=hint)
    return store.get(keys, output, np.float32)


def remark_on_cut(cut_short: Mapping[str, str]) -> list[str]:
    """The sentence about recordings that were cut, if there are any.

    >>> remark_on_cut({"a.ogg": "1.0 s could be read, and its last page is missing"})[0][:60]
    '1 recording was cut and is used as far as it goes: a.ogg (1.'
    """
    if not cut_short:
        return []
    shown = [f"{media_id} ({cut})" for media_id, cut in sorted(cut_short.items())[:SHOWN_CUT]]
    more = len(cut_short) - len(shown)
    told = "; ".join([*shown, *([f"and {more} more"] if more else [])])
    was = "1 recording was cut and is used as far as it goes"
    were = f"{len(cut_short)} recordings were cut and are used as far as they go"
    return [f"{was if len(cut_short) == 1 else were}: {told}."]


def windows_of(
    file: IO[bytes],
    clips: Mapping[K, Clip],
    how: Windowing,
    at_most: int = SALIENT_WINDOWS,
    note_cut: Callable[[str], object] = str,
) -> Iterator[tuple[K, list[Samples]]]:
    """The windows of each clip of a recording, at the length that a network takes.

    Args:
        file: The recording.
        clips: What to cut out of it: stretches in the order of time, or the whole.
        how: What windows a network takes.
        at_most: How many windows to take of a whole recording.
        note_cut: Called before the windows of a clip with how much there is of the recording, where its end was met
            too early.

    Raises:
        SoundError: When the recording cannot be read, or was cut before a clip; without clips it is not opened.
    """
    if not clips:
        return
    rate, length = how.rate_hz, round(how.rate_hz * how.window_s)
    spans: list[tuple[int, int]] = []
    owners: list[K] = []
    for name, (_, start_s, end_s) in clips.items():
        if start_s is not None and end_s is not None:
            first, stretch = round(start_s * rate), round((end_s - start_s) * rate)
            starts = [first + start for start in starts_within(stretch, length)]
            spans += [(start, start + min(length, stretch)) for start in starts]
            owners += [name] * len(starts)
    file.seek(0)
    with Recording(file) as recording:
        windows: list[Samples] = []
        for number, samples in enumerate(cut(recording.blocks(rate), spans)):
            if len(samples) or not recording.cut:  # beyond the end of a whole recording there is silence
                windows.append(fill(samples, length, how.padding))
            if number + 1 == len(owners) or owners[number + 1] != owners[number]:
                if recording.cut:
                    note_cut(recording.cut)
                if not windows:
                    start_s = clips[owners[number]].start_s
                    raise SoundError(f"a recording that was cut before {start_s:g} s: {recording.cut}")
                yield owners[number], windows
                windows = []
        for name in clips.keys() - set(owners):
            windows = salient_windows(recording, how, at_most).windows
            if recording.cut:
                note_cut(recording.cut)
            yield name, windows


class SalientWindows(NamedTuple):
    """The windows of a recording in which most sounds, in the order of time; all of them where there are few.

    Args:
        windows: These windows.
        quietest: The window in which least sounds.
        number: How many windows the recording has.
    """

    windows: list[Samples]
    quietest: Samples
    number: int


def salient_windows(recording: Recording, how: Windowing, at_most: int = SALIENT_WINDOWS) -> SalientWindows:
    """The windows of a recording in which most and least sounds.

    Raises:
        SoundError: When there is not a single window.
    """
    kept, scores, number = list[Samples](), np.empty(0, dtype=np.float32), 0
    quietest, least = np.empty(0, dtype=np.float32), np.inf
    for more_scores, more in _scored_windows(recording, how):
        if more_scores.min() < least:
            least, quietest = float(more_scores.min()), more[int(more_scores.argmin())]
        together, scores = kept + more, np.append(scores, more_scores)
        best = most_salient(scores, at_most)
        kept, scores, number = [together[place] for place in best], scores[best], number + len(more)
    return SalientWindows(kept, quietest, number)


def _scored_windows(recording: Recording, how: Windowing) -> Iterator[tuple[NDArray[np.float32], list[Samples]]]:
    """All windows of a recording, a few dozen at a time, with how much sounds in each.

    The rest of a recording counts as a window if it is at least half of one, or all there is.

    Raises:
        SoundError: When there is not a single window.
    """
    length = round(how.rate_hz * how.window_s)
    settings = MelSettings(
        how.rate_hz,
        how.window_s,
        bands=64,
        frames=length // SALIENCE_HOP + 1,
        fft=2 * SALIENCE_HOP,
        low_hz=150.0,
        high_hz=min(15_000.0, how.rate_hz / 2),
    )
    spectrogram = MelSpectrogram(settings, "cpu")
    waiting: list[Samples] = []
    number = 0
    for number, clip in enumerate(all_windows(recording.blocks(how.rate_hz), length, length), 1):
        if number == 1 or len(clip) >= length // 2:
            waiting.append(fill(clip, length, how.padding))
        if len(waiting) == BATCH_WINDOWS:
            yield salience(spectrogram.loudness(np.stack(waiting))), waiting
            waiting = []
    if number == 0:
        raise SoundError("a recording without a single sample")
    if waiting:
        yield salience(spectrogram.loudness(np.stack(waiting))), waiting


class SoundBlock(NamedTuple):
    """Some recordings, each with the clips to make features of by their rows, and what opens them and no others."""

    clips: Mapping[str, Mapping[int, Clip]]
    open_medium: Callable[[str], IO[bytes]]


class EmbeddedSounds(NamedTuple):
    """What was done: clips that were read, their keys by row, recordings that cannot be read, outputs that are new.

    Args:
        content: The key of the recording that was worked on.
        cut: How much there is of it, where it was found to be cut.
    """

    media_id: str = ""
    content: Key = b""
    cut: str = ""
    clips: int = 0
    keys: Mapping[int, Key] = {}
    problems: Sequence[tuple[str, str]] = ()
    new: Sequence[Key] = ()
    outputs: Mapping[str, NDArray[Any]] = {}


@dataclass(frozen=True)
class BlockEmbedding:
    """What is done with a block of recordings, wherever it is done.

    Args:
        embedder: The network.
        stored: What need not be computed.
    """

    embedder: SoundEmbedder
    stored: Container[Key]

    def __call__(self, block: SoundBlock) -> list[EmbeddedSounds]:
        """All of a block, for a worker of a cluster."""
        return list(self.stream(block))

    def stream(self, block: SoundBlock) -> Iterator[EmbeddedSounds]:
        """A block as it is worked on: after each recording, and after each call of the network."""
        waiting: dict[Key, list[Samples]] = {}
        opened = open_each(block.open_medium, block.clips)
        for (media_id, clips), recording in zip(block.clips.items(), opened, strict=True):
            keys: dict[int, Key] = {}
            problems, content, cut = [], b"", [""]
            try:
                with closing(recording) as file:
                    content = _content_key(file)
                    keys = {row: _clip_key(content, clip) for row, clip in clips.items()}
                    missing = {keys[row]: clip for row, clip in clips.items() if keys[row] not in self.stored}
                    for key, windows in (
                        windows_of(file, missing, self.embedder, note_cut=cut.append) if missing else ()
                    ):
                        waiting[key] = windows
                        if sum(map(len, waiting.values())) >= BATCH_WINDOWS:
                            yield self._outputs(waiting)._replace(media_id=media_id, content=content, cut=cut[-1])
                            waiting = {}
            except SoundError as error:
                problems.append((media_id, str(error)))
            yield EmbeddedSounds(media_id, content, cut[-1], len(clips), keys, problems)
        if waiting:
            yield self._outputs(waiting)

    def _outputs(self, waiting: Mapping[Key, list[Samples]]) -> EmbeddedSounds:
        counts = np.array([len(windows) for windows in waiting.values()])
        rows_of = self.embedder(np.stack([window for windows in waiting.values() for window in windows]))
        outputs = {name: _pooled(name, rows, counts) for name, rows in rows_of.items()}
        return EmbeddedSounds(new=list(waiting), outputs=outputs)


def _embedded(
    clips: Sequence[Clip], open_medium: Callable[[str], IO[bytes]], embedder: SoundEmbedder, store: FeatureStore
) -> Iterator[EmbeddedSounds]:
    """An extraction as it is worked on: here as one block, on a cluster in blocks of a few recordings."""
    clips_of: dict[str, dict[int, Clip]] = {}
    for row, clip in enumerate(clips):
        clips_of.setdefault(clip.media_id, {})[row] = clip
    executor = cluster()
    if executor is None:
        yield from BlockEmbedding(embedder, store).stream(SoundBlock(clips_of, open_medium))
        return
    blocks = (
        SoundBlock({one: clips_of[one] for one in some}, reader_of(open_medium, some)) for some in _recordings(clips_of)
    )
    for done in map_blocks(BlockEmbedding(embedder, store.stored_keys()), blocks, executor):
        yield from done


def _recordings(clips_of: Mapping[str, Mapping[int, Clip]]) -> Iterator[list[str]]:
    """Recordings in blocks that fill a few calls of a network."""
    some: list[str] = []
    windows = 0
    for media_id, clips in clips_of.items():
        some.append(media_id)
        windows += sum(SALIENT_WINDOWS if clip.start_s is None else 1 for clip in clips.values())
        if windows >= BLOCK_WINDOWS:
            yield some
            some, windows = [], 0
    if some:
        yield some


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
