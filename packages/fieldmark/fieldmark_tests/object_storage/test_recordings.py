"""Recordings in a bucket: the same features as on disk, and the next ones fetched while one is listened to."""

from __future__ import annotations

import threading

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from fieldmark.errors import InputError
from fieldmark.features.sounds import Clip, extract_sounds
from fieldmark.features.store import FeatureStore
from fieldmark.storage.release import Release
from fieldmark.tables.inputs import OPENED_AHEAD, MediaFiles
from fieldmark.tables.media import RECORDING
from fieldmark_tests.features.test_sounds import Loudness, steps

NAMES = [f"{number}.wav" for number in range(12)]
MEDIA = {name: name for name in NAMES}


@pytest.fixture
def recordings(tmp_path):
    (tmp_path / "release").mkdir()
    for number, name in enumerate(NAMES):
        (tmp_path / "release" / name).write_bytes(steps(number / 16, 0.5))
    return tmp_path / "release"


def features_of(root, store):
    media = MediaFiles(RECORDING, Release(root), MEDIA)
    return extract_sounds([Clip(name, 0.0, 2.0) for name in NAMES], media.open, Loudness(), FeatureStore(store, "x"))


def test_recordings_in_a_bucket_have_the_features_of_those_on_disk_by_one_request_each(recordings, bucket, tmp_path):
    address = bucket.fill(recordings, "recordings")
    with bucket.counted() as requests:
        there = features_of(address, tmp_path / "there")
    assert np.array_equal(there, features_of(recordings, tmp_path / "here"))
    assert len([request for request in requests if ".wav" in request]) == len(NAMES)


class InFours(MemoryFileSystem):
    """A file system that answers only when four files are asked for at a time."""

    protocol = "fours"
    together = threading.Barrier(4)

    def cat_file(self, path, start=None, end=None, **options):
        InFours.together.wait(timeout=60)
        return super().cat_file(path, start, end, **options)


def test_the_next_recordings_are_fetched_ahead(recordings, monkeypatch, tmp_path):
    assert OPENED_AHEAD >= 4
    monkeypatch.setenv("FIELDMARK_CACHE_GB", "0")
    fsspec.register_implementation("fours", InFours, clobber=True)
    InFours().pipe({f"fours://fours/{name}": (recordings / name).read_bytes() for name in NAMES})
    there = features_of("fours://fours", tmp_path / "there")
    assert np.array_equal(there, features_of(recordings, tmp_path / "here"))


def test_a_recording_that_is_gone_is_named_by_its_address(recordings, bucket, tmp_path):
    (recordings / NAMES[5]).unlink()
    address = bucket.fill(recordings, "gone")
    with pytest.raises(InputError, match=f"{address}/{NAMES[5]}: no such file"):
        features_of(address, tmp_path / "there")
