from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldmark.audio.clips import all_windows, cut, fill, starts_within


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=8),
)
def test_clips_of_a_stream_are_slices_of_the_whole(sizes, spans):
    whole = np.arange(sum(sizes), dtype=np.float32)
    blocks = np.split(whole, np.cumsum(sizes)[:-1])
    wanted = sorted((start, start + length) for start, length in spans)
    found = list(cut(blocks, wanted))
    assert [clip.tolist() for clip in found] == [whole[start:end].tolist() for start, end in wanted]


def test_only_a_block_and_a_span_are_held_however_long_the_stream():
    drawn = 0

    def endless():
        nonlocal drawn
        while True:
            drawn += 1
            yield np.zeros(10, dtype=np.float32)

    clips = cut(endless(), ((start, start + 15) for start in range(0, 10_000, 15)))
    for _, clip in zip(range(20), clips, strict=False):
        assert len(clip) == 15
    assert drawn <= 31


@pytest.mark.parametrize(("length", "windows"), [(10, 2), (11, 3), (4, 1), (0, 0)])
def test_all_windows_reach_the_end_and_no_further(length, windows):
    found = list(all_windows([np.ones(length, dtype=np.float32)] if length else [], 5, 5))
    assert len(found) == windows and sum(map(len, found)) == length


@given(st.integers(1, 400), st.integers(1, 100))
def test_windows_within_a_span_cover_it(span, window):
    starts = starts_within(span, window)
    covered = {place for start in starts for place in range(start, start + window)}
    assert covered >= set(range(span)) and starts == sorted(starts)
    assert span < window or max(starts) + window == span


@pytest.mark.parametrize("padding", ["zeros", "repeat", "noise"])
def test_a_short_clip_is_filled_up_the_same_way_each_time(padding):
    clip = np.array([0.5, -0.5, 0.25], dtype=np.float32)
    filled = fill(clip, 1000, padding)
    assert len(filled) == 1000 and filled.dtype == np.float32 and (filled[:3] == clip).all()
    assert (filled == fill(clip, 1000, padding)).all()
    assert (fill(clip, 2, padding) == clip[:2]).all()
    assert len(fill(clip[:0], 7, padding)) == 7
