"""Masks as predictions: run lengths in memory and on disk, against the pixels themselves."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldmark.errors import InputError
from fieldmark.masks.runlengths import MaskRow, decode_runs, encode_runs
from fieldmark.questions.masks import PartMasks
from fieldmark.questions.truth import Truth
from fieldmark.runs.mask_files import MaskFiles, read_masks
from fieldmark.runs.masks import Masks
from fieldmark.runs.predictions import read_predictions
from fieldmark.tables.labels import Labels
from fieldmark.tables.schema import TRUTH

SEEDS = st.integers(0, 2**32 - 1)
Pixels = dict[str, dict[str, np.ndarray]]


def drawn(seed: int) -> tuple[Masks, Pixels]:
    """Photos of several sizes with masks of some parts, with nothing on some masks and no masks on some photos."""
    rng = np.random.default_rng(seed)
    pixels: Pixels = {}
    for number in range(rng.integers(1, 7)):
        shape, full = tuple(rng.integers(1, 9, 2)), rng.choice([0.0, 0.2, 0.7, 1.0])
        parts = [part for part in ("cap", "gills", "stem") if rng.random() < 0.5]
        pixels[f"{number}-{rng.integers(1000)}"] = {part: rng.random(shape) < full for part in parts}
    rows = tuple(tuple(MaskRow.of(part, mask) for part, mask in parts.items()) for parts in pixels.values())
    return Masks(tuple(pixels), rows), pixels


def same(masks: Masks, pixels: Pixels) -> bool:
    """Whether masks show these pixels, photo by photo, and nothing else."""
    if masks.items != tuple(pixels):
        return False
    opened = {photo: masks.open(photo) for photo in masks.items}
    return all(
        opened[photo].keys() == parts.keys() and all(np.array_equal(opened[photo][part], parts[part]) for part in parts)
        for photo, parts in pixels.items()
    )


@given(seed=SEEDS, height=st.integers(1, 9), width=st.integers(1, 9), full=st.sampled_from([0.0, 0.3, 0.8, 1.0]))
def test_run_lengths_give_the_mask_back(seed, height, width, full):
    mask = np.random.default_rng(seed).random((height, width)) < full
    runs = encode_runs(mask)
    assert np.array_equal(decode_runs(runs.tolist(), height, width), mask)
    assert (runs[1:] > 0).all() and runs[1::2].sum() == mask.sum()
    complete = runs.tolist()
    assert sum(complete) == mask.size and np.array_equal(decode_runs(complete, height, width), mask)


def test_runs_longer_than_the_picture_are_refused():
    for runs in ([3, 4], [9, -3]):
        with pytest.raises(ValueError, match="for a picture of 6"):
            decode_runs(runs, 2, 3)


@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_masks_survive_the_disk_and_so_do_photos_without_any(seed, tmp_path_factory):
    masks, pixels = drawn(seed)
    path = tmp_path_factory.mktemp("masks") / "masks.parquet"
    masks.write(path)
    assert same(read_predictions(path), pixels)


@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_a_file_of_predictions_is_a_run_whose_photos_all_have_masks(seed, tmp_path_factory):
    masks, pixels = drawn(seed)
    path = tmp_path_factory.mktemp("masks") / "run.parquet"
    MaskFiles().write(path, masks)
    shown = {photo: parts for photo, parts in pixels.items() if parts}
    assert same(MaskFiles().read(path, tuple(shown), Labels(())), shown)
    assert same(read_masks(path), shown)
    if len(shown) < len(pixels):
        with pytest.raises(InputError, match=f"no mask for {len(pixels) - len(shown)} of {len(pixels)} photos"):
            MaskFiles().read(path, masks.items, Labels(()))


@given(seed=SEEDS, size=st.integers(1, 7))
def test_masks_are_cut_and_joined_by_photo(seed, size):
    masks, pixels = drawn(seed)
    wanted = np.random.default_rng(seed).permutation(masks.items)[:3].tolist()
    assert same(masks.select(wanted), {photo: pixels[photo] for photo in wanted})
    blocks = list(masks.blocks(size))
    assert max(len(block.items) for block in blocks) <= size
    assert same(Masks.concat(blocks), pixels)


def test_several_masks_of_one_part_become_one():
    left, right = np.array([[True, False, False]]), np.array([[False, False, True]])
    masks = Masks(("p",), ((MaskRow.of("cap", left), MaskRow.of("cap", right)),))
    assert np.array_equal(masks.open("p")["cap"], left | right) and masks.parts == ("cap",)


def test_masks_of_a_release_with_a_box_behind_their_runs_are_written_again_as_they_were(tmp_path):
    mask = np.zeros((6, 6), dtype=bool)
    mask[1:4, 1:4] = True
    runs = [*encode_runs(mask).tolist(), 1, 1, 3, 3]
    row = {"file_name": ["0-1.JPG"], "label": ["cap"], "width": [6], "height": [6], "rle": [runs]}
    pl.DataFrame(row).write_parquet(tmp_path / "release.parquet")
    read_masks(tmp_path / "release.parquet").write(tmp_path / "again.parquet")
    for name in ("release", "again"):
        assert same(read_masks(tmp_path / f"{name}.parquet"), {"0-1": {"cap": mask}})


def table_of(folder: Path, **columns: object) -> Path:
    """A small file of masks in which one photo, p0, is drawn."""
    pq.write_table(pa.table(columns), folder / "run.parquet", compression="zstd")
    return folder / "run.parquet"


def test_a_small_file_that_would_take_gigabytes_is_refused_before_it_is_read(tmp_path):
    numbers = pa.array([np.zeros(5_000_000, dtype=np.int64)], pa.list_(pa.int64()))
    path = table_of(tmp_path, file_name=["p0.jpg"], label=["cap"], width=[10], height=[10], rle=numbers)
    assert path.stat().st_size < 66_000
    tracemalloc.start()
    with pytest.raises(InputError, match=r"5,000,004 values in [\d,]+ bytes, expected at most 4,000,000"):
        read_masks(path)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000 and pa.total_allocated_bytes() < numbers.nbytes + 5_000_000
    tracemalloc.stop()


def test_many_parts_in_large_pictures_take_the_memory_of_one(tmp_path):
    """Thirty parts of 16 million pixels each, in a file of two kilobytes."""
    side, parts = 4000, [f"part{number}" for number in range(30)]
    rle = pa.array([[side * side - 7, 7]] * len(parts), pa.list_(pa.int64()))
    sizes = {"width": [side] * len(parts), "height": [side] * len(parts)}
    path = table_of(tmp_path, file_name=["p0.jpg"] * len(parts), label=parts, **sizes, rle=rle)
    true = Masks(("p0",), ((MaskRow.of("cap", np.ones((20, 20), dtype=bool)),),))
    tracemalloc.start()
    truth = Truth(TRUTH.empty(), ("p0",), ("p0",), masks=true)
    found = PartMasks().evaluate(read_masks(path), truth, Labels(("cap",)), pl.DataFrame(), 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * side * side, f"{peak:,} bytes"
    assert found.parts == ("background", "cap", *sorted(parts))
