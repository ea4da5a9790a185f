"""Organizers who never open a page: a whole challenge from the shell."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark.errors import FieldmarkError, InputError, MisuseError
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring.worker import Worker
from fieldmark_challenge.site.server import DATABASE_FILE
from fieldmark_challenge_tests.platform import run_text, truth_text

VERBS = sorted(typer.main.get_command(app).commands["challenge"].commands)


# What does not answer with data: it writes a file of the kind that its name says.
WITHOUT_JSON = {"export"}


class Shell:
    """Types verbs of `fieldmark challenge` for one platform."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: object) -> str:
        command = ["challenge", *map(str, words), "--folder", str(self.folder)]
        done = CliRunner().invoke(app, command)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.stdout

    def json(self, *words: object):
        return json.loads(self(*words, "--json"))


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell beside a platform that has an admin and a draft called birds; for what changes nothing."""
    folder = tmp_path_factory.mktemp("untouched")
    (folder / "truth.csv").write_text(truth_text())
    made = Shell(folder / "platform")
    made("create", "birds", "--benchmark", "folder", "--truth", folder / "truth.csv", "--public", 0.5, "--draft")
    return made


@pytest.fixture
def shell(untouched: Shell, tmp_path: Path) -> Shell:
    """The same beside a copy."""
    (tmp_path / "run.csv").write_text(run_text(right=40))
    return Shell(shutil.copytree(untouched.folder, tmp_path / "platform"))


def score_all(folder: Path) -> None:
    """What waits is scored, as by `fieldmark worker --until-idle`."""
    database = Database(f"sqlite:///{folder / DATABASE_FILE}")
    Worker(database, Storage(folder / "files")).run(threading.Event(), until_idle=True)
    database.close()


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_an_example_and_answers_programs(verb):
    done = CliRunner().invoke(app, ["challenge", verb, "--help"])
    assert done.exit_code == 0
    told = " ".join(done.stdout.split())
    assert f"Example: fieldmark challenge {verb}" in told
    assert ("--json" in told) == (verb not in WITHOUT_JSON)


def test_a_whole_challenge_is_run_from_the_shell(shell, tmp_path):
    assert shell.json("show", "birds")["published_at"] is None
    (tmp_path / "rules.txt").write_text("Be kind.\n")
    settings = shell.json("settings", "birds", "--title", "Birds at dawn", "--rules", tmp_path / "rules.txt")
    assert settings["title"] == "Birds at dawn" and settings["max_team_size"] == 5
    assert "public" in shell("publish", "birds", "--without-data")
    warm_up = shell.json("phase", "birds", "warm-up", "--add", "--ends", "2099-01-01", "--daily", 1)
    assert warm_up["ends_at"] == "2099-01-01T00:00:00Z" and warm_up["total_limit"] == 100
    (tmp_path / "extra.txt").write_text("more")
    assert "extra.txt" in {one["name"] for one in shell.json("data", "birds", "--add", tmp_path / "extra.txt")}
    assert "extra.txt" not in shell("data", "birds", "--remove", "extra.txt")

    assert "waits to be scored" in shell("baseline", "birds", tmp_path / "run.csv", "--title", "guess")
    waiting = shell.json("queue", "birds")
    assert [(one["title"], one["state"], one["position"]) for one in waiting] == [("guess", "queued", 1)]
    assert "guess" in shell("queue")
    score_all(shell.folder)
    assert shell.json("queue") == [] and shell.json("queue", "birds", "--all")[0]["state"] == "scored"
    assert "guess" in shell("board", "birds") and shell.json("board", "birds")["part"] == "public"

    measured = shell.json("plan", "--challenge", "birds")
    assert measured["parts"]["all"]["units"] == 30 and "baseline" in measured["parts"]["all"]["spread"]["source"]
    assert "assumed score of 0.2" in shell("plan", "--challenge", "birds", "--score", 0.2)

    shell("phase", "birds", "main", "--ends", "now")
    assert "is removed" in shell("phase", "birds", "warm-up", "--remove")
    assert "revealed" in shell("reveal", "birds", "--yes")
    final = shell.json("board", "birds")
    assert final["part"] == "private" and final["entries"][0]["unranked"] == "baseline"
    assert shell.json("truth", "birds", "--out", tmp_path / "truth")["files"] == [
        "classes.csv",
        "parts.csv",
        "truth.csv",
    ]
    done = [event["action"] for event in reversed(shell.json("audit", "birds"))]
    for earlier, later in (("challenge.create", "challenge.publish"), ("baseline.add", "challenge.reveal")):
        assert done.index(earlier) < done.index(later)
    assert done.count("phase.set") == 2 and {"phase.remove", "data.delete"} < set(done)
    assert "challenge.reveal" in shell("audit", "--last", 1)


def test_revealing_asks_first_and_does_nothing_without_a_yes(shell):
    shell("phase", "birds", "main", "--ends", "now")
    command = ["challenge", "reveal", "birds", "--folder", str(shell.folder)]
    refused = CliRunner().invoke(app, command, input="n\n")
    assert refused.exit_code == 1 and "cannot be undone" in refused.output and "nothing was revealed" in refused.output
    unanswered = CliRunner().invoke(app, command)
    assert isinstance(unanswered.exception, MisuseError) and "--yes" in str(unanswered.exception)
    assert shell.json("show", "birds")["revealed_at"] is None
    assert "are revealed" in CliRunner().invoke(app, command, input="y\n").output


def test_a_phase_keeps_what_is_not_said_about_it(shell):
    before = shell.json("show", "birds")["phases"][0]
    after = shell.json("phase", "birds", "main", "--daily", 2, "--rename", "final")
    assert after == before | {"daily_limit": 2, "name": "final"}


def test_accounts_are_run_from_the_shell(shell):
    database = Database(f"sqlite:///{shell.folder / DATABASE_FILE}")
    accounts.register(database, "grace", "grace@example.org", "correct horse battery")
    assert [one["name"] for one in shell.json("organizers", "birds", "--add", "grace")] == ["admin", "grace"]
    assert "is frozen" in shell("freeze", "birds", "--as", "grace")
    assert shell("organizers", "birds", "--remove", "grace@example.org").split("\n")[:-1] == ["admin (owns it)"]
    with pytest.raises(MisuseError, match="grace does not run birds"):
        shell("freeze", "birds", "--undo", "--as", "grace")
    assert shell.json("disable", "grace") == {"name": "grace", "open": False}
    assert "closed" in shell("people") and not shell.json("people")[1]["open"]
    database.close()


@pytest.mark.parametrize(
    ("words", "kind", "sentence"),
    [
        (
            ("phase", "birds", "mian", "--ends", "now"),
            MisuseError,
            "has no phase 'mian'; --add makes one. Did you mean",
        ),
        (("phase", "birds", "late", "--add"), MisuseError, "A new phase needs an end: --ends WHEN"),
        (("phase", "birds", "main", "--ends", "tomorrow"), MisuseError, "'tomorrow': expected a moment in UTC"),
        (("phase", "birds", "main", "--ends", "2001-01-01"), FieldmarkError, "would end (2001-01-01 00:00 UTC) before"),
        (("retry", "birds", 99), MisuseError, "birds has no submission 99."),
        (("refund", "birds", 99), MisuseError, "birds has no submission 99."),
        (("board", "birds", "--part", "secret"), MisuseError, "has no part 'secret'; expected public and private."),
        (("data", "birds", "--remove", "x"), MisuseError, "birds offers no file 'x'. Known: items.csv"),
        (
            ("organizers", "birds", "--remove", "admin"),
            MisuseError,
            "admin owns birds: give it to another organizer first (--owner).",
        ),
        (("settings", "birds"), MisuseError, "Name what to change"),
        (("plan",), MisuseError, "A plan is about so many --units, or about those of a --challenge."),
        (("show", "bards"), MisuseError, "There is no challenge called 'bards'. Known: birds."),
        (("disable", "admin"), FieldmarkError, "You cannot close your own account."),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(untouched, words, kind, sentence):
    with pytest.raises(kind) as refused:
        untouched(*words)
    assert sentence in str(refused.value) and "\n" not in str(refused.value)


def test_a_baseline_with_mistakes_is_refused_with_their_lines(shell, tmp_path):
    (tmp_path / "bad.csv").write_text(run_text().replace("i1,", "nobody,"))
    with pytest.raises(FieldmarkError, match=r"bad.csv, line 3: found the id 'nobody'") as refused:
        shell("baseline", "birds", tmp_path / "bad.csv", "--title", "bad")
    assert refused.value.exit_code == 1 and shell.json("show", "birds")["baselines"] == []


def test_a_verb_in_the_wrong_folder_makes_no_platform(tmp_path):
    with pytest.raises(InputError, match="found no platform, expected the folder of `fieldmark serve`"):
        Shell(tmp_path / "elsewhere")("list")
    assert not (tmp_path / "elsewhere").exists()
