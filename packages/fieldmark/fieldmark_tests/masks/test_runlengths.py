"""Run lengths of masks: round trips, the box behind them, texts and lists, and COCO's own."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fieldmark.errors import InputError
from fieldmark.masks.coco_runlengths import coco_rle, compress, decompress, mask_of_coco, runs_by_columns
from fieldmark.masks.mask_tables import mask_table
from fieldmark.masks.parts import MICROSCOPIC, WHOLE, merged_last
from fieldmark.masks.runlengths import MaskRow, box_of_runs, decode_runs, encode_runs, without_box

MASKS = arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, max_side=12))


def numbers_of(mask: np.ndarray, *, box: bool) -> list[int]:
    """What a release writes for a mask: counted pixel by pixel."""
    lengths, drawing = [0], False
    for pixel in mask.ravel().tolist():
        if pixel != drawing:
            lengths.append(0)
            drawing = pixel
        lengths[-1] += 1
    rows, columns = np.flatnonzero(mask.any(axis=1)).tolist(), np.flatnonzero(mask.any(axis=0)).tolist()
    around = [columns[0], rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1] if rows else [0, 0, 0, 0]
    return [*lengths, *around] if box else lengths


@given(MASKS)
def test_every_mask_comes_back_from_its_run_lengths_and_from_those_with_a_box(mask):
    runs = encode_runs(mask)
    assert runs.tolist() == numbers_of(mask, box=False)
    for numbers in (runs, np.array([*runs, *box_of_runs(runs, mask.shape[1])])):
        assert np.array_equal(decode_runs(without_box(numbers, mask.size), *mask.shape), mask)


@given(MASKS)
def test_the_box_of_run_lengths_is_that_of_the_pixels(mask):
    assert [*encode_runs(mask), *box_of_runs(encode_runs(mask), mask.shape[1])] == numbers_of(mask, box=True)


@given(MASKS, st.booleans(), st.sampled_from(["list", "large list", "int32", "text"]))
@settings(deadline=None)
def test_a_table_of_a_release_gives_masks_back_from_lists_and_from_texts(mask, box, kind):
    numbers = numbers_of(mask, box=box)
    kinds = {"list": pa.list_(pa.int64()), "large list": pa.large_list(pa.int64()), "int32": pa.list_(pa.int32())}
    column = pa.array([json.dumps(numbers)]) if kind == "text" else pa.array([numbers], kinds[kind])
    sizes = {"width": [mask.shape[1]], "height": [mask.shape[0]]}
    table = pa.table({"file_name": ["0-1.JPG"], "label": ["cap"], **sizes, "rle": column})
    assert np.array_equal(mask_table(table, "t").open(0).mask(), mask)


def test_background_that_is_left_out_at_the_end_is_filled_in_where_that_is_allowed():
    columns = {"file_name": ["a"], "label": ["cap"], "width": [4], "height": [3], "rle": [[1, 2, 1, 0, 2, 1]]}
    table = mask_table(pa.table(columns), "t")
    assert table.open(0, complete=False).area == 2
    with pytest.raises(InputError, match="row 0: found runs of 7 pixels"):
        table.open(0)


def test_lengths_that_wrap_around_are_refused():
    columns = {"file_name": ["a"], "label": ["cap"], "width": [2], "height": [1], "rle": [[2**63 - 1, 2**63 - 1, 4]]}
    with pytest.raises(InputError, match="row 0"):
        mask_table(pa.table(columns), "t").open(0, complete=False)


@given(MASKS)
def test_run_lengths_of_coco_are_those_of_pycocotools(mask):
    reference = pytest.importorskip("pycocotools.mask")
    theirs = reference.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"].decode()
    ours = coco_rle(mask, compressed=True)
    assert ours == {"size": list(mask.shape), "counts": theirs}
    assert np.array_equal(mask_of_coco(ours), mask)
    assert np.array_equal(mask_of_coco(coco_rle(mask)), mask)


@given(MASKS, st.integers(1, 200))
def test_columns_are_counted_alike_with_few_and_with_many_changes(mask, times):
    tall = np.repeat(mask, times, axis=0)
    assert runs_by_columns(tall).tolist() == encode_runs(tall.T).tolist()


@given(st.lists(st.integers(0, 2**40), max_size=20))
def test_texts_of_coco_hold_any_lengths(lengths):
    assert decompress(compress(np.array(lengths, dtype=np.int64))).tolist() == lengths


@pytest.mark.parametrize(
    "rle",
    [
        None,
        {"size": [2, 2]},
        {"size": [2], "counts": [4]},
        {"size": [2, 2], "counts": [3]},
        {"size": [2, 2], "counts": [5, -1]},
        {"size": [2, 2], "counts": "4 "},
        {"size": [2, 2], "counts": "T"},
        {"size": [0, 2], "counts": [0]},
    ],
)
def test_what_is_no_mask_of_coco_is_refused(rle):
    with pytest.raises(ValueError, match=r"."):
        mask_of_coco(rle)


def test_the_last_row_is_the_whole_and_other_rows_of_that_name_are_dropped():
    one = np.eye(3, dtype=bool)
    rows = [MaskRow.of(label, one) for label in (WHOLE, "cap", WHOLE, "stem")]
    assert [row.label for row in merged_last(rows)] == ["cap", "stem", WHOLE]
    spores = [MaskRow.of(MICROSCOPIC, one)]
    assert merged_last(spores) == tuple(spores) and merged_last([]) == ()
