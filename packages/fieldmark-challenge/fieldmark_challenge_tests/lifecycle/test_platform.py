"""The platform as a stranger starts it: one command, and a scored submission within a minute."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from fieldmark.benchmarks.titles import metric_title
from fieldmark.cli.main import app
from fieldmark.cli.submit import show_submission
from fieldmark.errors import InputError, MisuseError
from fieldmark.web.refusals import ConflictError
from fieldmark_challenge_tests.platform import truth_text

MAIN = [sys.executable, "-c", "from fieldmark.cli.main import main; main()"]
PASSWORD = "correct horse battery"
LIMIT_S = 60


def shell(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*MAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Browser:
    """Forms as a browser sends them."""

    def __init__(self, base: str) -> None:
        self.client = httpx.Client(base_url=base, timeout=30)

    def send(self, page: str, target: str, **form: object) -> httpx.Response:
        token = re.search(r'name="csrf" value="([0-9a-f]+)"', self.client.get(page).text)[1]
        return self.client.post(target, data={"csrf": token, **form})


@pytest.fixture
def server(tmp_path: Path, port: int) -> Iterator[tuple[str, float, subprocess.Popen[str]]]:
    command = [*MAIN, "serve", "--folder", str(tmp_path / "new"), "--port", str(port)]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    yield f"http://127.0.0.1:{port}", start, process
    process.terminate()
    assert process.wait(30) is not None


def test_sixty_seconds_from_the_command_to_a_scored_submission(server, tmp_path, capsys):
    base, start, process = server
    assert base in process.stdout.readline()
    link = process.stdout.readline().rpartition(" ")[2].strip()
    assert link.startswith(f"{base}/reset/")
    while time.monotonic() - start < LIMIT_S:
        try:
            httpx.get(base)
            break
        except httpx.TransportError:
            time.sleep(0.1)
    browser = Browser(base)
    assert (
        browser.send("/register", "/register", name="Ada", email="ada@example.org", password=PASSWORD).status_code
        == 303
    )
    assert browser.send("/c/demo", "/c/demo/rules", accept="yes").status_code == 303
    assert browser.send("/c/demo/team", "/c/demo/team", name="Ada's").status_code == 303
    files = dict(re.findall(r'href="(/c/demo/data/\d+)"[^>]*>\s*([\w.]+)', browser.client.get("/c/demo/data").text))
    sample = next(where for where, name in files.items() if name == "sample_run.csv")
    (tmp_path / "run.csv").write_bytes(browser.client.get(sample).content)
    made = browser.send("/account", "/account/tokens", name="shell", scopes=["read", "submit"], days=1)
    token = re.search(r"fm_[\w-]{43}", made.text)[0]
    done = shell(
        "submit", f"{base}/c/demo", tmp_path / "run.csv", "--external", "none", "--json", FIELDMARK_TOKEN=token
    )
    took = time.monotonic() - start
    assert done.returncode == 0, done.stderr
    scored = json.loads(done.stdout)
    assert scored["state"] == "scored" and 0 < scored["scores"]["public"]["top_1"]["value"] < 0.3
    assert set(scored["scores"]) == {"public"}
    assert took < LIMIT_S, f"{took:.0f} seconds"
    # A mistake is named by its line, on the shell as on the page, and costs nothing.
    lines = (tmp_path / "run.csv").read_text().splitlines()
    (tmp_path / "bad.csv").write_text("\n".join([lines[0], "no such id,x", *lines[2:]]))
    refused = shell("submit", f"{base}/c/demo", tmp_path / "bad.csv", "--external", "none", FIELDMARK_TOKEN=token)
    assert refused.returncode == 1 and "bad.csv, line 2: found the id 'no such id'" in refused.stderr
    quota = httpx.get(f"{base}/api/v1/challenges/demo/quota", headers={"authorization": f"Bearer {token}"}).json()
    assert quota["today_left"] == quota["daily"] - 1
    # The link that was printed sets the admin's password.
    path = link.removeprefix(base)
    assert browser.send(path, path, password=PASSWORD).status_code == 303
    listed = json.loads(typed(capsys, "challenge", "list", "--folder", tmp_path / "new", "--json"))
    assert [row["challenge"] for row in listed] == ["demo"]


def test_challenges_are_run_from_the_shell(tmp_path, capsys):
    place = ("--folder", tmp_path / "new")
    (tmp_path / "truth.csv").write_text(truth_text())
    create = ("challenge", "create", "mine", "--benchmark", "folder", "--truth", tmp_path / "truth.csv", *place)
    assert json.loads(typed(capsys, *create, "--json"))["units"] == 30
    with pytest.raises(ConflictError, match="already"):
        typed(capsys, *create)
    with pytest.raises(MisuseError, match="Known: mine"):
        typed(capsys, "challenge", "freeze", "nothing", *place)
    assert "is frozen" in typed(capsys, "challenge", "freeze", "mine", *place)
    with pytest.raises(ConflictError, match="still open"):
        typed(capsys, "challenge", "reveal", "mine", *place)
    assert "0 runs of mine" in typed(capsys, "challenge", "rescore", "mine", "--truth", tmp_path / "truth.csv", *place)
    link = typed(capsys, "challenge", "reset-link", "admin", "--url", "https://x.org", *place).strip()
    assert re.fullmatch(r"https://x\.org/reset/[\w-]{43}", link)
    assert "0 submissions" in typed(capsys, "challenge", "export", "mine", "--out", tmp_path / "out.csv", *place)
    assert "1 account and" in typed(capsys, "challenge", "backup", tmp_path / "all.zip", *place)
    typed(capsys, "challenge", "truth", "mine", "--out", tmp_path / "truth", *place)
    for secret in ("out.csv", "all.zip", *(f"truth/{path.name}" for path in (tmp_path / "truth").iterdir())):
        assert (tmp_path / secret).stat().st_mode & 0o777 == 0o600, f"others can read {secret}"
    other = ("--folder", tmp_path / "other")
    assert "1 account and" in typed(capsys, "challenge", "restore", tmp_path / "all.zip", *other)
    assert typed(capsys, "challenge", "list", *other) == typed(capsys, "challenge", "list", *place)


def test_a_database_that_does_not_answer_is_named(capsys):
    with pytest.raises(InputError, match="found no answer"):
        typed(capsys, "worker", "--database", "postgresql+psycopg://me:secret@127.0.0.1:1/none")
    with pytest.raises(MisuseError, match="sqlite and postgresql"):
        typed(capsys, "worker", "--database", "mysql://somewhere/x")


def test_scores_of_a_submission_are_printed_as_boards_show_them(capsys):
    score = {"value": 0.4712, "low": 0.4, "high": 0.55, "interval": "jackknife-t"}
    loss = {"value": 1.25, "low": None, "high": None, "interval": "none", "reason": "fewer than 20 units"}
    show_submission({"state": "scored", "reason": "scored", "scores": {"public": {"top_1": score, "log_loss": loss}}})
    printed = capsys.readouterr().out
    assert metric_title("top_1") in printed and "47.1 [40.0, 55.0]" in printed and "0.471" not in printed
    assert "1.250 [no interval]" in printed and "fewer than 20 units" in printed


def test_submit_says_what_it_needs(capsys, tmp_path):
    with pytest.raises(MisuseError, match="address of a challenge"):
        typed(capsys, "submit", "demo", "run.csv", "--token", "fm_x")
    with pytest.raises(MisuseError, match="A token is needed"):
        typed(capsys, "submit", "http://127.0.0.1:1/c/demo", "run.csv", "--token", "")


def typed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What a command prints; its errors come as they are."""
    app([str(argument) for argument in arguments], standalone_mode=False)
    return capsys.readouterr().out


def test_a_challenge_on_a_fresh_platform_prints_the_link_of_the_admin_and_keeps_its_files_closed(tmp_path):
    (tmp_path / "truth.csv").write_text(truth_text())
    folder = tmp_path / "platform"
    command = ["challenge", "create", "tiny", "--benchmark", "folder", "--truth", str(tmp_path / "truth.csv")]
    runner = CliRunner()
    made = runner.invoke(app, [*command, "--public", "0.5", "--folder", str(folder), "--json"])
    assert made.exit_code == 0 and json.loads(made.stdout)["challenge"] == "tiny"
    assert "Set the password of the account 'admin'" in made.stderr and "/reset/" in made.stderr
    kept = runner.invoke(app, ["challenge", "backup", str(tmp_path / "kept.zip"), "--folder", str(folder)])
    assert kept.exit_code == 0 and "/reset/" not in kept.stderr
    rights = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("platform", "platform/files", "kept.zip")}
    assert rights == {"platform": 0o700, "platform/files": 0o700, "kept.zip": 0o600}
    assert (folder / "platform.sqlite").stat().st_mode & 0o777 == 0o600
