"""What the header of a sound file says; the samples themselves are not read here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from fieldmark.audio.samples import Recording, SoundError
from fieldmark.errors import InputError


@dataclass(frozen=True)
class SoundHeader:
    """The length and the make of a recording."""

    seconds: float
    sample_rate_hz: int
    channels: int
    format: str


def read_header(file: IO[bytes], where: object) -> SoundHeader:
    """Reads the header of a recording.

    Raises:
        InputError: When the file is no recording, or has no samples.
    """
    try:
        with Recording(file) as recording:
            return SoundHeader(recording.seconds, recording.rate_hz, recording.channels, recording.format)
    except SoundError as error:
        raise InputError(where, found=str(error), expected="WAV, FLAC, OGG, MP3 or M4A with sound in it") from error
