"""From the bytes of a recording to samples: mono, at the rate that is asked for, in blocks of a few seconds.

However long a recording is, only one block of it is in memory. WAV, FLAC, OGG and MP3 are read by libsndfile, AAC (as
in M4A) by PyAV where it is installed, and resampled by soxr as they stream by.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from fieldmark.audio.av_files import AvError, AvFile, is_aac
from fieldmark.foundation.registry import require

Samples = NDArray[np.float32]
SoundSource = bytes | Path | IO[bytes]

BLOCK_S = 10.0
# A recording that promises more than this beyond what it holds was cut; less is the slack of a lossy codec.
SLACK_S = 0.2


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
        file: Any = io.BytesIO(source) if isinstance(source, bytes) else source
        reader: Any = AvFile if is_aac(_start(source)) else soundfile.SoundFile
        try:
            self._file = reader(str(file) if isinstance(file, Path) else file)
        except AvError as error:
            raise SoundError(str(error)) from error
        except self._error as error:
            raise SoundError(f"{size} bytes that are not a recording" if size else "an empty file") from error
        self.rate_hz: int = self._file.samplerate
        self.channels: int = self._file.channels
        self._frames_read = 0
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
    def remark(self) -> str | None:
        """After reading: the sentence about a recording that ends before its header says, None for a whole one."""
        promised, held = self._promised_frames() / self.rate_hz, self._frames_read / self.rate_hz
        if promised - held <= SLACK_S:
            return None
        return f"The recording was cut: {held:.1f} s of the {promised:.1f} s that its header promises could be read."

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

    def _mono(self, frames: int) -> Iterator[Samples]:
        self._file.seek(0)
        self._frames_read = 0
        while True:
            try:
                block = self._file.read(frames, dtype="float32", always_2d=True)
            except self._error as error:
                if self._frames_read == 0:
                    raise SoundError("a recording that cannot be decoded from its first block on") from error
                return
            if len(block) == 0:
                return
            if not np.isfinite(block).all():
                raise SoundError("samples that are not numbers")
            self._frames_read += len(block)
            yield block[:, 0] if self.channels == 1 else block.mean(axis=1, dtype=np.float32)

    def _promised_frames(self) -> float:
        """Frames by the header; of a WAV whose header says more than there is, libsndfile keeps only a note."""
        promised = float(self._file.frames)
        for line in self._file.extra_info.splitlines():
            name, _, rest = line.partition(":")
            said, _, present = rest.partition("(should be")
            if name.strip() == "data" and present:
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
