"""Eighteen classes of attack, most of them incidents on other platforms; one test bears the name of each.

Here each is tried in short, on both databases where one is involved. Other tests go further: every route for every role
(site/test_routes.py), every private number (site/test_pages.py), escapes of programs (coding/test_escapes.py).
"""

from __future__ import annotations

import ast
import datetime as dt
import gzip
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import fieldmark_challenge
from fieldmark.errors import InputError
from fieldmark.sandbox import bubblewrap
from fieldmark.scoring import Score
from fieldmark.tables.labels import Labels
from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError, TooOftenError
from fieldmark.web.run_problems import read_as_scored
from fieldmark.web.security import SESSION_COOKIE, safe_next
from fieldmark_challenge.boards.ladder import release
from fieldmark_challenge.boards.leaderboard import make_board
from fieldmark_challenge.challenges.exports import export_rows, to_csv
from fieldmark_challenge.operations.lease_queue import StaleClaimError
from fieldmark_challenge.people import accounts, rates, teams
from fieldmark_challenge.people.names import clean_name
from fieldmark_challenge.programs.self_test import failure_of
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, PartScore, Submission, User, utc_now
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.submissions.run_files import RunRefusedError
from fieldmark_challenge_tests.boards.test_ladder import METRIC, card_of
from fieldmark_challenge_tests.hosting import cards, entrants
from fieldmark_challenge_tests.platform import PASSWORD, Platform, run_text
from fieldmark_challenge_tests.submissions.test_submissions import parallel
from fieldmark_challenge_tests.unprivileged import account_runner
from fieldmark_tests.system_programs import absent

SOURCE = Path(fieldmark_challenge.__file__).parent


@pytest.fixture
def client(platform: Platform) -> Iterator[TestClient]:
    with TestClient(create_app(platform.database, platform.storage), follow_redirects=False) as made:
        yield made


def csrf_of(client: TestClient, path: str) -> str:
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get(path).text)[1]


def refused(platform: Platform, user: User, content: str | bytes) -> RunRefusedError:
    with pytest.raises(RunRefusedError) as caught:
        platform.hand_in(user, content)
    assert caught.value.problems and platform.quota(user).used == 0
    return caught.value


def sources() -> dict[str, ast.Module]:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 50
    return {str(path.relative_to(SOURCE)): ast.parse(path.read_text(encoding="utf-8")) for path in files}


def test_01_quota_races(platform: Platform, database_url: str):
    user = platform.captain("ada")
    other = replace(platform, database=Database(database_url))
    outcomes = parallel(30, lambda place: (platform if place % 2 else other).hand_in(user))
    other.database.close()
    assert sum(isinstance(outcome, Submission) for outcome in outcomes) == 5
    assert all(isinstance(outcome, Submission | TooOftenError) for outcome in outcomes)
    tomorrow = dt.datetime.combine(utc_now().date() + dt.timedelta(days=1), dt.time(), dt.UTC)
    with pytest.raises(TooOftenError):
        platform.hand_in(user, arrived=tomorrow - dt.timedelta(seconds=1))
    assert platform.hand_in(user, arrived=tomorrow).state == "queued"


def test_02_deadlines(platform: Platform):
    user, now = platform.captain("ada"), utc_now()
    platform.set_phase(starts_at=now - dt.timedelta(days=1), ends_at=now - dt.timedelta(seconds=5))
    begun = now - dt.timedelta(seconds=10)
    run = platform.hand_in(user, arrived=begun)
    with pytest.raises(ConflictError, match="No phase is open"):
        platform.hand_in(user, arrived=now)
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards())
    queue.rescore(platform.database, platform.admin, platform.challenge)
    assert platform.submission(run.id).accepted_at == begun


def test_03_numbers_that_are_none(tmp_path: Path):
    entered = entrants(tmp_path, {"honest": 0.5, "strange": 0.9})
    nothing = replace(entered[1].card, metrics={"top_1": Score(float("nan"), None, None, "none")})
    board = make_board("folder", "public", [entered[0], replace(entered[1], card=nothing)], metric="top_1")
    assert [(row.entrant.team, row.place) for row in board.rows] == [("honest", 1), ("strange", None)]
    labels = Labels(("x", "y"))
    for number in ("nan", "inf", "-inf", "1e999", "", "NA", "None", "0x1p3", "9" * 400):
        run = tmp_path / "run.csv"
        run.write_text(f"o1,x,{number},1\n")
        with pytest.raises(InputError):
            read_as_scored("plantclef-2020", run, ["o1"], labels.names, closed=True)


@pytest.mark.parametrize(
    "change",
    [
        ("i3,a\n", ""),
        ("i3,a", "i3,a\ni3,b"),
        ("i3,", "i99,"),
        ("i3,", "\u0456" + "3,"),
        ("i3,a", 'i3,"a\nb"'),
        (",", ";"),
    ],
)
def test_04_ids_and_shapes(platform: Platform, change):
    assert refused(platform, platform.captain("ada"), run_text().replace(*change)).problems


def test_05_labels_within_a_row(platform: Platform):
    user = platform.captain("ada")
    for answer in ("i3,a|a", "i3," + "|".join("abc" * 9), "i3,zebra"):
        assert refused(platform, user, run_text().replace("i3,a", answer)).problems[0]["line"] == 5


def test_06_archives_that_grow(platform: Platform):
    user = platform.captain("ada")
    platform.challenge.max_upload_mb = 1
    assert "4 MiB" in refused(platform, user, gzip.compress(b"0" * (5 << 20))).problems[0]["text"]
    assert "zip" in refused(platform, user, b"PK\x03\x04" + b"\0" * 99).problems[0]["text"]


def test_07_objects_that_run_when_they_are_read(platform: Platform):
    user = platform.captain("ada")
    for payload in (
        pickle.dumps({"a": 1}),
        b"\x93NUMPY\x01\x00" + b"\0" * 50,
        b"!!python/object/apply:os.system [id]\n",
    ):
        refused(platform, user, payload)
    for name, tree in sources().items():
        for node in ast.walk(tree):
            imported = [one.name for one in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            assert not {"pickle", "marshal", "yaml", "shelve", "dill"} & set(imported), name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), name


def test_08_names_and_tables_that_run_or_deceive(platform: Platform):
    for name in ("evil\u202eteam", "tab\x00le", "\u0430da x b", "a\u200bda"):
        with pytest.raises(RefusalError):
            clean_name(name)
    user = platform.captain("ada")
    platform.hand_in(user, title='=HYPERLINK("http://evil")', method="@SUM(A1)")
    with platform.database.read() as session:
        table = to_csv(export_rows(session, session.get_one(Challenge, platform.challenge.id)))
    assert "'=HYPERLINK" in table and "'@SUM" in table


def test_09_objects_of_others(platform: Platform, client: TestClient):
    run = platform.hand_in(platform.captain("ada"))
    token = accounts.make_token(platform.database, platform.captain("eve"), "shell", accounts.SCOPES)
    client.cookies.set(SESSION_COOKIE, accounts.sign_in(platform.database, "eve", PASSWORD)[1])
    paths = [f"/c/tiny/submissions/{run.id}{rest}" for rest in ("", "/status", "/file", "/receipt.json")]
    for path in (*paths, f"/api/v1/challenges/tiny/submissions/{run.id}", "/c/tiny/organize", "/admin/users"):
        assert client.get(path, headers={"authorization": f"Bearer {token}"}).status_code == 404, path


def test_10_private_scores_before_the_reveal(platform: Platform, client: TestClient):
    platform.hand_in(platform.captain("ada"))
    secret = cards(0.5)
    secret["private"] = replace(secret["private"], metrics={"macro_f1_all": Score(0.123456, 0.1, 0.2, "t")})
    queue.finish(platform.database, queue.claim(platform.database, "w"), secret)
    client.cookies.set(SESSION_COOKIE, accounts.sign_in(platform.database, "ada", PASSWORD)[1])
    assert client.get("/c/tiny/board?part=private").status_code == 404
    for path in ("/c/tiny/board", "/c/tiny/submissions", "/c/tiny/submissions/1", "/c/tiny/entries/1"):
        page = client.get(path)
        assert page.status_code == 200 and "12.3" not in page.text and "0.123" not in page.text, path


def test_11_labels_in_messages(platform: Platform):
    """What is said about sixty bad files is the same whatever the truth is."""
    rng, user = np.random.default_rng(0), platform.captain("ada")
    content = run_text().encode()
    for _ in range(60):
        at = int(rng.integers(20, len(content)))
        damaged = content[:at] + bytes(rng.integers(0, 256, 3, dtype=np.uint8)) + content[at + 2 :]
        try:
            platform.hand_in(user, damaged, arrived=utc_now())
        except RunRefusedError as error:
            said = " ".join(problem["text"] for problem in error.problems)
            assert not re.search(r"i\d+,[abc]\b", said.replace(damaged.decode("utf-8", "replace"), ""))
        except TooOftenError:
            return


def test_12_probing():
    rng = np.random.default_rng(0)
    hits = (rng.random(200) < 0.5).astype(float)
    told = release([card_of(hits)] * 5, METRIC)
    assert [one.improved for one in told] == [True, False, False, False, False]
    assert len({one.value for one in told}) == 1


def test_13_replays_and_stale_workers(platform: Platform):
    user = platform.captain("ada")
    twice = parallel(4, lambda _: platform.hand_in(user, idempotency_key="once-and-only"))
    assert len({run.id for run in twice}) == 1
    stale = queue.claim(platform.database, "stale", lease_s=-1)
    fresh = queue.claim(platform.database, "fresh")
    assert fresh.submission_id == stale.submission_id
    queue.finish(platform.database, fresh, cards(0.5))
    with pytest.raises(StaleClaimError):
        queue.finish(platform.database, stale, cards(1.0))
    with platform.database.read() as session:
        assert sorted(session.query(PartScore.value).all()) == [(0.5,), (0.5,)]


def test_14_sessions_and_links(platform: Platform):
    ada = platform.person("ada")
    secrets = [accounts.sign_in(platform.database, "ada", PASSWORD)[1] for _ in range(3)]
    accounts.sign_out(platform.database, secrets[0])
    accounts.change_password(platform.database, ada, PASSWORD, "another long password", keep=secrets[1])
    assert [bool(accounts.session_user(platform.database, one)) for one in secrets] == [False, True, False]
    link = accounts.make_reset(platform.database, "ada")
    accounts.use_reset(platform.database, link, "a third long password")
    with pytest.raises(NotThereError):
        accounts.use_reset(platform.database, link, "a fourth long password")
    assert accounts.session_user(platform.database, secrets[1]) is None
    assert {safe_next(target) for target in ("//evil", "/\\evil", "https://evil", "\\evil")} == {"/"}


def test_15_invitations_and_roles(platform: Platform, client: TestClient):
    ada, bea, cyd = platform.captain("ada"), platform.person("bea"), platform.captain("cyd")
    teams.accept_rules(platform.database, bea, platform.challenge)
    link = teams.invite(platform.database, ada, platform.team(ada))
    with pytest.raises(ConflictError, match="in a team"):
        teams.join(platform.database, cyd, link)
    teams.join(platform.database, bea, link)
    with pytest.raises(NotThereError):
        teams.join(platform.database, platform.person("dan"), link)
    form = {"name": "eve", "email": "eve@example.org", "password": PASSWORD, "role": "admin", "next": "/"}
    client.post("/register", data=form | {"csrf": csrf_of(client, "/register")})
    with platform.database.read() as session:
        assert session.query(User).filter_by(name="eve").one().role == "participant"


def test_16_addresses_that_the_server_would_fetch():
    """Nothing of the server opens an address that a participant named.

    The client that participants run does, and is never imported. Whoever asks providers for identities asks those that
    the settings name, whose addresses `fieldmark_challenge_tests/openid` checks.
    """
    fetching = {"httpx", "requests", "urllib.request", "urllib3", "aiohttp", "http.client", "socket.create_connection"}
    theirs = {"fieldmark.web.client", "fieldmark.web.upload_client"}
    assert all(find_spec(name) for name in theirs)
    assert len(sources()) > 100  # none would prove nothing
    for name, tree in sources().items():
        for node in ast.walk(tree):
            modules = {one.name for one in node.names} if isinstance(node, ast.Import) else set()
            modules |= {node.module or ""} if isinstance(node, ast.ImportFrom) else set()
            assert not theirs & modules, name
            assert name == "openid/provider_client.py" or not fetching & modules, name


def test_17_programs_of_participants():
    if bubblewrap.bubblewrap() is None:
        absent("bubblewrap is not installed, or not allowed here")
    assert failure_of(account_runner()) == ""


def test_18_limits_behind_proxies(platform: Platform, client: TestClient):
    platform.person("ada")
    form = {"who": "ada", "password": "wrong", "csrf": csrf_of(client, "/login")}
    codes = [
        client.post("/login", data=form, headers={"x-forwarded-for": f"10.0.0.{number}"}).status_code
        for number in range(rates.SIGN_IN.limit + 1)
    ]
    assert codes[-1] == 429
