"""Recordings in the formats that people send, made for tests."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import soundfile

# Every format that the identify page names, and raw AAC, which some recorders write.
FORMATS = ("wav", "flac", "ogg", "mp3", "m4a", "aac")


def encode(samples: np.ndarray, rate_hz: int, ending: str) -> bytes:
    """One channel of sound in a format."""
    if ending in ("m4a", "aac"):
        return encode_aac(samples, rate_hz, "ipod" if ending == "m4a" else "adts")
    data = io.BytesIO()
    soundfile.write(data, samples, rate_hz, format=ending.upper())
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
