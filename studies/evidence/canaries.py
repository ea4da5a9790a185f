"""Labels that nobody may see: are they in anything that a participant is shown?

One item in three has a label of its own, which no run names. The list of labels is public (`labels.csv`, and with it
the sample run and the starter kit); anywhere else such a name could only come from the truth. The names of the
independent units are the truth's alone. A team hands in hundreds of damaged files and runs that get better and better;
whatever page, answer or download it then gets is searched for those names, with the lines of the sample run, which are
drawn, taken out. So is what every address of the platform answers to this team, to another one and to a visitor, with
the headers, and so are all lines of the log, the mails that are sent, and the export of one's own data.
"""

from __future__ import annotations

import io
import logging
import random
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from fastapi import FastAPI
from starlette.testclient import TestClient

from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.lifecycle.creation import NewChallenge, create_challenge, material_of_files
from fieldmark_challenge.mail import notices, outbox
from fieldmark_challenge.mail.messages import write_letter
from fieldmark_challenge.operations.log_lines import JsonLines
from fieldmark_challenge.people import accounts, rates, teams
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.mail_schema import OutgoingMail
from fieldmark_challenge.records.schema import DataFile, Submission
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring import worker
from fieldmark_challenge.scoring.scoring_job import score_into
from fieldmark_challenge.scoring.scoring_process import Outcome, score_in_sandbox, written_outcome
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.site.routes_table import all_routes
from studies.evidence.fuzzing import damaged

BENCHMARK = "folder"
BAD_FILES, RISING, ITEMS = 1000, 12, 120
PASSWORD = "correct horse battery"
LABELS = tuple(f"species{number}" for number in range(4))
CANARIES = ("Canariella", "zebraunit")
PAGES = (
    "", "/board", "/data", "/team", "/submit", "/submissions", "/compare", "/board.csv", "/board.json"
)  # fmt: skip
PUBLIC_LISTS = ("downloads", "starter kit")
PUBLIC_LIST = re.compile(r"/data/\d+$|/starter-kit\.zip$")
PEOPLE = ("ada", "bob")  # the team that hands in, and another one
ANSWERS = ("", "/board", "/data", "/quota", "/submissions")


def truth_rows() -> list[tuple[str, str, str]]:
    """Items with label and unit; one in three has a label of its own, whose number says nothing."""
    numbers = random.Random(1).sample(range(1000, 10_000), ITEMS)
    return [
        (
            f"p{number}",
            f"Canariella{numbers[number]}" if number % 3 == 0 else LABELS[number % 4],
            f"zebraunit{number // 2}",
        )
        for number in range(ITEMS)
    ]


def truth_text() -> str:
    """The truth as a file."""
    return "id,label,unit\n" + "".join(",".join(row) + "\n" for row in truth_rows())


def run_file(right: int, rng: random.Random) -> bytes:
    """A run with more and more items right, of those whose labels everybody uses."""
    lines = ["id,predicted"]
    for number, (item, label, _) in enumerate(truth_rows()):
        lines.append(f"{item},{label if number < right and label in LABELS else rng.choice(LABELS)}")
    return ("\n".join(lines) + "\n").encode()


@dataclass
class Search:
    """Texts that were searched for the names, and what was found in them."""

    texts: Counter[str] = field(default_factory=Counter)
    leaks: list[str] = field(default_factory=list)
    samples: list[bytes] = field(default_factory=list)

    def __call__(self, where: str, content: bytes) -> None:
        """Searches one of them."""
        self.texts[where.partition(": ")[0]] += 1
        for piece in _unpacked(content):
            for line in self.samples:
                piece = piece.replace(line, b"")
            names = CANARIES[1:] if where.startswith(PUBLIC_LISTS) else CANARIES
            self.leaks.extend(f"{where}: {name}" for name in names if name.encode() in piece)


def looked_for(
    folder: Path, url: str | None = None, bad_files: int = BAD_FILES, rising: int = RISING, seed: int = 0
) -> dict[str, Any]:
    """How many texts were searched, and in how many a name was found.

    Args:
        folder: Where the platform lies.
        url: Its database; SQLite if not given.
        bad_files: How many damaged files are handed in.
        rising: How many runs that get better and better. Where there are none, what passed of the damaged files is
            scored by this process, since starting one takes longer than all else.
        seed: How the files are damaged.
    """
    database = Database(url or f"sqlite:///{folder / 'platform.sqlite'}")
    storage = Storage(folder / "files")
    database.migrate()
    search, rng = Search(), random.Random(seed)
    tokens = _hosted(database, storage, folder)
    headers = {"authorization": f"Bearer {tokens['ada']}"}
    scored = score_in_sandbox if rising else _score_here
    app = create_app(database, storage)
    with (
        _listening() as lines,
        TestClient(app) as client,  # a fault of ours ends the study
        mock.patch.object(rates, "count", lambda *_, **__: None),
        mock.patch.object(worker, "score_in_sandbox", scored),
    ):
        outbox.switch(database, True)  # a server without mail has turned it off
        statuses = _hand_in(client, headers, _runs(bad_files, rising, rng), search)
        scorer = worker.Worker(database, storage)
        while scorer.run_one():
            pass
        client.cookies.set(SESSION_COOKIE, accounts.sign_in(database, "ada", PASSWORD)[1])
        sample = _files(client, headers)["sample_run.csv"]
        search.samples += sample.splitlines()[1:]
        for where, content in _shown(client, headers):
            search(where, content)
        for where, content in _anywhere(app, database, tokens):
            search(where, content)
        for letter in _letters(database):
            search("mails", letter)
        listed = client.get("/api/v1/challenges/open/submissions", headers=headers).json()
    for line in lines.said:
        search("lines of the log", line.encode())
    database.close()
    return {
        "bad_files": bad_files,
        "rising_runs": rising,
        "statuses": dict(sorted(statuses.items())),
        "scored": sum(run["state"] == "scored" for run in listed),
        "texts": dict(sorted(search.texts.items())),
        "leaks": search.leaks[:20],
        "sample_run": _chance_hits(sample),
    }


def _hosted(database: Database, storage: Storage, folder: Path) -> dict[str, str]:
    """The challenge, and two teams; the tokens of their captains."""
    admin = accounts.register(database, "admin", "admin@example.org", PASSWORD, role="admin")
    (folder / "truth.csv").write_text(truth_text())
    with material_of_files(BENCHMARK, folder / "truth.csv", simulated=True) as material:
        new = NewChallenge("open", BENCHMARK, public_share=0.5, seed=0, daily_limit=20_000, total_limit=20_000)
        challenge = create_challenge(database, storage, admin, new, material)
    tokens = {}
    for name in PEOPLE:
        user = accounts.register(database, name, f"{name}@example.org", PASSWORD, verified=True)
        teams.accept_rules(database, user, challenge)
        teams.make_team(database, user, challenge, f"team {name}")
        tokens[name] = accounts.make_token(database, user, "shell", ["read", "submit"])
    return tokens


def _runs(bad_files: int, rising: int, rng: random.Random) -> Iterator[bytes]:
    """What is handed in."""
    whole = run_file(ITEMS // 2, rng)
    for _ in range(bad_files):
        yield damaged(whole, rng)
    for step in range(rising):
        yield run_file((step + 1) * ITEMS // rising, rng)


def _hand_in(client: TestClient, headers: dict[str, str], runs: Iterator[bytes], search: Search) -> Counter[str]:
    """How often each status was the answer."""
    statuses: Counter[str] = Counter()
    for content in runs:
        files, form = {"run": ("run.csv", content)}, {"external": "no"}
        answer = client.post("/api/v1/challenges/open/submissions", headers=headers, files=files, data=form)
        statuses[str(answer.status_code)] += 1
        search("answers to uploads", answer.content)
    return statuses


def _score_here(folder: Path, benchmark: str, **_: Any) -> Outcome:
    """As the scoring process does it, in this one."""
    (folder / "out").mkdir()
    score_into(folder / "out", {"benchmark": benchmark}, folder)
    return written_outcome(folder / "out")


def added(before: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Two results as one: numbers are added, and lists put together."""
    whole = dict(before)
    for name, value in more.items():
        if isinstance(value, dict):
            whole[name] = added(whole.get(name, {}), value)
        elif name in whole:
            whole[name] = round(whole[name] + value, 1) if isinstance(value, float) else whole[name] + value
        else:
            whole[name] = value
    return whole


def _shown(client: TestClient, headers: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """Everything that a participant can open."""
    listed = client.get("/api/v1/challenges/open/submissions", headers=headers).json()
    for path in PAGES:
        yield f"pages: {path}", client.get(f"/c/open{path}").content
    for path in ANSWERS:
        yield f"answers: {path}", client.get(f"/api/v1/challenges/open{path}", headers=headers).content
    for run in listed:
        number = run["id"]
        scored = run["state"] == "scored"
        for path in ("", "/status", "/file", "/receipt.json") if scored else ("",):
            yield f"pages of submissions: {path}", client.get(f"/c/open/submissions/{number}{path}").content
        yield (
            "answers about submissions",
            client.get(f"/api/v1/challenges/open/submissions/{number}", headers=headers).content,
        )
        if scored:
            yield "pages of entries", client.get(f"/c/open/entries/{number}").content
            yield "pages of comparisons", client.get(f"/c/open/compare?first={number}&second={listed[0]['id']}").content
    for name, content in _files(client, headers).items():
        yield f"downloads: {name}", content
    yield "starter kit", client.get("/c/open/starter-kit.zip").content
    yield "export of one's own data", client.get("/account/export.zip").content


def _anywhere(app: FastAPI, database: Database, tokens: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """What every address that can be read answers to two teams and to a visitor, about three of the runs."""
    with database.read() as session:
        runs = [run.id for run in session.query(Submission).filter_by(state="scored").order_by(Submission.id)]
        files = [file.id for file in session.query(DataFile)]
    about = [{"run": run, "file": file} for run, file in zip((runs[:1] + runs[-2:]) * len(files), files, strict=False)]
    for who in (*tokens, ""):
        client = TestClient(app, follow_redirects=False)  # not started anew, which would turn mail off
        if who:
            client.cookies.set(SESSION_COOKIE, accounts.sign_in(database, who, PASSWORD)[1])
            client.headers["authorization"] = f"Bearer {tokens[who]}"
        for route in sorted(all_routes(app)):
            verb, _, path = route.partition(" ")
            for values in about if verb == "GET" else ():
                address = _address(path, values)
                answer = client.get(address, params={"first": values["run"], "second": runs[0]})
                where = "downloads" if PUBLIC_LIST.search(address) else "all addresses"
                yield f"{where}: {who} {address}", str(answer.headers.multi_items()).encode()
                yield f"{where}: {who} {address}", answer.content


def _address(path: str, values: dict[str, int]) -> str:
    """The address of a route about a run or a file; anything else in it is 1."""
    for name, value in {"slug": "open", "file_id": values["file"]}.items():
        path = path.replace(f"{{{name}}}", str(value))
    path = re.sub(r"\{(submission_id|number|entry)\}", str(values["run"]), path)
    return re.sub(r"\{\w+\}", "1", path)


@contextmanager
def _listening() -> Iterator[_Lines]:
    """Keeps what is logged meanwhile, and ours in all detail."""
    lines, ours = _Lines(), [logging.getLogger(name) for name in ("fieldmark", "fieldmark_challenge")]
    logging.getLogger().addHandler(lines)
    for one in ours:
        one.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        logging.getLogger().removeHandler(lines)
        for one in ours:
            one.setLevel(logging.NOTSET)


class _Lines(logging.Handler):
    """Keeps what is logged, as the server writes it for programs."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.setFormatter(JsonLines())
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one line, and where it tells of an error, all of that."""
        self.said.append(self.format(record))


def _letters(database: Database) -> list[bytes]:
    """The mails that would be sent now."""
    notices.collect(database)
    with database.read() as session:
        mails = session.query(OutgoingMail).all()
        return [str(write_letter(mail.kind, mail.data, "https://x", name="ada")).encode() for mail in mails]


def _files(client: TestClient, headers: dict[str, str]) -> dict[str, bytes]:
    """What is there to download."""
    listed = client.get("/api/v1/challenges/open/data", headers=headers).json()
    return {file["name"]: client.get(f"/c/open/data/{file['id']}").content for file in listed}


def _chance_hits(sample: bytes) -> dict[str, float]:
    """How many lines of the sample run hold the label of their item, and how many would in another order of items."""
    true = {item: label for item, label, _ in truth_rows()}
    share = Counter(true.values())
    rows = [line.partition(",") for line in sample.decode().splitlines()[1:]]
    listed = [(true[item], answer.split("|")) for item, _, answer in rows]
    expected = sum(share[label] for _, answer in listed for label in answer) / len(true)
    return {"hits": sum(label in answer for label, answer in listed), "expected_by_chance": round(expected, 1)}


def _unpacked(content: bytes) -> Iterator[bytes]:
    """A content, and the files in it where it is an archive."""
    yield content
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield name.encode() + archive.read(name)
