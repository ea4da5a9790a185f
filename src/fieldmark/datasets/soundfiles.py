"""What the header of a sound file says; the samples themselves are not read here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, Any, cast

from fieldmark.errors import InputError
from fieldmark.foundation.registry import require


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
    soundfile = cast(Any, require("soundfile", "Opening recordings"))
    try:
        info = soundfile.info(file)
    except (soundfile.LibsndfileError, TypeError) as error:
        size = file.seek(0, 2)
        found = f"{size:,} bytes that are no recording" if size else "an empty file"
        raise InputError(where, found=found, expected="WAV, FLAC, OGG or MP3") from error
    if info.frames <= 0:
        raise InputError(where, found="a recording without samples", expected="WAV, FLAC, OGG or MP3 with sound in it")
    return SoundHeader(info.frames / info.samplerate, int(info.samplerate), int(info.channels), str(info.format))
