"""What a score rests on stands beside it, on the board and in the shell."""

from __future__ import annotations

from dataclasses import replace

from starlette.testclient import TestClient
from typer.testing import CliRunner

from fieldmark.challenge.boards.leaderboard import make_board
from fieldmark.challenge.scoring import queue
from fieldmark.challenge.scoring.score_parts import score_parts, truth_files
from fieldmark.challenge.site.app import create_app
from fieldmark.cli.challenge.status import _print_board
from fieldmark.cli.main import app
from fieldmark.scoring.measuring import FEW_UNITS_CAUTION
from tests.challenge.hosting import entrants
from tests.challenge.platform import Platform, run_text


def test_the_caution_about_few_units_stands_on_the_board(small_platform: Platform):
    platform = small_platform
    platform.hand_in(platform.captain("ada"), run_text(right=40))
    truth = platform.storage.fetch_folder(platform.challenge.truth_path, platform.folder / "truth")
    (platform.folder / "run.csv").write_text(run_text(right=40))
    cards = score_parts("folder", platform.folder / "run.csv", truth_files(truth))
    assert cards["public"].units < 20
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards)
    client = TestClient(create_app(platform.database, platform.storage))
    assert FEW_UNITS_CAUTION[1:] in client.get(f"/c/{platform.challenge.slug}/board").text


def test_the_caution_is_told_in_the_shell(tmp_path, capsys):
    board = make_board("folder", "private", entrants(tmp_path, {"a": 0.6, "b": 0.4}, part="public"))
    assert board.cautions == []
    few = entrants(tmp_path / "few", {"a": 0.6, "b": 0.4})
    marked = []
    for one in few:
        scores = {name: replace(score, reason=FEW_UNITS_CAUTION) for name, score in one.card.metrics.items()}
        marked.append(replace(one, card=replace(one.card, metrics=scores)))
    board = make_board("folder", "public", marked)
    assert board.cautions == [FEW_UNITS_CAUTION]
    _print_board(board)
    assert f"note: macro_f1_all: {FEW_UNITS_CAUTION}" in capsys.readouterr().out


def test_create_prints_a_warning_of_ids_that_sort_by_class_and_keeps_its_json_apart(tmp_path):
    rows = [f"photo{number},class {number // 20}" for number in range(100)]
    (tmp_path / "truth.csv").write_text("\n".join(["id,label", *rows, ""]))
    words = ["challenge", "create", "leaking", "--benchmark", "folder", "--truth", str(tmp_path / "truth.csv")]
    done = CliRunner().invoke(app, [*words, "--folder", str(tmp_path / "platform"), "--json"])
    assert done.exit_code == 0 and "warning: The order of the ids tells labels" in done.stderr
    assert '"warnings": [' in done.stdout and "warning:" not in done.stdout
    again = CliRunner().invoke(app, ["challenge", "data", "leaking", "--renew", "--folder", str(tmp_path / "platform")])
    assert again.exit_code == 0 and "items.csv" in again.stdout
