"""An hour of sound: its memory and its speed, and mel spectrograms beside librosa's on the same samples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import librosa
import numpy as np
import polars as pl
import soundfile

from fieldmark.audio.spectrograms import SPECTROGRAMS, MelSpectrogram
from fieldmark.methods.base import Fitted
from fieldmark.methods.cnn import SpectrogramNetwork
from fieldmark.models import Model
from fieldmark.tables.labels import Labels
from studies.perf.timing import fastest

HOUR_S, RATE_HZ = 3600, 48_000
LABELS = Labels(tuple(f"bird-{number:02d}" for number in range(40)))
NETWORK = "lcnet_050"
WINDOWS = 24
ALLOWED_MB, WANTED_SPEED = 400, 60

# What a person types, in a process of its own: ten seconds first, which loads everything, then the hour.
ASK = """
import json, resource, sys, time
from pathlib import Path
from fieldmark.identification import identify
short, hour, model = sys.argv[1:]
identify(short, model)
held = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
start = time.perf_counter()
answer = identify(hour, model, at_least=0.9)
seconds = time.perf_counter() - start
# Not ru_maxrss, which a child process inherits from the one that started it.
(line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
peak = int(line.split()[1]) / 1024
print(json.dumps({"seconds": seconds, "libraries_mb": held, "peak_mb": peak, "heard": answer.seconds}))
"""


def run() -> dict[str, Any]:
    """Speed and memory of an hour, and the ratio to librosa."""
    with tempfile.TemporaryDirectory() as folder:
        short, hour, model = (Path(folder, name) for name in ("short.wav", "hour.wav", "model"))
        _write_sound(short, 10)
        _write_sound(hour, HOUR_S)
        _small_network().save(model)
        cnn, birdnet = (_ask(short, hour, name) for name in (str(model), "birdnet"))
    more = cnn["peak_mb"] - cnn["libraries_mb"]
    assert more < ALLOWED_MB and birdnet["peak_mb"] < ALLOWED_MB, (cnn, birdnet)
    return {
        "recording": f"one hour, WAV, {RATE_HZ // 1000} kHz mono",
        "network": f"{NETWORK}, 40 labels, random weights",
        "cores": len(os.sched_getaffinity(0)),
        f"network_mb_beyond_libraries_{ALLOWED_MB}_allowed": round(more),
        "network_mb_of_libraries": round(cnn["libraries_mb"]),
        f"network_times_real_time_{WANTED_SPEED}_wanted": round(HOUR_S / cnn["seconds"]),
        f"birdnet_peak_mb_{ALLOWED_MB}_allowed": round(birdnet["peak_mb"]),
        "birdnet_times_real_time": round(HOUR_S / birdnet["seconds"]),
        **_beside_librosa(),
    }


def _ask(short: Path, hour: Path, model: str) -> dict[str, float]:
    command = [sys.executable, "-c", ASK, str(short), str(hour), model]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    assert abs(found["heard"] - HOUR_S) < 1
    return found


def _write_sound(path: Path, seconds: int) -> None:
    """Noise with a chirp every second, written ten seconds at a time."""
    rng = np.random.default_rng(0)
    with soundfile.SoundFile(path, "w", RATE_HZ, 1, "PCM_16") as file:
        for _ in range(seconds // 10):
            time = np.arange(10 * RATE_HZ) / RATE_HZ
            chirp = np.sin(2 * np.pi * (3000 + 2000 * (time % 1)) * (time % 1)) * ((time % 1) < 0.2)
            file.write((0.2 * chirp + rng.normal(0, 0.01, len(time))).astype(np.float32))


def _small_network() -> Model:
    method = SpectrogramNetwork(network=NETWORK, weights="random")
    weights = method.new_network(len(LABELS), "random").state_dict()
    fitted = Fitted(method, {name: tensor.numpy() for name, tensor in weights.items()})
    taxa = pl.DataFrame({"label": LABELS.names, "poisonous": pl.Series([None] * len(LABELS), dtype=pl.Boolean)})
    trained = {"benchmark": "birdclef-2020", "version": "1", "parts": ["nothing"], "seed": 0, "data_digest": ""}
    return Model("cnn", fitted, (), LABELS, taxa, {}, {**trained, "world": None, "external_data": []})


def _beside_librosa() -> dict[str, Any]:
    """The same windows by both, one at a time for librosa, which knows no batches of them."""
    how = SPECTROGRAMS["segment"]
    sounds = np.random.default_rng(1).normal(0, 0.1, (WINDOWS, how.samples)).astype(np.float32)
    ours = MelSpectrogram(how, "cpu")

    def theirs() -> list[np.ndarray]:
        found = []
        for sound in sounds:
            power = librosa.feature.melspectrogram(
                y=sound,
                sr=how.rate_hz,
                n_fft=how.fft,
                hop_length=how.hop,
                n_mels=how.bands,
                fmin=how.low_hz,
                fmax=how.high_hz,
            )
            decibel = librosa.power_to_db(power, top_db=80.0)[:, : how.frames]
            found.append((decibel - decibel.min()) / (decibel.max() - decibel.min()))
        return found

    largest = float(np.abs(ours(sounds).numpy() - np.stack(theirs())).max())
    times = fastest({"ours": lambda: ours(sounds), "librosa": theirs}, rounds=5)
    return {
        "librosa_over_ours": round(times["librosa"] / times["ours"], 1),
        "log_mel_times_real_time": round(WINDOWS * how.window_s / times["ours"]),
        "largest_difference_to_librosa": float(f"{largest:.1g}"),
    }
