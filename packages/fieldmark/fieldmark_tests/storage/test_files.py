from __future__ import annotations

import errno
import shutil
from types import SimpleNamespace

import pytest

from fieldmark.errors import MisuseError, of_system
from fieldmark.storage.files import appearing_file, appearing_folder, only_writer


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


def test_a_folder_is_not_taken_for_a_file(tmp_path):
    with pytest.raises(MisuseError, match="is a folder"), appearing_file(tmp_path):
        pass


@pytest.mark.parametrize("appearing", [appearing_file, appearing_folder])
@pytest.mark.parametrize(
    "raised",
    [
        OSError(errno.ENOSPC, "no space"),
        OSError(errno.EDQUOT, "quota"),
        OSError("(os error 28)"),
        RuntimeError("hidden"),
    ],
    ids=["system", "quota", "polars", "torch"],
)
def test_a_full_disk_is_named_after_what_was_to_appear(tmp_path, monkeypatch, appearing, raised):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    with pytest.raises(OSError) as refused, appearing(tmp_path / "out"):
        raise raised
    assert str(of_system(refused.value)).startswith(f"{tmp_path / 'out'}: found no space left on the disk")
    assert not list(tmp_path.iterdir())


def test_a_file_inside_a_folder_that_finds_no_room_is_named_after_the_folder(tmp_path):
    with (
        pytest.raises(OSError) as refused,
        appearing_folder(tmp_path / "out") as partial,
        appearing_file(partial / "scores.csv"),
    ):
        raise OSError(errno.ENOSPC, "no space")
    assert refused.value.filename == str(tmp_path / "out")


def test_a_full_disk_elsewhere_keeps_its_own_name(tmp_path):
    (tmp_path / "cache").mkdir()
    with (
        pytest.raises(OSError) as refused,
        appearing_folder(tmp_path / "out"),
        appearing_file(tmp_path / "cache" / "features.npy"),
    ):
        raise OSError(errno.ENOSPC, "no space")
    assert refused.value.filename == str(tmp_path / "cache" / "features.npy")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (errno.EACCES, "x: found no permission, expected a place that may be read or written. "),
        (errno.EROFS, "x: found a disk that cannot be written, expected a place that can. Write to another folder."),
        (errno.EISDIR, "x: found a folder, expected a file. Name a file in it."),
        (errno.EEXIST, "x: found a file, expected a folder. Check the path: one of its folders is a file."),
    ],
)
def test_what_the_system_refuses_is_said_in_a_sentence(code, sentence):
    assert str(of_system(OSError(code, "", "x"))).startswith(sentence)


def test_a_refusal_that_can_only_be_our_bug_keeps_its_traceback():
    assert of_system(OSError(errno.EBADF, "")) is None


def test_two_commands_do_not_write_one_folder_at_once(tmp_path):
    with only_writer(tmp_path / "run"):
        with pytest.raises(MisuseError, match="Another command is writing"), only_writer(tmp_path / "run"):
            pass
        with only_writer(tmp_path / "other"):
            pass
    assert not list(tmp_path.iterdir())
    with only_writer(tmp_path / "run"):
        pass
