"""Promises about one file over HTTP, against a server that misbehaves."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.download.download import Download, Patience, download
from fieldmark.releases.download.manifest import ReleaseFile
from fieldmark_tests.releases.download.server import Site, md5

CONTENT = random.Random(0).randbytes(3_000_000)
OTHER = random.Random(1).randbytes(3_000_000)


def fetch(site: Site, folder: Path, patience: Patience, *names: str, **known: object) -> Download:
    file = ReleaseFile("photos.bin", **known)  # type: ignore[arg-type]
    return download(file, folder / file.name, [f"{site.url}/{name}" for name in names or ("a",)], patience=patience)


def leave_partial(site: Site, folder: Path, patience: Patience, at: int, name: str = "a", **known: object) -> None:
    """An earlier attempt that broke off for good."""
    page = site[name]
    page.break_after = [at] + [0] * 10
    with pytest.raises(InputError):
        fetch(site, folder, patience, name, **known)
    page.break_after, page.sent, page.ranges = [], 0, []


def test_a_file_arrives_whole_and_alone(site: Site, tmp_path: Path, impatient: Patience) -> None:
    page = site.put("a", CONTENT)
    got = fetch(site, tmp_path, impatient, md5=md5(CONTENT), size=len(CONTENT))
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["photos.bin"]
    assert (got.received, got.resumed_from, got.basis) == (page.sent, 0, "md5")
    assert got.digest == f"md5:{md5(CONTENT)}"


def test_a_broken_connection_is_taken_up_where_it_broke(site: Site, tmp_path: Path, impatient: Patience) -> None:
    page = site.put("a", CONTENT, break_after=[1_200_000, 900_000])
    got = fetch(site, tmp_path, impatient)
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT
    assert page.ranges == [None, "bytes=1200000-", "bytes=2100000-"]
    assert got.received == page.sent == len(CONTENT)


def test_many_breaks_are_no_failure_as_long_as_it_gets_further(site: Site, tmp_path: Path) -> None:
    content = CONTENT * 3
    site.put("a", content, break_after=[1_100_000] * 8)
    fetch(site, tmp_path, Patience(timeout_s=1, tries=2, first_pause_s=0.001))
    assert (tmp_path / "photos.bin").read_bytes() == content


def test_a_server_that_always_breaks_is_given_up_and_the_part_is_kept(
    site: Site, tmp_path: Path, impatient: Patience
) -> None:
    site.put("a", CONTENT, break_after=[5000, *[0] * 20])
    with pytest.raises(InputError, match=r"broke off after 5,000 of 3,000,000 bytes \(tried 3 times\)"):
        fetch(site, tmp_path, impatient)
    assert (tmp_path / "photos.bin.partial").stat().st_size == 5000
    assert not (tmp_path / "photos.bin").exists()


def test_a_later_run_asks_only_for_the_rest(site: Site, tmp_path: Path, impatient: Patience) -> None:
    page = site.put("a", CONTENT)
    leave_partial(site, tmp_path, impatient, 2_000_000)
    got = fetch(site, tmp_path, impatient)
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT
    assert (page.sent, got.received, got.resumed_from) == (1_000_000, 1_000_000, 2_000_000)


def test_a_server_that_ignores_ranges_sends_it_all_again(site: Site, tmp_path: Path, impatient: Patience) -> None:
    page = site.put("a", CONTENT, honors_range=False, break_after=[1_000_000])
    got = fetch(site, tmp_path, impatient, md5=md5(CONTENT))
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT
    assert page.sent == 4_000_000
    assert got.resumed_from == 0


@pytest.mark.parametrize("checks_version", [True, False], ids=["If-Range honored", "If-Range ignored"])
@pytest.mark.parametrize("mark", ["etag", "last_modified"])
def test_a_file_that_changed_in_between_is_not_joined(
    site: Site, tmp_path: Path, impatient: Patience, mark: str, checks_version: bool
) -> None:
    marks = {"etag": None, "last_modified": None}
    page = site.put("a", CONTENT, checks_version=checks_version, **{**marks, mark: '"one"'})
    leave_partial(site, tmp_path, impatient, 1_000_000)
    page.content = OTHER
    setattr(page, mark, '"two"')
    fetch(site, tmp_path, impatient)
    assert (tmp_path / "photos.bin").read_bytes() == OTHER


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_version_mark_or_a_checksum_nothing_is_joined(
    site: Site, tmp_path: Path, impatient: Patience, etag: str | None
) -> None:
    page = site.put("a", CONTENT, etag=etag)
    leave_partial(site, tmp_path, impatient, 1_000_000)
    page.content = OTHER
    fetch(site, tmp_path, impatient)
    assert page.ranges == [None]
    assert (tmp_path / "photos.bin").read_bytes() == OTHER


def test_a_part_without_its_note_is_not_used(site: Site, tmp_path: Path, impatient: Patience) -> None:
    page = site.put("a", CONTENT)
    (tmp_path / "photos.bin.partial").write_bytes(OTHER[:1000])
    fetch(site, tmp_path, impatient)
    assert page.ranges == [None]
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT


def test_another_mirror_continues_where_a_checksum_will_judge(site: Site, tmp_path: Path, impatient: Patience) -> None:
    site.put("dying", CONTENT, break_after=[2_000_000, *[0] * 10])
    page = site.put("b", CONTENT, etag='"elsewhere"')
    got = fetch(site, tmp_path, impatient, "dying", "b", md5=md5(CONTENT))
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT
    assert page.sent == 1_000_000
    assert "dying broke off after 2,000,000" in got.remarks[0]


def test_a_bad_join_of_mirrors_is_fetched_once_more_from_the_start(
    site: Site, tmp_path: Path, impatient: Patience
) -> None:
    site.put("wrong", OTHER, break_after=[2_000_000, *[0] * 10])
    page = site.put("b", CONTENT)
    fetch(site, tmp_path, impatient, "wrong", "b", md5=md5(CONTENT))
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT
    assert page.ranges == ["bytes=2000000-", None]


def test_a_wrong_checksum_is_set_aside_and_the_next_mirror_asked(
    site: Site, tmp_path: Path, impatient: Patience
) -> None:
    site.put("wrong", OTHER)
    site.put("right", CONTENT)
    got = fetch(site, tmp_path, impatient, "wrong", "right", md5=md5(CONTENT))
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT
    assert (tmp_path / "photos.bin.bad").read_bytes() == OTHER
    assert f"gave the checksum md5:{md5(OTHER)}, expected md5:{md5(CONTENT)}" in got.remarks[0]


def test_each_mirror_that_fails_is_named_with_its_reason(site: Site, tmp_path: Path, impatient: Patience) -> None:
    site.put("forbidden", b"", status=403)
    site.put("login", b"<html>", content_type="text/html; charset=utf-8")
    site.put("small", b"x")
    with pytest.raises(InputError) as caught:
        fetch(site, tmp_path, impatient, "gone", "forbidden", "login", "small", size=3_000_000)
    sentence = str(caught.value)
    assert "/gone answered 404" in sentence
    assert "/forbidden answered 403" in sentence
    assert "/login gave a web page in place of the file" in sentence
    assert "/small has a file of 1 bytes, expected 3,000,000" in sentence
    assert not list(tmp_path.iterdir())


def test_a_busy_server_is_asked_again(site: Site, tmp_path: Path, impatient: Patience) -> None:
    site.put("a", CONTENT, statuses=[503, 429])
    fetch(site, tmp_path, impatient)
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT


def test_a_server_that_hangs_is_left(site: Site, tmp_path: Path) -> None:
    site.put("hangs", CONTENT, hang_s=30)
    site.put("b", CONTENT)
    began = time.monotonic()
    got = fetch(site, tmp_path, Patience(timeout_s=0.2, tries=2, first_pause_s=0.01), "hangs", "b")
    assert time.monotonic() - began < 5
    assert "did not answer in time (tried 2 times)" in got.remarks[0]


def test_a_host_that_is_gone_is_left_soon(site: Site, tmp_path: Path, impatient: Patience) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{unused.getsockname()[1]}/photos.bin"
    site.put("b", CONTENT)
    file = ReleaseFile("photos.bin")
    got = download(file, tmp_path / "photos.bin", [dead, f"{site.url}/b"], patience=impatient)
    assert "cannot be reached" in got.remarks[0]
    assert "(tried 2 times)" in got.remarks[0]


def test_a_server_that_announces_too_much_is_given_up(site: Site, tmp_path: Path, impatient: Patience) -> None:
    site.put("a", CONTENT, claimed_length=len(CONTENT) + 1)
    with pytest.raises(InputError, match=r"broke off|has fewer bytes"):
        fetch(site, tmp_path, impatient)
    assert not (tmp_path / "photos.bin").exists()


@pytest.mark.parametrize("known", [{"size": len(CONTENT)}, {"md5": md5(CONTENT)}], ids=["size", "checksum"])
def test_a_server_that_announces_too_little_is_noticed(
    site: Site, tmp_path: Path, impatient: Patience, known: dict[str, object]
) -> None:
    site.put("a", CONTENT, claimed_length=1_000_000)
    with pytest.raises(InputError, match="expected"):
        fetch(site, tmp_path, impatient, **known)
    assert not (tmp_path / "photos.bin").exists()


def test_a_cut_archive_is_noticed_without_any_published_fact(site: Site, tmp_path: Path, impatient: Patience) -> None:
    site.put("a", b"PK\x03\x04 and no end", claimed_length=10)
    with pytest.raises(InputError, match="not a whole archive, expected a zip file"):
        fetch(site, tmp_path, impatient, unpack="zip")
    assert (tmp_path / "photos.bin.bad").exists()


def test_a_chunked_answer_that_breaks_is_taken_up(site: Site, tmp_path: Path, impatient: Patience) -> None:
    site.put("a", CONTENT, chunked=True, break_after=[1_000_000], bytes_per_s=2e8)
    fetch(site, tmp_path, impatient)
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT


def test_a_redirect_is_followed_but_not_to_another_scheme(site: Site, tmp_path: Path, impatient: Patience) -> None:
    site.put("a", CONTENT)
    site.put("moved", b"", redirect="/a")
    site.put("away", b"", redirect="ftp://127.0.0.1/a")
    got = fetch(site, tmp_path, impatient, "away", "moved")
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT
    assert "leads from http to ftp" in got.remarks[0]


def test_only_web_addresses_are_mirrors(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    with pytest.raises(MisuseError, match="--found"):
        download(ReleaseFile("x"), tmp_path / "x", [(tmp_path / "secret").as_uri()])


def test_a_full_disk_is_told_before_the_download(
    site: Site, tmp_path: Path, impatient: Patience, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = site.put("a", CONTENT)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=2_000_000))
    with pytest.raises(InputError, match=r"found 2.0 MB free, expected about 3.0 MB for photos.bin"):
        fetch(site, tmp_path, impatient)
    assert not (tmp_path / "photos.bin.partial").exists()
    assert page.ranges == [None]


def test_a_killed_process_loses_nothing_that_had_arrived(site: Site, tmp_path: Path, impatient: Patience) -> None:
    site.put("a", CONTENT, bytes_per_s=4e6)
    program = (
        "import sys; from pathlib import Path; from fieldmark.releases.download.download import download;"
        "from fieldmark.releases.download.manifest import ReleaseFile;"
        "download(ReleaseFile('photos.bin'), Path(sys.argv[1]) / 'photos.bin', [sys.argv[2]])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), f"{site.url}/a"], env={**os.environ, "no_proxy": "*"}
    )
    partial = tmp_path / "photos.bin.partial"
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and not (partial.exists() and partial.stat().st_size > 500_000):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    arrived = partial.stat().st_size
    assert 500_000 < arrived < len(CONTENT)
    assert json.loads((tmp_path / "photos.bin.partial.json").read_text())["total"] == len(CONTENT)

    page = site.put("a", CONTENT)
    got = fetch(site, tmp_path, impatient)
    assert (tmp_path / "photos.bin").read_bytes() == CONTENT
    assert page.sent == got.received == len(CONTENT) - arrived
    assert page.ranges == [f"bytes={arrived}-"]
