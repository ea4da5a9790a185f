from __future__ import annotations

import pytest

from fieldmark.errors import MisuseError
from fieldmark.files import appearing_file, appearing_folder


def test_a_file_appears_only_when_complete(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), appearing_file(path) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_appears_only_when_complete(tmp_path):
    with pytest.raises(RuntimeError), appearing_folder(tmp_path / "out") as partial:
        (partial / "half").touch()
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_kept_unless_told_otherwise(tmp_path):
    out = tmp_path / "out"
    (out / "old").mkdir(parents=True)
    with pytest.raises(MisuseError, match="already exists"), appearing_folder(out):
        pass
    with appearing_folder(out, overwrite=True) as partial:
        (partial / "new").touch()
    assert [path.name for path in out.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [out]


def test_a_failed_replacement_keeps_the_old_folder(tmp_path):
    out = tmp_path / "out"
    (out / "old").mkdir(parents=True)
    with pytest.raises(RuntimeError), appearing_folder(out, overwrite=True):
        raise RuntimeError
    assert [path.name for path in out.iterdir()] == ["old"]
