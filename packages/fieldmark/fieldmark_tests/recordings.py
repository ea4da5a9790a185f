"""Recordings in the formats that people send, made for tests."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import soundfile

# Every format that is taken for a recording (`tables.media.RECORDING`), with those that the identify page names.
FORMATS = ("wav", "flac", "ogg", "oga", "opus", "mp3", "m4a", "aac", "mp4")
# How the writers of sound call those whose name is not that of the format.
AAC_CONTAINERS = {"m4a": "ipod", "aac": "adts", "mp4": "mp4"}


def encode(samples: np.ndarray, rate_hz: int, ending: str) -> bytes:
    """One channel of sound in a format."""
    if ending in AAC_CONTAINERS:
        return encode_aac(samples, rate_hz, AAC_CONTAINERS[ending])
    data = io.BytesIO()
    kind, how = ("OGG", "OPUS" if ending == "opus" else "VORBIS") if ending[0] == "o" else (ending.upper(), None)
    soundfile.write(data, samples, rate_hz, format=kind, subtype=how)
    return data.getvalue()


def encode_aac(samples: np.ndarray, rate_hz: int, container_format: str = "ipod") -> bytes:
    """As phones write it."""
    import av

    data = io.BytesIO()
    with av.open(data, "w", format=container_format) as container:
        stream: Any = container.add_stream("aac", rate=rate_hz, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None].astype(np.float32), format="fltp", layout="mono")
        frame.sample_rate = rate_hz
        for packet in (*stream.encode(frame), *stream.encode(None)):
            container.mux(packet)
    return data.getvalue()
