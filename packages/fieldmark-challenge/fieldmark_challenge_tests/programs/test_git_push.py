"""Programs by `git push`, with the real git on both sides."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fieldmark.sandbox.bubblewrap import bubblewrap
from fieldmark_challenge.people import accounts
from fieldmark_challenge.programs.git_push import REPOSITORY, make_repository
from fieldmark_challenge.records.code_schema import CodeTask, Program
from fieldmark_challenge.records.schema import Submission
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.listening import listening
from fieldmark_challenge_tests.platform import Platform
from fieldmark_challenge_tests.programs.test_program_queue import ask_for_programs
from fieldmark_tests.system_programs import absent

WHO = {"GIT_AUTHOR_NAME": "ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
WHO |= {"GIT_COMMITTER_NAME": "ada", "GIT_COMMITTER_EMAIL": "ada@example.org"}


class Repository:
    """A repository of a participant."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        folder.mkdir()
        self.git("init", "--quiet", "-b", "main")

    def git(self, *command: str) -> subprocess.CompletedProcess[str]:
        plain = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_TERMINAL_PROMPT": "0", **WHO}
        return subprocess.run(
            ["git", *command], cwd=self.folder, env=plain, capture_output=True, text=True, check=False
        )

    def commit(self, message: str = "A first program\n\nExternal-Data: none", **files: str) -> str:
        for name, content in files.items():
            (self.folder / name.replace("__", ".")).write_text(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").stdout.strip()

    def push(self, branch: str = "main", address: str | None = None) -> str:
        done = self.git("push", address or self.address, f"HEAD:{branch}")
        return f"{done.returncode} {done.stderr}"


@pytest.fixture
def platform_url(small_platform: Platform) -> Iterator[str]:
    if shutil.which("git") is None or bubblewrap() is None:
        absent("there is no git or no bubblewrap on this machine")
    ask_for_programs(small_platform)
    app = create_app(small_platform.database, small_platform.storage)
    with listening(app) as port:
        yield f"127.0.0.1:{port}"


@pytest.fixture
def repository(small_platform: Platform, platform_url: str, tmp_path: Path) -> Repository:
    token = accounts.make_token(small_platform.database, small_platform.captain("ada"), "git", ["submit"])
    return Repository(tmp_path / "mine", f"http://ada:{token}@{platform_url}/api/v1/challenges/tiny/program.git")


def submissions(platform: Platform) -> list[Submission]:
    with platform.database.read() as session:
        return session.query(Submission).filter(Submission.phase_id.is_not(None)).order_by(Submission.id).all()


def test_a_push_to_main_is_a_submission_and_one_commit_is_one(small_platform: Platform, repository: Repository):
    number = repository.commit("Two views\n\nViT-L.\n\nExternal-Data: iNaturalist 2021", run__sh="echo hello")
    said = repository.push()
    assert said.startswith("0 ") and "Submission " in said and "/c/tiny/submissions/" in said, said
    (handed_in,) = submissions(small_platform)
    assert (handed_in.title, handed_in.external_note, handed_in.counted) == ("Two views", "iNaturalist 2021", True)
    with small_platform.database.read() as session:
        program = session.query(Program).one()
        assert program.submission_id == handed_in.id and program.filename == f"{number[:12]}.tar.gz"
        packed = small_platform.storage.fetch(program.path, small_platform.folder / "packed.tar.gz")
    listed = subprocess.run(["tar", "-tzf", str(packed)], capture_output=True, text=True, check=True).stdout
    assert listed == "run.sh\n"
    again = repository.push()
    assert "submitted before" in again and len(submissions(small_platform)) == 1, again
    repository.commit("Another\n\nExternal-Data: none", run__sh="echo hello again")
    assert repository.push().startswith("0 ") and len(submissions(small_platform)) == 2
    tried = repository.push("debug")
    assert tried.startswith("0 ") and "Debug run" in tried and len(submissions(small_platform)) == 2


def test_what_is_not_taken_is_said_where_the_push_was_made(
    small_platform: Platform, repository: Repository, platform_url
):
    repository.commit("It says nothing about external data", readme="no program here")
    said = repository.push()
    assert said.startswith("1 ") and "External-Data: none" in " ".join(said.replace("remote:", "").split()), said
    repository.commit(readme="no program here")
    for branch, why in (("main", "The archive holds no run.sh"), ("other", "push to main")):
        said = repository.push(branch)
        assert said.startswith("1 ") and why in said, said
    (repository.folder / "link").symlink_to("/etc/passwd")
    repository.commit(run__sh="cat link")
    said = repository.push()
    assert said.startswith("1 ") and "a link, 'link' to '/etc/passwd'" in said, said
    wrong = repository.push(address=f"http://ada:fm_wrong@{platform_url}/api/v1/challenges/tiny/program.git")
    assert wrong.startswith("128 ") and "Authentication failed" in wrong, wrong
    fetched = repository.git("ls-remote", repository.address)
    assert "Only pushes are taken here" in fetched.stderr, fetched.stderr
    stranger = accounts.make_token(small_platform.database, small_platform.person("bob"), "git", ["submit"])
    alone = repository.push(address=f"http://bob:{stranger}@{platform_url}/api/v1/challenges/tiny/program.git")
    assert "Accept the rules" in alone, alone
    assert submissions(small_platform) == []


def test_a_push_that_is_too_large_or_malformed_is_not_taken(small_platform: Platform, repository: Repository):
    with small_platform.database.write() as session:
        session.query(CodeTask).one().archive_mb = 1
    (repository.folder / "weights").write_bytes(os.urandom(3 << 20))
    repository.commit(run__sh="echo hello")
    said = repository.push()
    assert not said.startswith("0 ") and submissions(small_platform) == [], said
    address = repository.address + "/git-receive-pack"
    for body in (b"", b"0000", b"zzzz", b"0010\x00\xff garbage", os.urandom(5000)):
        answer = httpx.post(address, content=body, headers={"content-type": "application/x-git-receive-pack-request"})
        assert answer.status_code < 500, (body[:10], answer.text)
    assert submissions(small_platform) == []


def test_the_repository_of_a_push_has_no_hooks(tmp_path):
    make_repository(tmp_path, 1)
    assert not (tmp_path / REPOSITORY / "hooks").exists()
    assert "hooksPath = /dev/null" in (tmp_path / REPOSITORY / "config").read_text()
