"""Parquet read in one place."""

from __future__ import annotations

import io
import random
import subprocess
import sys

import polars as pl
import pytest

from fieldmark.errors import InputError
from fieldmark.storage.parquet import read_frame, read_frames, read_table, read_texts

COUNT_THREADS = """
import io, os, pyarrow as pa, pyarrow.parquet as pq
from fieldmark.storage.parquet import read_table
sink = io.BytesIO()
pq.write_table(pa.table({"a": list(range(5000)), "b": [str(n) for n in range(5000)]}), sink)
data = sink.getvalue()
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
for _ in range(5):
    assert read_table(data, "the table").num_rows == 5000
print(threads() - before)
pq.read_table(io.BytesIO(data))
print(threads() - before, flush=True)
os._exit(0)  # a worker of pyarrow may abort an interpreter that ends
"""


def parquet_of(frame: pl.DataFrame) -> bytes:
    sink = io.BytesIO()
    frame.write_parquet(sink)
    return sink.getvalue()


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_reading_from_memory_leaves_no_worker_that_could_ask_for_an_interpreter_that_ends():
    done = subprocess.run([sys.executable, "-c", COUNT_THREADS], capture_output=True, text=True, check=True)
    of_ours, of_pyarrow = map(int, done.stdout.split())
    assert of_ours == 0
    assert of_pyarrow > 0  # the count would notice


def test_files_and_bytes_of_several_row_groups_read_alike(tmp_path):
    frame = pl.DataFrame({"unit": ["a", "b", "c"], "value": [0.1, None, 0.3]})
    path = tmp_path / "some.parquet"
    frame.write_parquet(path, row_group_size=1)
    assert read_frame(path, path).equals(frame)
    assert read_frame(path.read_bytes(), path).equals(frame)
    assert read_table(path, path, columns=("value", "other")).column_names == ["value"]
    assert read_frame(parquet_of(frame.clear()), path).equals(frame.clear())
    assert read_frames([parquet_of(frame)] * 2, ("value",)).equals(pl.concat([frame, frame]).select("value"))
    assert read_frames([parquet_of(frame), parquet_of(frame.drop("value"))], ("value",)) is None


def test_a_damaged_file_is_refused_in_a_sentence_and_never_panics():
    data = parquet_of(pl.DataFrame({"u": [f"u{n}" for n in range(500)], "v": [0.5] * 500}))
    refused = 0
    for seed in range(300):
        rng, damaged = random.Random(seed), bytearray(data)
        for _ in range(rng.randint(1, 6)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            read_frame(bytes(damaged), "run.parquet")
        except InputError as error:
            refused += 1
            assert str(error).startswith("run.parquet: found something else, expected a Parquet table")
    assert refused > 100


def test_what_is_missing_or_holds_lists_is_said(tmp_path):
    with pytest.raises(InputError, match="no such file, expected a table of answers"):
        read_frame(tmp_path / "none.parquet", "none.parquet", expected="a table of answers")
    with pytest.raises(InputError, match="the column 'a' of List"):
        read_texts(parquet_of(pl.DataFrame({"a": [[1], [2]]})), "t.parquet")
    assert read_texts(parquet_of(pl.DataFrame({"a": [1, None]})), "t")["a"].to_list() == ["1", None]
