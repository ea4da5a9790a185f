"""Attacks through uploads: on everybody's time and memory, on room that others need, and on one's own last step."""

from __future__ import annotations

import asyncio
import gzip
import io
import lzma
import os
import selectors
import shutil
import socket
import subprocess
import tarfile
import threading
import time
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from fieldmark.sandbox.bubblewrap import bubblewrap
from fieldmark.storage.archives import BLOCK, ArchiveFaultError, ArchiveRules, kind_of, members
from fieldmark_challenge.people import accounts
from fieldmark_challenge.programs import git_push, unpack_job
from fieldmark_challenge.programs.git_push import REPOSITORY, PushRefusedError
from fieldmark_challenge.programs.intake import check_archive
from fieldmark_challenge.records.schema import Challenge, Submission
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.submissions import partial_uploads, uploads
from fieldmark_challenge.submissions.archives import ArchiveRefusedError
from fieldmark_challenge.submissions.uploads import received
from fieldmark_challenge.web.lanes import ARRIVING_EACH, AT_ONCE, UploadLane
from fieldmark_challenge_tests.listening import listening
from fieldmark_challenge_tests.platform import Platform, run_text
from fieldmark_challenge_tests.programs.programs import archive_of
from fieldmark_challenge_tests.submissions.test_partial_uploads import PART, RUN, Sender
from fieldmark_challenge_tests.submissions.test_submissions import parallel
from fieldmark_tests.system_programs import absent

SUBMIT = "/api/v1/challenges/plain/submissions"


def plain(platform: Platform) -> Challenge:
    with platform.database.read() as session:
        return session.query(Challenge).filter_by(slug="plain").one()


def in_plain(platform: Platform, name: str) -> dict[str, str]:
    """Somebody with a team in the challenge that asks for runs; the header of their token."""
    token = accounts.make_token(platform.database, platform.captain(name, plain(platform)), "shell", accounts.SCOPES)
    return {"authorization": f"Bearer {token}"}


@cache
def endless_run() -> bytes:
    """Many millions of lines in a few hundred kilobytes."""
    return gzip.compress(b"id,predicted\n" + b"i0,a\n" * (12 << 20))


def test_small_files_that_take_long_are_ended_and_nobody_waits_for_all_of_them(attacked: Platform, monkeypatch):
    """Two gzip files of a few hundred kilobytes, each a run of many millions of lines, kept both checkers busy."""
    monkeypatch.setattr(uploads, "CPU_S", 1)
    bomb = endless_run()
    assert len(bomb) < 260_000
    eve, ada = in_plain(attacked, "slow"), in_plain(attacked, "patient")
    with TestClient(create_app(attacked.database, attacked.storage)) as client, ThreadPoolExecutor(4) as people:
        ended: list[str] = []

        def send(headers: dict[str, str], content: bytes, who: str) -> int:
            answer = client.post(SUBMIT, data={"external": "no"}, files={"run": ("run.csv", content)}, headers=headers)
            ended.append(who)
            return answer.status_code

        theirs = [people.submit(send, eve, bomb, "eve") for _ in range(2)]
        while client.app.state.uploads.inside < 2:
            time.sleep(0.01)
        assert people.submit(send, ada, run_text().encode(), "ada").result() == 201
        assert ended.index("ada") <= 1  # before the second of hers was looked at
        assert [one.result() for one in theirs] == [422] * 2


def test_uploads_of_one_person_are_worked_on_one_at_a_time_and_people_take_turns():
    lane, order, busy, most = UploadLane(), list[str](), dict[str, int](), dict[str, int]()
    lock, go_on = threading.Lock(), threading.Event()

    def work(who: str) -> None:
        with lock:
            order.append(who)
            busy[who] = busy.get(who, 0) + 1
            most[who] = max(most.get(who, 0), busy[who])
        assert go_on.wait(60)
        with lock:
            busy[who] -= 1

    async def all_at_once() -> list[object]:
        sent = ["eve"] * 10 + ["ada", "ben", "cyd", "dan"]
        jobs = [asyncio.ensure_future(lane.run(who, work, who)) for who in sent]
        while len(order) < AT_ONCE:
            await asyncio.sleep(0.01)
        assert sorted(order) == ["ada", "ben", "cyd", "eve"]
        go_on.set()
        return await asyncio.gather(*jobs)

    asyncio.run(all_at_once())
    assert most == dict.fromkeys(["eve", "ada", "ben", "cyd", "dan"], 1)
    assert order.index("dan") <= AT_ONCE and order.count("eve") == 10  # who was not served yet goes first
    lane.close()


def test_uploads_of_one_person_that_arrive_all_at_once_do_not_take_the_room_of_others(attacked: Platform):
    """Each may be as large as the challenge takes, and lies on the disk of the server until it has arrived."""
    eve, ada = in_plain(attacked, "flooding"), in_plain(attacked, "unhurried")
    app, more = create_app(attacked.database, attacked.storage), 3
    with listening(app, patient=False) as port, ExitStack() as open_ones, selectors.DefaultSelector() as answered:
        for _ in range(ARRIVING_EACH + more):
            sender = open_ones.enter_context(socket.create_connection(("127.0.0.1", port)))
            head = {"host": "x", "content-type": "multipart/form-data; boundary=b", "content-length": "1000000", **eve}
            lines = [f"POST {SUBMIT} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", "--b"]
            sender.sendall("\r\n".join(lines).encode())
            answered.register(sender, selectors.EVENT_READ)
        refused = []
        while len(refused) < more:
            for key, _ in answered.select(60):
                answered.unregister(key.fileobj)
                refused.append(key.fileobj.recv(100).split()[1])
        assert refused == [b"503"] * more and not answered.select(0.2)
        files, said = {"run": ("run.csv", run_text())}, {"external": "no"}
        url = f"http://127.0.0.1:{port}{SUBMIT}"
        assert httpx.post(url, files=files, data=said, headers=ada, timeout=60).status_code == 201
        open_ones.close()  # what has hung up is on its way no more
        while (late := httpx.post(url, files=files, data=said, headers=eve, timeout=60)).status_code == 503:
            time.sleep(0.05)
        assert late.status_code == 201, late.text


def test_a_commit_of_a_few_small_trees_that_would_be_billions_of_files_is_refused_at_once(tmp_path: Path):
    if shutil.which("git") is None or bubblewrap() is None:
        absent("there is no git or no bubblewrap on this machine")
    git_push.make_repository(tmp_path, 4)

    def git(*words: str, given: str = "") -> str:
        who = {
            "GIT_AUTHOR_NAME": "e",
            "GIT_AUTHOR_EMAIL": "e@e",
            "GIT_COMMITTER_NAME": "e",
            "GIT_COMMITTER_EMAIL": "e@e",
        }
        command = ["git", "--git-dir", str(tmp_path / REPOSITORY), *words]
        told = {**os.environ, **who}
        return subprocess.run(command, input=given, text=True, check=True, capture_output=True, env=told).stdout.strip()

    tree = git("mktree", given=f"100644 blob {git('hash-object', '-w', '--stdin', given='x')}\trun.sh\n")
    for _ in range(10):  # 16 to the tenth
        tree = git("mktree", given="".join(f"040000 tree {tree}\tfolder-{place:02}\n" for place in range(16)))
    git("update-ref", git_push.MAIN, git("commit-tree", tree, "-m", "a bomb"))
    begun = time.monotonic()
    with pytest.raises(PushRefusedError, match="files and folders"):
        git_push.commit_at(tmp_path, git_push.MAIN, "0" * 40, 4)
    assert time.monotonic() - begun < git_push.SLOWNESS * git_push.CPU_S


def wide_xz(content: bytes, dictionary: int = 39) -> bytes:
    """An xz file that asks for a dictionary of 3 GiB, whatever is in it."""
    packed = bytearray(lzma.compress(content))
    start, size = 12, (packed[12] + 1) * 4  # the header of the first block, which ends with its checksum
    place = packed.index(b"\x21\x01", start, start + size) + 2
    packed[place] = dictionary
    packed[start + size - 4 : start + size] = zlib.crc32(packed[start : start + size - 4]).to_bytes(4, "little")
    return bytes(packed)


def tar_of(name: str, content: bytes = b"echo") -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return sink.getvalue()


def test_an_archive_that_asks_for_gibibytes_of_dictionary_is_refused_where_it_is_checked(attacked: Platform, tmp_path):
    wide = wide_xz(tar_of("run.sh"))
    assert len(wide) < 300
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("run.sh", "echo")
    for content, said in ((wide, "256 MiB of memory"), (zipped.getvalue(), "compressed by LZMA")):
        packed = received(io.BytesIO(content), "team.tar.xz", limit_mb=1)
        with packed as upload, pytest.raises(ArchiveRefusedError, match=said):
            check_archive(attacked.challenge, upload)
    (tmp_path / "archive").write_bytes(wide)
    (tmp_path / "out").mkdir()
    with pytest.raises(ArchiveFaultError):
        kind_of(tmp_path / "archive")
    with pytest.raises(ArchiveRefusedError, match="256 MiB"):  # and where it is unpacked, in case it came that far
        unpack_job.unpack(tmp_path / "archive", tmp_path / "out")


def test_honest_xz_archives_are_read_as_before(tmp_path: Path):
    path, content = tmp_path / "archive", tar_of("run.sh", os.urandom(BLOCK + 1000))
    packed = lzma.compress(content[:512], preset=0) + lzma.compress(content[512:], preset=0)
    another = lzma.compress(b"more")
    for more in (b"", b"\0" * 8, another, b"\0" * 4 + another, b"junk"):  # as LZMAFile reads it
        path.write_bytes(packed + more)
        assert kind_of(path) == "tar"
        sink = io.BytesIO()
        with members(path, "tar", ArchiveRules(16 << 20, 10)) as inside:
            for member in inside:
                member.copy(sink)
        assert sink.getvalue() in content and len(sink.getvalue()) == BLOCK + 1000
    for broken in (packed[:-20], packed[:500], b"\xfd7zXZ\0" + os.urandom(500)):
        path.write_bytes(broken)
        with pytest.raises(ArchiveFaultError), members(path, "tar", ArchiveRules(16 << 20, 10)) as inside:
            for member in inside:
                member.copy(None)


def test_ten_who_finish_an_upload_at_once_all_get_its_submission(attacked: Platform, monkeypatch):
    monkeypatch.setattr(
        "fieldmark_challenge_tests.submissions.test_partial_uploads.BASE", "/api/v1/challenges/plain/uploads"
    )
    user = attacked.captain("hasty", plain(attacked))
    servers = [Sender(attacked, "hasty", create_app(attacked.database, attacked.storage)) for _ in range(2)]
    upload = servers[0].begin().json()["id"]
    servers[0].send_all(upload)
    answers = parallel(10, lambda place: servers[place % 2].finish(upload))
    assert [answer.status_code for answer in answers] == [201] * 10, [answer.text for answer in answers]
    assert len({answer.json()["id"] for answer in answers}) == 1
    with attacked.database.read() as session:
        assert session.query(Submission).filter_by(user_id=user.id).count() == 1


class Slow(Storage):
    """A store whose parts are read after another request has finished the upload."""

    meanwhile = None

    def chunks(self, path: str):
        if path.startswith("parts/") and self.meanwhile:
            act, self.meanwhile = self.meanwhile, None
            act()
        yield from super().chunks(path)


@pytest.mark.parametrize("what", ["finish", "debug"])
def test_an_upload_whose_parts_vanish_because_it_is_finished_is_not_sent_again(attacked: Platform, monkeypatch, what):
    slug = "plain" if what == "finish" else "tiny"
    base = f"/api/v1/challenges/{slug}/uploads"
    monkeypatch.setattr("fieldmark_challenge_tests.submissions.test_partial_uploads.BASE", base)
    name, where = f"vanishing {what}", plain(attacked) if what == "finish" else attacked.challenge
    attacked.captain(name, where)
    store = Slow(attacked.storage.root)
    slow = Sender(attacked, name, create_app(attacked.database, store))
    quick = Sender(attacked, name, create_app(attacked.database, attacked.storage))
    content = RUN if what == "finish" else archive_of("print('hello')")
    upload = quick.begin(content).json()["id"]
    quick.send_all(upload, content)
    answers, said = [], {"external": "no"} if what == "finish" else None
    store.meanwhile = lambda: answers.append(quick.client.post(f"{base}/{upload}/{what}", data=said))
    answers.append(slow.client.post(f"{base}/{upload}/{what}", data=said))
    assert [answer.status_code for answer in answers] == [201, 201], [answer.text for answer in answers]
    assert answers[0].json()["id"] == answers[1].json()["id"]


def test_uploads_that_are_only_announced_keep_nobody_out(attacked: Platform, monkeypatch):
    monkeypatch.setattr(
        "fieldmark_challenge_tests.submissions.test_partial_uploads.BASE", "/api/v1/challenges/plain/uploads"
    )
    monkeypatch.setattr(partial_uploads, "ALL_UNFINISHED_MB", 64)
    app = create_app(attacked.database, attacked.storage)
    for name in ("boaster", "braggart"):
        attacked.captain(name, plain(attacked))
    boaster, braggart = Sender(attacked, "boaster", app), Sender(attacked, "braggart", app)
    for sender in (boaster, braggart):
        assert sender.begin(size=60 << 20).status_code == 201
    attacked.captain("modest", plain(attacked))
    modest = Sender(attacked, "modest", app)
    upload = modest.begin().json()["id"]
    assert modest.send(upload, 0, RUN[:PART]).status_code == 204
