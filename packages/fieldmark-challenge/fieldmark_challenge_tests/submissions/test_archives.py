"""Archives with a program: unpacked where they are sound, refused in a sentence where they are not."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from fieldmark_challenge.submissions import archives
from fieldmark_challenge.submissions.archives import ArchiveRefusedError, inspect, unpack
from fieldmark_challenge_tests.programs.programs import HONEST, archive_of


def tarred(*entries: tuple[str, bytes | str]) -> bytes:
    """A tar archive of files, and of links where the content is text."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name, content in (("run.sh", b"true"), *entries):
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return sink.getvalue()


def zipped(*entries: tuple[str, bytes], kind: int = 0) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.sh", "true")
        for name, content in entries:
            about = zipfile.ZipInfo(name)
            about.external_attr, about.compress_type = kind << 16, zipfile.ZIP_DEFLATED
            archive.writestr(about, content)
    return sink.getvalue()


BAD = {
    "no archive": b"id,predicted\n",
    "empty": b"",
    "no run.sh": archive_of(HONEST)[:20],
    "leads out": tarred(("../../etc/cron.d/evil", b"x")),
    "absolute": tarred(("/etc/cron.d/evil", b"x")),
    "a link": tarred(("data", "/etc/passwd")),
    "zip leads out": zipped(("..\\..\\evil", b"x")),
    "zip link": zipped(("data", b"/etc/passwd"), kind=0o120777),
    "twice": tarred(("run.py", b"1"), ("run.py", b"2")),
    "bomb": zipped(("zeros", b"0" * (3 << 20))),
    "many files": tarred(*((f"f{number}", b"") for number in range(60))),
    "breaks off": archive_of(HONEST)[:-40],
}


@pytest.mark.parametrize("kind", BAD)
def test_strange_archives_are_refused(kind, tmp_path: Path, monkeypatch):
    (tmp_path / "archive").write_bytes(BAD[kind])
    (tmp_path / "into").mkdir()
    with pytest.raises(ArchiveRefusedError) as refused:
        unpack(tmp_path / "archive", tmp_path / "into", most_files=50, most_mb=2)
    assert str(refused.value).endswith(".") and str(tmp_path) not in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "into") == ["archive"]


def test_sound_archives_are_unpacked_wherever_run_sh_lies(tmp_path: Path):
    (tmp_path / "archive").write_bytes(archive_of(HONEST))
    (tmp_path / "flat").mkdir()
    assert unpack(tmp_path / "archive", tmp_path / "flat") == tmp_path / "flat"
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("team/run.sh", "true")
        archive.writestr("__MACOSX/x", "")
    (tmp_path / "archive").write_bytes(sink.getvalue())
    (tmp_path / "deep").mkdir()
    home = unpack(tmp_path / "archive", tmp_path / "deep")
    assert home == tmp_path / "deep" / "team" and (home / archives.ENTRY).read_text() == "true"


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_every_compression_is_unpacked_and_a_cut_one_is_refused(compression, tmp_path: Path):
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "run.sh").write_text("true")
    (tmp_path / "program" / "run.sh").chmod(0o755)
    with tarfile.open(tmp_path / "archive", f"w:{compression}") as archive:
        archive.add(tmp_path / "program", ".")
    inspect(tmp_path / "archive")
    (tmp_path / "into").mkdir()
    assert (unpack(tmp_path / "archive", tmp_path / "into") / "run.sh").stat().st_mode & 0o777 == 0o755
    if compression:
        (tmp_path / "archive").write_bytes((tmp_path / "archive").read_bytes()[:-4])
        with pytest.raises(ArchiveRefusedError, match="breaks off"):
            inspect(tmp_path / "archive")


def test_the_archives_of_some_programs_for_windows_are_unpacked(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("team\\run.sh", "true")
    (tmp_path / "into").mkdir()
    assert unpack(tmp_path / "archive", tmp_path / "into") == tmp_path / "into" / "team"
