"""Recordings in AAC, as phones keep them (.m4a, .mp4, .aac), read by PyAV where it is installed (extra `media`)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

INSTALL_AV = "pip install 'fieldmark[media]'"


def is_aac(start: bytes) -> bool:
    """Whether bytes begin like a recording in AAC: in a container of MPEG-4, or as a stream by itself.

    >>> is_aac(bytes(4) + b"ftypM4A "), is_aac(bytes([0xFF, 0xF1])), is_aac(b"RIFF....WAVE")
    (True, True, False)
    """
    return start[4:8] == b"ftyp" or (start[:1] == b"\xff" and start[1:2] in (b"\xf1", b"\xf9"))


class AvError(Exception):
    """A file that holds no sound that can be decoded."""


class AvFile:
    """An open recording with the few things that `reading.Recording` asks of a file of libsndfile.

    Args:
        source: A path as text, or an open file.

    Raises:
        AvError: When there is no sound in it, or PyAV is not installed.
    """

    extra_info = ""
    format = "AAC"

    def __init__(self, source: str | IO[bytes]) -> None:
        if find_spec("av") is None:
            raise AvError(f"a recording in AAC, which can be read after {INSTALL_AV}")
        self._source = source
        self._open()
        self.samplerate = int(self._stream.rate)
        self.channels = int(self._stream.channels)
        duration = self._stream.duration
        seconds = float(duration * self._stream.time_base) if duration else (self._container.duration or 0) / 1e6
        self.frames = round(seconds * self.samplerate)
        self._left: NDArray[np.float32] = np.zeros((0, self.channels), np.float32)

    def _open(self) -> None:
        import av

        self._errors: Any = (av.FFmpegError, ValueError, EOFError)
        if not isinstance(self._source, str):
            self._source.seek(0)
        try:
            self._container: Any = av.open(self._source)
            self._stream: Any = next(iter(self._container.streams.audio), None)
        except self._errors as error:
            raise AvError(f"something that is no recording ({error})") from error
        if self._stream is None:
            raise AvError("a file without sound")
        self._decoded = self._decode()

    def seek(self, frame: int) -> None:
        """Goes to a frame: a new decoder gives the same samples again, and those before it are dropped."""
        self._container.close()
        self._open()
        self._left = np.zeros((0, self.channels), np.float32)
        while frame > 0 and (dropped := len(self.read(min(frame, self.samplerate)))):
            frame -= dropped

    def read(self, frames: int, dtype: str = "float32", always_2d: bool = True) -> NDArray[np.float32]:
        """The next samples, one row per moment and one column per channel; none at the end.

        Raises:
            AvError: When they cannot be decoded.
        """
        parts, number = [self._left], len(self._left)
        try:
            while number < frames:
                part = next(self._decoded, None)
                if part is None:
                    break
                parts.append(part)
                number += len(part)
        except self._errors as error:
            raise AvError(f"sound that cannot be decoded ({error})") from error
        samples = np.concatenate(parts)
        self._left = samples[frames:]
        return samples[:frames]

    def close(self) -> None:
        """Closes the file."""
        self._container.close()

    def _decode(self) -> Iterator[NDArray[np.float32]]:
        from av import AudioResampler

        planes = AudioResampler(format="fltp")
        for frame in self._container.decode(self._stream):
            for plain in planes.resample(frame):
                yield np.ascontiguousarray(plain.to_ndarray().T, dtype=np.float32)
