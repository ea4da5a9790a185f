"""The file store: plain paths, on disk or on an object store."""

from __future__ import annotations

import os

import pytest

from fieldmark_challenge.records.storage import Storage


def test_files_may_lie_on_an_object_store(tmp_path):
    store = Storage(f"memory://runs-{os.getpid()}")
    (tmp_path / "a").write_bytes(b"one")
    store.put(tmp_path / "a", "runs/1/a")
    (tmp_path / "b").write_bytes(b"two")
    store.put(tmp_path / "b", "runs/1/b")
    assert store.names("runs/1") == ["a", "b"] and store.everything() == ["runs/1/a", "runs/1/b"]
    assert store.fetch("runs/1/b", tmp_path / "back").read_bytes() == b"two"
    store.delete("runs/1/a")
    assert not store.exists("runs/1/a")
    for path in ("../etc/passwd", "/etc/passwd", "runs/../../x", "runs/.hidden", "runs//x", ""):
        with pytest.raises(ValueError, match="not a path of the store"):
            store.exists(path)
