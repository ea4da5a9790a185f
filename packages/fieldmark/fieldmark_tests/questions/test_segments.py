"""Segments of recordings as items."""

from __future__ import annotations

from fieldmark.questions.segments import Segments


def test_loose_recordings_become_segments_that_reach_their_end(tmp_path):
    table = Segments(5).loose([tmp_path / "dawn.wav"], {"seconds": {str(tmp_path / "dawn.wav"): 11.0}})
    assert table["start_s"].to_list() == [0, 5, 10] and table["end_s"].to_list() == [5, 10, 15]
    assert table["item_id"][2] == f"{tmp_path}/dawn.wav/10"
