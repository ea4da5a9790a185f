"""From the bytes of a recording to samples: mono, at the rate that is asked for, in blocks of a few seconds.

However long a recording is, only one block of it is in memory. WAV, FLAC, OGG and MP3 are read by libsndfile, AAC (as
in M4A) by PyAV where it is installed, and resampled by soxr as they stream by.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from fieldmark.audio.av_files import AvError, AvFile, is_aac
from fieldmark.registry import require

Samples = NDArray[np.float32]
SoundSource = bytes | Path | IO[bytes]

BLOCK_S = 10.0
# A recording that promises more than this beyond what it holds was cut; less is the slack of a lossy codec.
SLACK_S = 0.2
# libsndfile gives nothing of a read that goes beyond the end of a FLAC file that was cut, so that few are lost at once.
FLAC_START, FLAC_FRAMES, NO_LIMIT = b"fLaC", 4096, 1 << 62
# A page of OGG is no longer than this; its sixth byte says whether it is the last, and its table how long it is.
OGG_START, OGG_PAGE_BYTES, OGG_FLAGS, OGG_LAST, OGG_TABLE = b"OggS", 1 << 16, 5, 4, 26
# How libsndfile calls the part of a file that holds the samples.
DATA_CHUNKS = ("data", "SSND")


class SoundError(Exception):
    """A recording that cannot be read; the message says what is wrong with it."""


class Recording:
    """An open recording. Used as a context, it closes what it opened.

    Args:
        source: The bytes of a file, an open file, or a path.

    Raises:
        SoundError: When there is no sound in it.
    """

    def __init__(self, source: SoundSource) -> None:
        soundfile: Any = require("soundfile", "Reading recordings")
        self._error: tuple[type[Exception], ...] = (soundfile.LibsndfileError, AvError)
        size = _size(source)
        start = _start(source)
        self._cut_ogg = start[:4] == OGG_START and _is_cut_ogg(_end(source, OGG_PAGE_BYTES))
        self._frames_at_once = FLAC_FRAMES if start[:4] == FLAC_START else NO_LIMIT
        file: Any = io.BytesIO(source) if isinstance(source, bytes) else source
        reader: Any = AvFile if is_aac(start) else soundfile.SoundFile
        try:
            self._file = reader(str(file) if isinstance(file, Path) else file)
        except AvError as error:
            raise SoundError(str(error)) from error
        except self._error as error:
            raise SoundError(f"{size} bytes that are not a recording" if size else "an empty file") from error
        self.rate_hz: int = self._file.samplerate
        self.channels: int = self._file.channels
        self.format: str = self._file.format
        self._frames_read, self._ended = 0, False
        if self._file.frames == 0:
            self.close()
            raise SoundError("a recording without a single sample")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    @property
    def seconds(self) -> float:
        """How long the recording is, as its header says."""
        return float(self._file.frames / self.rate_hz)

    @property
    def cut(self) -> str | None:
        """After reading to the end: how much there is of a recording that ends too early, None for a whole one."""
        promised, held = self._promised_frames() / self.rate_hz, self._frames_read / self.rate_hz
        if not self._ended:
            return None
        if promised - held > SLACK_S:
            return f"{held:.1f} s of the {promised:.1f} s that its header promises could be read"
        return f"{held:.1f} s could be read, and its last page is missing" if self._cut_ogg else None

    @property
    def remark(self) -> str | None:
        """After reading to the end: the sentence about a recording that was cut, None for a whole one."""
        return None if self.cut is None else f"The recording was cut: {self.cut}."

    def blocks(self, rate_hz: int, *, block_s: float = BLOCK_S) -> Iterator[Samples]:
        """The whole recording from its beginning, block by block: the mean of its channels, at `rate_hz`.

        A recording that was cut in the middle is read as far as it goes.

        Raises:
            SoundError: For samples that are not numbers, or when nothing at all can be decoded.
        """
        stream = _Resampling(self.rate_hz, rate_hz)
        for block in self._mono(max(1, round(block_s * self.rate_hz))):
            resampled = stream(block)
            if len(resampled):
                yield resampled
        rest = stream.finish()
        if len(rest):
            yield rest

    def stretch(self, start_s: float, seconds: float) -> Samples:
        """Some seconds from the middle: the mean of the channels at the recording's own rate, shorter at its end.

        Raises:
            SoundError: When they cannot be decoded.
        """
        try:
            self._file.seek(min(round(start_s * self.rate_hz), max(self._file.frames - 1, 0)))
            samples = self._file.read(round(seconds * self.rate_hz), dtype="float32", always_2d=True)
        except self._error as error:
            raise SoundError(f"sound that cannot be decoded ({error})") from error
        return np.asarray(samples.mean(axis=1, dtype=np.float32))

    def _mono(self, frames: int) -> Iterator[Samples]:
        self._frames_read, self._ended = 0, False
        for block in self._read_blocks(frames):
            if not np.isfinite(block).all():
                raise SoundError("samples that are not numbers")
            self._frames_read += len(block)
            yield block[:, 0] if self.channels == 1 else block.mean(axis=1, dtype=np.float32)
        self._ended = True
        if self._frames_read == 0:
            raise SoundError("a recording of which nothing can be decoded")

    def _read_blocks(self, frames: int) -> Iterator[Samples]:
        """Blocks of so many frames, as far as they can be decoded; the last one may be shorter."""
        waiting: list[Samples] = []
        missing = frames
        with contextlib.suppress(*self._error):
            self._file.seek(0)
            while len(piece := self._file.read(min(missing, self._frames_at_once), dtype="float32", always_2d=True)):
                waiting.append(piece)
                missing -= len(piece)
                if not missing:
                    yield waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
                    waiting, missing = [], frames
        if waiting:
            yield np.concatenate(waiting)

    def _promised_frames(self) -> float:
        """Frames by the header; of a WAV whose header says more than there is, libsndfile keeps only a note."""
        promised = float(self._file.frames)
        for line in self._file.extra_info.splitlines():
            name, _, rest = line.partition(":")
            said, _, present = rest.partition("(should be")
            if name.strip() in DATA_CHUNKS and present:
                promised *= int(said) / max(1, int(present.strip(" )")))
        return promised


class _Resampling:
    """A stream of blocks at another rate; nothing is lost or doubled where blocks meet."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        self._stream: Any = None
        if from_hz != to_hz:
            soxr: Any = require("soxr", "Resampling recordings")
            self._stream = soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32")

    def __call__(self, block: Samples) -> Samples:
        return block if self._stream is None else self._stream.resample_chunk(block)

    def finish(self) -> Samples:
        empty = np.empty(0, dtype=np.float32)
        return empty if self._stream is None else self._stream.resample_chunk(empty, last=True)


def read_samples(source: SoundSource, rate_hz: int) -> Samples:
    """A whole recording at once, for those that are known to be short.

    Raises:
        SoundError: When it cannot be read.
    """
    with Recording(source) as recording:
        return np.concatenate([*recording.blocks(rate_hz), np.empty(0, dtype=np.float32)])


def _is_cut_ogg(end: bytes) -> bool:
    """Whether the end of an OGG file lacks a page that is complete and says that it is the last."""
    page = end[end.rfind(OGG_START) :]
    if len(page) <= OGG_TABLE:
        return True
    segments = page[OGG_TABLE]
    length = OGG_TABLE + 1 + segments + sum(page[OGG_TABLE + 1 : OGG_TABLE + 1 + segments])
    return len(page) < length or not page[OGG_FLAGS] & OGG_LAST


def _end(source: SoundSource, length: int) -> bytes:
    """The last bytes, which tell whether an OGG file is complete."""
    if isinstance(source, bytes):
        return source[-length:]
    if isinstance(source, Path):
        with source.open("rb") as file:
            return _end(file, length)
    here = source.tell()
    source.seek(max(0, source.seek(0, io.SEEK_END) - length))
    end = source.read(length)
    source.seek(here)
    return end


def _start(source: SoundSource) -> bytes:
    """The first bytes, which tell what kind of file it is."""
    if isinstance(source, bytes):
        return source[:16]
    if isinstance(source, Path):
        with source.open("rb") as file:
            return file.read(16)
    here = source.tell()
    start = source.read(16)
    source.seek(here)
    return start


def _size(source: SoundSource) -> int:
    if isinstance(source, bytes):
        return len(source)
    if isinstance(source, Path):
        return source.stat().st_size
    here = source.tell()
    size = source.seek(0, io.SEEK_END)
    source.seek(here)
    return size
