"""Promises about fetching a whole release: nothing is fetched that is there, nothing counts that is wrong."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.download.download import Patience
from fieldmark.releases.download.fetch import Report, get, list_files
from fieldmark.releases.download.manifest import Manifest, ReleaseFile
from fieldmark.releases.download.receipts import sole_use
from fieldmark.releases.download.unpack import staging_of
from fieldmark_tests.releases.download.server import Site, md5


def zipped(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


def tarred(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return content.getvalue()


PHOTOS = zipped({"photos/train/1.JPG": b"one", "photos/train/2.JPG": b"two"})
METADATA = tarred({"Train.csv": b"filename\n1.JPG\n"})
NOTES = b'{"classes": 2}'


@pytest.fixture
def toy(site: Site) -> Manifest:
    site.put("photos.zip", PHOTOS)
    site.put("metadata.tgz", METADATA)
    site.put("notes.json", NOTES)
    return Manifest(
        "toy",
        (
            ReleaseFile(
                "photos.zip",
                (f"{site.url}/photos.zip",),
                md5=md5(PHOTOS),
                unpack="zip",
                tags=("photos",),
                creates=("photos/train",),
            ),
            ReleaseFile(
                "metadata.tgz",
                (f"{site.url}/metadata.tgz",),
                unpack="tar.gz",
                into="metadata",
                tags=("metadata",),
                aliases=("old-name.tgz",),
            ),
            ReleaseFile(
                "notes.json", (f"{site.url}/notes.json",), size=len(NOTES), into="labels", tags=("metadata", "notes")
            ),
        ),
        by_hand="Ask the makers.",
    )


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and ".fieldmark" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


RELEASE = {
    "photos/train/1.JPG": b"one",
    "photos/train/2.JPG": b"two",
    "metadata/Train.csv": b"filename\n1.JPG\n",
    "labels/notes.json": NOTES,
}


def outcomes(report: Report) -> dict[str, str]:
    return {file.name: file.outcome for file in report.files}


def asked(site: Site) -> int:
    return sum(len(page.ranges) for page in site.pages.values())


def test_a_release_is_downloaded_verified_and_unpacked(
    site: Site, toy: Manifest, tmp_path: Path, impatient: Patience
) -> None:
    report = get(toy, tmp_path / "root", patience=impatient)
    assert report.complete
    assert contents(tmp_path / "root") == RELEASE
    assert [file.checked for file in report.files] == ["md5", "nothing published", "size"]
    assert [file.unpacked for file in report.files] == [2, 1, 0]
    assert json.loads(json.dumps(report.to_json()))["complete"] is True


def test_a_second_call_asks_for_nothing(site: Site, toy: Manifest, tmp_path: Path, impatient: Patience) -> None:
    get(toy, tmp_path, patience=impatient)
    before = asked(site)
    again = get(toy, tmp_path, patience=impatient)
    assert set(outcomes(again).values()) == {"in place"}
    assert asked(site) == before


def test_what_was_deleted_after_unpacking_comes_again(toy: Manifest, tmp_path: Path, impatient: Patience) -> None:
    get(toy, tmp_path, patience=impatient)
    (tmp_path / "metadata" / "Train.csv").unlink()
    again = get(toy, tmp_path, patience=impatient)
    assert outcomes(again)["metadata.tgz"] == "downloaded"
    assert contents(tmp_path) == RELEASE


def test_only_what_is_chosen_comes(toy: Manifest, tmp_path: Path, impatient: Patience) -> None:
    get(toy, tmp_path, choose=["notes"], patience=impatient)
    assert contents(tmp_path) == {"labels/notes.json": NOTES}


def test_files_found_elsewhere_count_and_stay_where_they_are(
    site: Site, toy: Manifest, tmp_path: Path, impatient: Patience
) -> None:
    downloads = tmp_path / "downloads" / "from a colleague"
    downloads.mkdir(parents=True)
    (downloads / "photos.zip").write_bytes(PHOTOS)
    (downloads / "old-name.tgz").write_bytes(METADATA)
    (downloads / "notes.json").write_bytes(NOTES)
    report = get(toy, tmp_path / "root", found=[tmp_path / "downloads"], patience=impatient)
    assert set(outcomes(report).values()) == {"found"}
    assert asked(site) == 0
    assert contents(tmp_path / "root") == RELEASE
    assert len(list(downloads.iterdir())) == 3


def test_an_archive_put_into_the_root_counts_and_stays(
    site: Site, toy: Manifest, tmp_path: Path, impatient: Patience
) -> None:
    (tmp_path / "photos.zip").write_bytes(PHOTOS)
    report = get(toy, tmp_path, choose=["photos"], patience=impatient)
    assert outcomes(report) == {"photos.zip": "found"}
    assert (tmp_path / "photos.zip").exists()
    assert asked(site) == 0


def test_a_release_that_was_unpacked_by_hand_counts(
    site: Site, toy: Manifest, tmp_path: Path, impatient: Patience
) -> None:
    (tmp_path / "photos" / "train").mkdir(parents=True)
    assert outcomes(get(toy, tmp_path, choose=["photos"], patience=impatient)) == {"photos.zip": "downloaded"}
    shutil.rmtree(tmp_path / ".fieldmark")
    before = asked(site)
    assert outcomes(get(toy, tmp_path, choose=["photos"], patience=impatient)) == {"photos.zip": "in place"}
    assert asked(site) == before


def test_half_unpacked_is_not_in_place(toy: Manifest, tmp_path: Path, impatient: Patience) -> None:
    (tmp_path / "photos" / "train").mkdir(parents=True)
    (tmp_path / "photos" / "train" / "1.JPG").write_bytes(b"one")
    staging_of("photos.zip", tmp_path).mkdir()
    get(toy, tmp_path, choose=["photos"], patience=impatient)
    assert (tmp_path / "photos" / "train" / "2.JPG").exists()
    assert not staging_of("photos.zip", tmp_path).exists()


def test_a_wrong_file_in_the_root_is_set_aside_one_elsewhere_is_left_alone(
    toy: Manifest, tmp_path: Path, impatient: Patience
) -> None:
    root, downloads = tmp_path / "root", tmp_path / "downloads"
    wrong = zipped({"photos/train/1.JPG": b"another"})
    for folder in (root, downloads):
        folder.mkdir()
        (folder / "photos.zip").write_bytes(wrong)
    report = get(toy, root, choose=["photos"], found=[downloads], patience=impatient)
    assert outcomes(report) == {"photos.zip": "downloaded"}
    assert (root / "photos.zip.bad").read_bytes() == (downloads / "photos.zip").read_bytes() == wrong
    assert "set aside as photos.zip.bad" in report.files[0].remarks[0]
    assert "It is not used" in report.files[0].remarks[1]
    assert (root / "photos" / "train" / "1.JPG").read_bytes() == b"one"


def test_a_file_of_the_wrong_size_does_not_count(toy: Manifest, tmp_path: Path, impatient: Patience) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "notes.json").write_bytes(NOTES[:5])
    report = get(toy, tmp_path, choose=["notes"], patience=impatient)
    assert outcomes(report) == {"notes.json": "downloaded"}
    assert f"found 5 bytes, expected {len(NOTES)} bytes" in report.files[0].remarks[0]


def test_one_file_that_cannot_be_had_does_not_stop_the_others(
    site: Site, toy: Manifest, tmp_path: Path, impatient: Patience
) -> None:
    site["photos.zip"].status = 404
    report = get(toy, tmp_path, patience=impatient)
    assert not report.complete
    assert outcomes(report) == {"photos.zip": "failed", "metadata.tgz": "downloaded", "notes.json": "downloaded"}
    (sentence,) = report.files[0].remarks
    assert "answered 404" in sentence
    assert "Ask the makers. Then pass the folder that holds photos.zip with --found" in sentence


def test_a_file_without_a_mirror_says_where_to_get_it(toy: Manifest, tmp_path: Path) -> None:
    captions = ReleaseFile("captions.zip", unpack="zip", tags=("captions",), by_hand="Log in at example.org.")
    report = get(replace(toy, files=(captions,)), tmp_path)
    (sentence,) = report.files[0].remarks
    assert sentence.startswith("captions.zip: found no mirror that gives it. Log in at example.org.")


def test_a_mirror_of_ones_own_is_asked_first(site: Site, toy: Manifest, tmp_path: Path, impatient: Patience) -> None:
    site.put("copy/notes.json", NOTES)
    report = get(toy, tmp_path, choose=["notes"], mirrors=[f"{site.url}/copy/"], patience=impatient)
    assert report.files[0].origin == f"{site.url}/copy/notes.json"
    assert not site["notes.json"].ranges


def test_archives_are_kept_on_request(toy: Manifest, tmp_path: Path, impatient: Patience) -> None:
    get(toy, tmp_path, choose=["photos"], keep_archives=True, patience=impatient)
    assert (tmp_path / "photos.zip").read_bytes() == PHOTOS


def test_an_unsafe_archive_is_a_failure_and_leaves_no_trace(
    site: Site, toy: Manifest, tmp_path: Path, impatient: Patience
) -> None:
    site["metadata.tgz"].content = tarred({"../../out.txt": b"bad"})
    report = get(toy, tmp_path / "in" / "root", choose=["metadata.tgz"], patience=impatient)
    assert outcomes(report) == {"metadata.tgz": "failed"}
    assert "leads out of the folder" in report.files[0].remarks[0]
    assert not list(tmp_path.rglob("out.txt"))
    assert (tmp_path / "in" / "root" / "metadata.tgz.bad").exists()


def test_an_interrupted_download_goes_on_in_the_next_call(
    site: Site, toy: Manifest, tmp_path: Path, impatient: Patience
) -> None:
    page = site["photos.zip"]
    page.break_after = [100, *[0] * 10]
    assert not get(toy, tmp_path, choose=["photos"], patience=impatient).complete
    page.break_after = []
    report = get(toy, tmp_path, choose=["photos"], patience=impatient)
    assert (report.files[0].received, report.files[0].resumed_from) == (len(PHOTOS) - 100, 100)


def test_a_disk_without_room_is_told_before_anything_is_asked(
    site: Site, toy: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = replace(toy, files=(replace(toy.files[0], about=10**12), *toy.files[1:]))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10**9))
    with pytest.raises(InputError, match=r"found 1.0 GB free, expected about 2.0 TB for 3 files"):
        get(large, tmp_path)
    assert asked(site) == 0


def test_two_calls_do_not_write_the_same_root_at_once(toy: Manifest, tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with sole_use(tmp_path), pytest.raises(InputError, match="another `fieldmark get`"):
        get(toy, tmp_path)


def test_misuse_gets_a_sentence(toy: Manifest, tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="Did you mean fungitastic"):
        get("fungitastik", tmp_path)
    with pytest.raises(MisuseError, match="there is no such folder"):
        get(toy, tmp_path, found=[tmp_path / "nowhere"])
    (tmp_path / "file").write_text("x")
    with pytest.raises(MisuseError, match="is a file"):
        get(toy, tmp_path / "file")


def test_the_list_tells_what_is_there_without_asking(
    site: Site, toy: Manifest, tmp_path: Path, impatient: Patience
) -> None:
    root, downloads = tmp_path / "root", tmp_path / "downloads"
    downloads.mkdir()
    (downloads / "metadata.tgz").write_bytes(METADATA)
    get(toy, root, choose=["photos"], patience=impatient)
    before = asked(site)
    hand = replace(toy, files=(*toy.files, ReleaseFile("captions.zip", unpack="zip", tags=("captions",))))
    listed = list_files(hand, root, found=[downloads])
    assert [file.standing for file in listed] == ["in place", "on disk", "to download", "by hand"]
    assert [file.checksum for file in listed] == ["md5", None, None, None]
    assert [file.size_is_exact for file in listed] == [False, False, True, False]
    assert asked(site) == before
