"""Programs by `git push`: a repository for one push, in which git works within walls, and what comes out of it.

Each push meets an empty repository of its own, so that servers share nothing and nobody reads what others pushed. What
arrives is read by `git http-backend`, walled in and with limits; there are no hooks. The commit at the head of a branch
is then packed as an archive and submitted as any other: `main` as a submission, `debug` as a debug run.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fieldmark.sandbox.bubblewrap import bubblewrap, environment, wall
from fieldmark.web.refusals import BusyError, ConflictError, RefusalError
from fieldmark_challenge.submissions.archives import MOST_FILES, MOST_MB

MIB = 1 << 20
REPOSITORY = "program.git"
MAIN, DEBUG = "refs/heads/main", "refs/heads/debug"
SERVICE, FETCHING = "git-receive-pack", "git-upload-pack"
# What git may take for one push: something for any, and more for each MiB that was sent.
MEMORY_MB, CPU_S, CPU_S_PER_MIB, MOST_CPU_S = 2048, 10, 1, 120
SLOWNESS = 3  # how much longer than its processor time it may take on a busy machine
LISTING_MB = 8  # what the list of a program's files may take, of which there are at most `archives.MOST_FILES`
CONFIG = """[core]
\trepositoryformatversion = 0
\tbare = true
\thooksPath = /dev/null
\tbigFileThreshold = 32m
[http]
\treceivepack = true
[receive]
\tfsckObjects = true
\tunpackLimit = 1
\tautogc = false
\tmaxInputSize = {most}
[gc]
\tauto = 0
[pack]
\tthreads = 1
\twindowMemory = 64m
"""
# How a commit says what a form asks for.
ABOUT = "%s%n%(trailers:key=External-Data,valueonly,separator=%x20)%n%b"


NONE = ("none", "no")
UNDECLARED = (
    "Say in the last lines of the commit message which external data were used, pretrained weights included: "
    "'External-Data: none', or which ones (git commit --trailer 'External-Data: none')."
)


class PushRefusedError(RefusalError):
    """A push that git itself did not take."""

    status = 422


@dataclass(frozen=True)
class Commit:
    """What was pushed to a branch: an archive, and what its message says."""

    number: str
    archive: Path
    title: str
    external: str
    method: str


def need_git() -> None:
    """Refuses pushes where git or its walls are missing.

    Raises:
        ConflictError: Says what is missing.
    """
    if shutil.which("git") is None or bubblewrap() is None:
        raise ConflictError("This server takes no pushes: git or bubblewrap is missing on it. Submit an archive.")


def make_repository(folder: Path, most_mb: int) -> None:
    """An empty repository in a folder, written by hand: nothing of it comes from a template."""
    home = folder / REPOSITORY
    for name in ("objects/info", "objects/pack", "refs/heads"):
        (home / name).mkdir(parents=True)
    (home / "HEAD").write_text(f"ref: {MAIN}\n", encoding="utf-8")
    (home / "config").write_text(CONFIG.format(most=most_mb * MIB), encoding="utf-8")


def advertisement(folder: Path) -> bytes:
    """What git tells those who want to push."""
    asked = {"REQUEST_METHOD": "GET", "PATH_INFO": f"/{REPOSITORY}/info/refs", "QUERY_STRING": f"service={SERVICE}"}
    return _body(_backend(folder, asked, None, 1))


def receive(folder: Path, request: Path, most_mb: int) -> bytes:
    """Has git take a push into the repository of a folder; what it answers.

    Raises:
        PushRefusedError: When what arrived is no push.
    """
    asked = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": f"/{REPOSITORY}/{SERVICE}",
        "CONTENT_TYPE": f"application/x-{SERVICE}-request",
        "CONTENT_LENGTH": str(request.stat().st_size),
    }
    return _body(_backend(folder, asked, request, most_mb + 16))


def branches(folder: Path) -> dict[str, str]:
    """What was pushed: the commit of each branch by its name."""
    said = _git(folder, ["for-each-ref", "--format=%(objectname) %(refname)"], 1)
    return {name: number for number, _, name in (line.partition(" ") for line in _text(said).splitlines())}


def commit_at(folder: Path, branch: str, number: str, most_mb: int) -> Commit:
    """The commit at the head of a branch, packed.

    Raises:
        PushRefusedError: When it is larger than an archive may be.
    """
    _need_bounds(folder, branch)
    archive = folder / "archive.tar.gz"
    _git(folder, ["archive", "--format=tar.gz", "-o", str(archive), branch], most_mb)
    title, _, rest = _text(_git(folder, ["log", "-1", f"--format={ABOUT}", branch], 1)).partition("\n")
    external, _, method = rest.partition("\n")
    return Commit(number, archive, title.strip()[:120], external.strip()[:1000], method.strip()[:5000])


def declared(commit: Commit) -> str:
    """Which external data a commit declares, empty for none.

    Raises:
        PushRefusedError: When it says nothing about them.
    """
    if not commit.external:
        raise PushRefusedError(UNDECLARED)
    return "" if commit.external.lower().rstrip(".") in NONE else commit.external


def _need_bounds(folder: Path, branch: str) -> None:
    """Refuses a commit with more files, or larger ones, than a program may have, before anything is packed.

    A few small trees that hold each other many times over are billions of files when they are written out.

    Raises:
        PushRefusedError: Says what there is too much of.
    """
    try:
        listed = _git(folder, ["ls-tree", "-r", "-t", "-l", "-z", branch], LISTING_MB)
    except PushRefusedError as error:
        most = f"{MOST_FILES:,} files and folders"
        raise PushRefusedError(f"The commit cannot be listed, or holds more than {most}.") from error
    entries = listed.split(b"\0")[:-1]
    if len(entries) > MOST_FILES:
        raise PushRefusedError(f"The commit holds {len(entries):,} files and folders, expected at most {MOST_FILES:,}.")
    sizes = [entry.partition(b"\t")[0].split()[-1] for entry in entries]
    size = sum(int(one) for one in sizes if one.isdigit())
    if size > MOST_MB * MIB:
        raise PushRefusedError(f"The commit holds {size >> 20:,} MiB, expected at most {MOST_MB:,}.")


def _backend(folder: Path, asked: Mapping[str, str], request: Path | None, most_mb: int) -> bytes:
    given = {"GIT_PROJECT_ROOT": str(folder), "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "team", **asked}
    return _git(folder, ["http-backend"], most_mb, given, request)


def _git(
    folder: Path,
    command: Sequence[str],
    most_mb: int,
    given: Mapping[str, str] | None = None,
    request: Path | None = None,
) -> bytes:
    """Runs git on the repository of a folder, within walls and limits; what it said.

    Raises:
        PushRefusedError: When it failed, which is the fault of what was pushed.
        BusyError: When it took too long.
    """
    program = bubblewrap()
    if program is None:
        raise ConflictError("This server takes no pushes: bubblewrap does not work on it.")
    sent = (folder / "request").stat().st_size // MIB if (folder / "request").exists() else 0
    cpu_s = min(CPU_S + CPU_S_PER_MIB * sent, MOST_CPU_S)
    limits = [f"--as={MEMORY_MB * MIB}", f"--fsize={most_mb * MIB}", f"--cpu={cpu_s}", "--core=0", "--nofile=256"]
    whole = ["prlimit", *limits, *wall(program, folder), "git", "--git-dir", str(folder / REPOSITORY), *command]
    known = environment(folder) | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    known |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    answer, complaint = folder / "answer", folder / "complaint"
    with answer.open("wb") as sink, complaint.open("wb") as errors, (request or Path(os.devnull)).open("rb") as source:
        process = subprocess.Popen(
            whole,
            stdin=source,
            stdout=sink,
            stderr=errors,
            env={**known, **(given or {})},
            cwd=folder,
            start_new_session=True,
        )
        try:
            ended = process.wait(SLOWNESS * cpu_s)
        except subprocess.TimeoutExpired as error:
            raise BusyError("The push took too long to read. Try again later, or submit an archive.") from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if ended != 0:
        said = _text(complaint.read_bytes()[-400:]).strip().splitlines()
        raise PushRefusedError(f"git could not read the push: {said[-1][:200] if said else f'exit status {ended}'}")
    with answer.open("rb") as file:
        return file.read(LISTING_MB * MIB)


def _body(answer: bytes) -> bytes:
    """The body of what a CGI program answered.

    Raises:
        PushRefusedError: When it says that something is wrong.
    """
    head, _, body = answer.partition(b"\r\n\r\n")
    status = [line for line in head.split(b"\r\n") if line.lower().startswith(b"status:")]
    if status:
        raise PushRefusedError(f"git did not take the push:{_text(status[0]).partition(':')[2][:100]}")
    return body


def _text(said: bytes) -> str:
    return said.decode("utf-8", "replace").replace("\0", "")


def line_of(data: bytes) -> bytes:
    """A line as git frames it: its length in front.

    >>> line_of(b"hello")
    b'0009hello'
    """
    return f"{len(data) + 4:04x}".encode() + data


def remark(*sentences: str) -> bytes:
    """Sentences that git shows to the one who pushes."""
    return b"".join(line_of(b"\x02" + sentence.encode()[:900] + b"\n") for sentence in sentences)


def refusal(sentence: str, service: str = SERVICE) -> bytes:
    """What is told to somebody who wants to push, or to fetch, and may not."""
    return line_of(f"# service={service}\n".encode()) + b"0000" + line_of(b"ERR " + sentence.encode()[:900])


def report(answer: bytes, outcomes: Mapping[str, str]) -> bytes:
    """What became of each branch: taken, or why not; framed as git framed its own answer."""
    lines = [b"unpack ok\n"]
    for branch, reason in outcomes.items():
        said = " ".join(reason.split())[:400]
        lines.append(f"ng {branch} {said}\n".encode() if reason else f"ok {branch}\n".encode())
    inner = b"".join(map(line_of, lines)) + b"0000"
    return line_of(b"\x01" + inner) + b"0000" if answer[4:5] in (b"\x01", b"\x02") else inner
