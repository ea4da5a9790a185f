from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.datasets import open_dataset
from fieldmark.errors import InputError
from fieldmark.opening import open_benchmark

RATE_HZ = 16_000
TONES_HZ = {"low": 900, "middle": 2600, "high": 5200}


def write_tones(root: Path, *, per_class: int = 6) -> None:
    """Tones of three pitches in noise, two clips of each source."""
    rng = np.random.default_rng(0)
    rows = ["file,observation"]
    for label, pitch in TONES_HZ.items():
        (root / label).mkdir(parents=True)
        for number in range(per_class):
            time = np.arange(int(RATE_HZ * rng.uniform(0.6, 2.0))) / RATE_HZ
            tone = 0.2 * np.sin(2 * np.pi * pitch * time) + rng.normal(0, 0.02, len(time))
            suffix = ("wav", "flac", "ogg")[number % 3]
            soundfile.write(root / label / f"{label}-{number}.{suffix}", tone.astype(np.float32), RATE_HZ)
            rows.append(f"{label}/{label}-{number}.{suffix},{label}-{number // 2}")
    (root / "observations.csv").write_text("\n".join(rows) + "\n")


@pytest.fixture(scope="module")
def tones(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("tones") / "sounds"
    write_tones(root)
    return root


def test_a_folder_of_recordings_has_one_item_per_recording(tones):
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", tones))
    assert opened.dataset.media_kind == opened.view.train.media.kind == "recording"
    assert sum(len(table) for table in opened.items.values()) == 18
    assert opened.view.train.targets.shape == "codes"
    assert opened.view.train.items["start_s"].null_count() == len(opened.view.train)


def test_clips_of_one_source_never_lie_on_both_sides_of_a_split(tones):
    opened = open_benchmark(BENCHMARKS["folder"], open_dataset("folder", tones), seed=3)
    sources = {part: set(table["observation_id"]) for part, table in opened.items.items()}
    assert not sources["train"] & sources["test"] and not sources["train"] & sources["val"]


def test_recordings_are_fitted_and_scored_like_photos_and_have_a_page(tones, tmp_path):
    result = fieldmark.fit("folder", tones, "centroid", tmp_path / "run")
    assert result.scorecard.metrics["top_1"].value == 1.0  # three pitches more than an octave apart
    again = fieldmark.score("folder", tmp_path / "run", data=tones)
    assert again.metrics == result.scorecard.metrics
    page = fieldmark.report([tmp_path / "run"], tmp_path / "page.html").read_text()
    assert 'id="look"' in page and "data:image/jpeg" in page and "test recordings" in page
    assert "photo" not in page.partition("</style>")[2]


def test_photos_and_recordings_in_one_folder_are_refused(tones, tmp_path, make_release):
    root = make_release(flat=True)
    (root / "Alba alba" / "song.wav").write_bytes((tones / "low" / "low-0.wav").read_bytes())
    with pytest.raises(
        InputError, match=r"found photos \(.*jpg\) and recordings \(.*song.wav\), expected one or the other"
    ):
        open_dataset("folder", root)
