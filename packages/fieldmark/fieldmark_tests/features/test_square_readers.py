from __future__ import annotations

import io
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fieldmark.errors import InputError
from fieldmark.features import extraction, square_readers
from fieldmark.features.crops import Box
from fieldmark.features.extraction import extract
from fieldmark.features.photo_blocks import BlockReading, PhotoBlock
from fieldmark.features.photos import Preprocessing, decode_square
from fieldmark.features.square_readers import SquareDecoder, SquareReaders, can_be_sent
from fieldmark.features.store import FeatureStore

HOW = Preprocessing(16, 0.875, (0.5,) * 3, (0.5,) * 3)


class MeanColor:
    """An extractor whose squares processes may read, as those of a network on a GPU."""

    squares_for_gpu = HOW

    def decode(self, data: bytes, box: Box | None = None) -> np.ndarray:
        return decode_square(data, HOW, box)

    def __call__(self, squares: list[np.ndarray]) -> dict[str, np.ndarray]:
        return {"features": np.stack([square.mean(axis=(0, 1)) for square in squares]).astype(np.float16)}


class FilesBelow:
    """Reads photos by their names below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for number in range(12):
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (30, 20 + number, 3), dtype=np.uint8)).save(file, "JPEG")
        (folder / f"{number:02}.jpg").write_bytes(file.getvalue())
    return folder


def blocks(folder: Path, size: int = 3) -> list[PhotoBlock]:
    names = sorted(path.name for path in folder.glob("*.jpg"))
    return [
        PhotoBlock(names[start : start + size], [None, Box(0.1, 0.1, 0.9, 0.8), None][:size], FilesBelow(folder).read)
        for start in range(0, len(names), size)
    ]


def same(photos, others) -> bool:
    return all(
        (one.media_id, one.key, one.problem) == (other.media_id, other.key, other.problem)
        and (one.pixels is None) == (other.pixels is None)
        and (one.pixels is None or np.array_equal(one.pixels, other.pixels))
        for one, other in zip(photos, others, strict=True)
    )


def test_processes_read_what_this_process_would(folder, tmp_path):
    here = BlockReading(SquareDecoder(HOW), FeatureStore(tmp_path, "x"))
    with SquareReaders(HOW, tmp_path / "x", processes=2, block_photos=3) as read, ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(read, blocks(folder)))
    assert all(same(answer, here(block)) for answer, block in zip(answers, blocks(folder), strict=True))


def test_photos_that_are_stored_are_not_decoded(folder, tmp_path):
    block = blocks(folder)[0]
    store = FeatureStore(tmp_path, "x")
    photos = BlockReading(SquareDecoder(HOW), store)(block)
    store.add([photos[1].key], {"features": np.zeros((1, 3), np.float16)})
    with SquareReaders(HOW, store.folder, processes=1, block_photos=3) as read:
        answer = read(block)
    assert [photo.pixels is None for photo in answer] == [False, True, False]
    assert np.array_equal(answer[2].pixels, photos[2].pixels)


def test_the_block_of_a_process_that_was_killed_is_read_here(folder, tmp_path):
    readers = SquareReaders(HOW, tmp_path / "x", processes=1, block_photos=3)
    with readers as read:
        first = read(blocks(folder)[0])
        os.kill(readers.pids[0], signal.SIGKILL)
        answers = [read(block) for block in blocks(folder)]
    here = BlockReading(SquareDecoder(HOW), FeatureStore(tmp_path, "x"))
    assert all(same(answer, here(block)) for answer, block in zip(answers, blocks(folder), strict=True))
    assert same(first, answers[0])


def test_what_reading_raises_in_a_process_is_raised_here_and_the_process_goes_on(folder, tmp_path):
    gone = PhotoBlock(["gone.jpg"], [None], FilesBelow(folder).read)
    with SquareReaders(HOW, tmp_path / "x", processes=1, block_photos=3) as read:
        with pytest.raises(FileNotFoundError, match=r"gone\.jpg"):
            read(gone)
        assert len(read(blocks(folder)[0])) == 3


def test_a_reader_that_another_process_cannot_find_is_not_sent(folder):
    names = ["00.jpg"]
    assert can_be_sent(PhotoBlock(names, [None], FilesBelow(folder).read))
    assert not can_be_sent(PhotoBlock(names, [None], lambda name: (folder / name).read_bytes()))


def test_an_extraction_by_processes_stores_the_same_features(folder, tmp_path, monkeypatch):
    ids = sorted(path.name for path in folder.glob("*.jpg"))
    expected = extract(ids, FilesBelow(folder).read, MeanColor(), FeatureStore(tmp_path, "here"))
    monkeypatch.setattr(square_readers, "MANY_PHOTOS", 1)
    monkeypatch.setattr(square_readers, "MANY_CORES", 1)
    monkeypatch.setattr(extraction, "BLOCK_PHOTOS", 5)
    monkeypatch.setattr(BlockReading, "__call__", None)  # nothing may be read in this process
    found = extract(ids, FilesBelow(folder).read, MeanColor(), FeatureStore(tmp_path, "by processes"))
    assert np.array_equal(found, expected)


def test_photos_that_processes_cannot_decode_are_named(folder, tmp_path, monkeypatch):
    (tmp_path / "bad.jpg").write_bytes((folder / "00.jpg").read_bytes()[:60])
    monkeypatch.setattr(square_readers, "MANY_PHOTOS", 1)
    monkeypatch.setattr(square_readers, "MANY_CORES", 1)
    with pytest.raises(InputError, match=r"bad\.jpg: found"):
        extract(["bad.jpg"], FilesBelow(tmp_path).read, MeanColor(), FeatureStore(tmp_path, "x"))
