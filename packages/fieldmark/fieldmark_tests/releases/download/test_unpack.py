"""Promises about unpacking: what is harmless comes out whole, everything else leaves no trace."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from fieldmark.errors import InputError
from fieldmark.releases.download import unpack as unpacking
from fieldmark.releases.download.unpack import ArchiveLimits, members, staging_of, unpack
from fieldmark.storage.archives import Member

FILES = {"images/1_Amanita muscaria /1.JPG": b"red" * 1000, "images/2_Boletus/2.JPG": b"brown" * 900, "a.json": b"{}"}


def make_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return path


def make_tar(path: Path, files: dict[str, bytes], *extra: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in extra:
            archive.addfile(info)
    return path


def make(kind: str, folder: Path, files: dict[str, bytes]) -> Path:
    return make_zip(folder / "x.zip", files) if kind == "zip" else make_tar(folder / "x.tar.gz", files)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


both = pytest.mark.parametrize("kind", ["zip", "tar.gz"])


@both
def test_every_file_comes_out_and_nothing_else(tmp_path: Path, kind: str) -> None:
    archive = make(kind, tmp_path, FILES)
    done = unpack(archive, tmp_path / "root", kind)  # type: ignore[arg-type]
    assert contents(tmp_path / "root") == FILES
    assert (done.files, done.replaced, done.made) == (3, 0, ("a.json", "images"))


@both
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../out.txt", "leads out"),
        ("images/../../out.txt", "leads out"),
        ("/tmp/out.txt", "absolute"),
        ("C:/out.txt", "absolute"),
        ("..\\out.txt", "backslash"),
        ("images/\nout.txt", "control characters"),
    ],
)
def test_names_that_lead_elsewhere_are_refused_and_nothing_is_unpacked(
    tmp_path: Path, kind: str, name: str, reason: str
) -> None:
    archive = make(kind, tmp_path, {"good.txt": b"good", name: b"bad"})
    with pytest.raises(InputError, match=reason):
        unpack(archive, tmp_path / "in" / "root", kind)  # type: ignore[arg-type]
    assert contents(tmp_path / "in") == {}
    assert not (tmp_path / "out.txt").exists()


def _link(kind: bytes, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo("images/link")
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("target", ["/etc/passwd", "../../out", "good.txt"])
@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE], ids=["symbolic", "hard"])
def test_links_in_a_tar_are_refused(tmp_path: Path, kind: bytes, target: str) -> None:
    archive = make_tar(tmp_path / "x.tar.gz", {"good.txt": b"good"}, _link(kind, target))
    with pytest.raises(InputError, match="a link"):
        unpack(archive, tmp_path / "root", "tar.gz")
    assert contents(tmp_path / "root") == {}


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_refused(tmp_path: Path, kind: bytes) -> None:
    archive = make_tar(tmp_path / "x.tar.gz", {}, _link(kind, ""))
    with pytest.raises(InputError, match="a device or a pipe"):
        unpack(archive, tmp_path / "root", "tar.gz")


def test_links_in_a_zip_are_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(InputError, match="a link or a device"):
        unpack(tmp_path / "x.zip", tmp_path / "root", "zip")


@both
def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path: Path, kind: str) -> None:
    archive = make(kind, tmp_path, {"zeros": bytes(20_000_000)})
    assert archive.stat().st_size < 100_000
    with pytest.raises(InputError, match="bomb"):
        unpack(archive, tmp_path / "root", kind, limits=ArchiveLimits(allowance=1_000_000))  # type: ignore[arg-type]
    assert contents(tmp_path / "root") == {}


def test_padding_without_end_is_a_bomb_too(tmp_path: Path) -> None:
    archive = tmp_path / "x.tar.gz"
    archive.write_bytes(make_tar(tmp_path / "y.tar.gz", {"a": b"a"}).read_bytes() + gzip.compress(bytes(20_000_000)))
    with pytest.raises(InputError, match="padding"):
        unpack(archive, tmp_path / "root", "tar.gz", limits=ArchiveLimits(allowance=1_000_000))


def test_a_zip_that_lies_about_sizes_does_not_get_through(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "x.zip", {"zeros": bytes(5_000_000)})
    declared = (5_000_000).to_bytes(4, "little")
    archive.write_bytes(archive.read_bytes().replace(declared, (10).to_bytes(4, "little")))
    with pytest.raises(InputError):
        unpack(archive, tmp_path / "root", "zip")
    assert contents(tmp_path / "root") == {}


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "x.zip", {str(number): b"" for number in range(11)})
    with pytest.raises(InputError, match="more than 10 files"):
        unpack(archive, tmp_path / "root", "zip", limits=ArchiveLimits(members=10))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a", "one")
        archive.writestr("a", "two")
    with pytest.raises(InputError, match="same name"):
        unpack(tmp_path / "x.zip", tmp_path / "root", "zip")


def test_names_that_differ_in_case_are_refused_only_where_the_disk_cannot_tell_them_apart(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "x.zip", {"a.JPG": b"one", "A.jpg": b"two"})
    with members(archive, "zip", limits=ArchiveLimits()) as inside:
        assert len(list(inside)) == 2
    with (
        pytest.raises(InputError, match="same name"),
        members(archive, "zip", limits=ArchiveLimits(), folds_case=True) as inside,
    ):
        list(inside)


def test_a_name_that_is_file_and_folder_is_refused(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "x.tar.gz", {"a": b"one", "a/b": b"two"})
    with pytest.raises(InputError, match="both as a file and as a folder"):
        unpack(archive, tmp_path / "root", "tar.gz")


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "x.zip", {"a": b"one"})
    raw = bytearray(archive.read_bytes())
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(bytes(raw))
    with pytest.raises(InputError, match="encrypted"):
        unpack(archive, tmp_path / "root", "zip")


@both
@pytest.mark.parametrize("keep", [0.2, 0.9, 0.999])
def test_a_cut_archive_leaves_nothing(tmp_path: Path, kind: str, keep: float) -> None:
    archive = make(kind, tmp_path, {f"{number}.JPG": bytes([number]) * 5000 for number in range(200)})
    raw = archive.read_bytes()
    archive.write_bytes(raw[: int(keep * len(raw))])
    with pytest.raises(InputError, match="damaged archive"):
        unpack(archive, tmp_path / "root", kind)  # type: ignore[arg-type]
    assert contents(tmp_path / "root") == {}


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a", b"some bytes that are stored as they are")
    raw = (tmp_path / "x.zip").read_bytes().replace(b"some bytes", b"same bytes")
    (tmp_path / "x.zip").write_bytes(raw)
    with pytest.raises(InputError, match="Bad CRC-32"):
        unpack(tmp_path / "x.zip", tmp_path / "root", "zip")


def test_something_that_is_no_archive_is_said_to_be_damaged(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"<html>")
    for kind in ("zip", "tar.gz"):
        with pytest.raises(InputError, match="damaged archive"):
            unpack(tmp_path / "x", tmp_path / "root", kind)


@both
def test_files_that_are_there_stay_unless_they_differ(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "root"
    archive = make(kind, tmp_path, FILES)
    (root / "images" / "2_Boletus").mkdir(parents=True)
    (root / "images" / "2_Boletus" / "2.JPG").write_bytes(FILES["images/2_Boletus/2.JPG"])
    before = (root / "images" / "2_Boletus" / "2.JPG").stat().st_mtime_ns
    (root / "a.json").write_text("cut off")
    (root / "mine.txt").write_text("mine")
    done = unpack(archive, root, kind)  # type: ignore[arg-type]
    assert contents(root) == {**FILES, "mine.txt": b"mine"}
    assert done.replaced == 1
    assert (root / "images" / "2_Boletus" / "2.JPG").stat().st_mtime_ns == before


def test_a_file_in_place_of_a_folder_is_told(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "x.zip", FILES)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "images").write_text("not a folder")
    with pytest.raises(InputError, match=r"expected a folder, as in x\.zip"):
        unpack(archive, tmp_path / "root", "zip")


@both
def test_an_interrupted_unpacking_goes_on(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, root = make(kind, tmp_path, FILES), tmp_path / "root"
    real_members = unpacking.members

    def interrupt() -> IO[bytes]:
        raise KeyboardInterrupt

    @contextmanager
    def interrupted(*args: object, **options: object) -> Iterator[Iterator[Member]]:
        with real_members(*args, **options) as inside:  # type: ignore[arg-type]
            yield (replace(member, open=interrupt) if place == 2 else member for place, member in enumerate(inside))

    monkeypatch.setattr(unpacking, "members", interrupted)
    with pytest.raises(KeyboardInterrupt):
        unpack(archive, root, kind)  # type: ignore[arg-type]
    assert [path.name for path in root.iterdir()] == [f".{archive.name}.unpacking"]
    staged = staging_of(archive.name, root) / "files"
    times = {name: (staged / name).stat().st_mtime_ns for name in contents(staged)}
    assert len(times) == 2

    monkeypatch.setattr(unpacking, "members", real_members)
    unpack(archive, root, kind)  # type: ignore[arg-type]
    assert contents(root) == FILES
    assert all((root / name).stat().st_mtime_ns == at for name, at in times.items())


def test_what_another_archive_left_unfinished_is_not_mixed_in(tmp_path: Path) -> None:
    root = tmp_path / "root"
    stale = staging_of("x.zip", root) / "files" / "a.json"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"[]")
    unpack(make_zip(tmp_path / "x.zip", FILES), root, "zip")
    assert contents(root) == FILES
