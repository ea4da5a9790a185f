"""`fieldmark challenge create`: what it prints."""

from __future__ import annotations

from typer.testing import CliRunner

from fieldmark.cli.main import app


def test_create_prints_a_warning_of_ids_that_sort_by_class_and_keeps_its_json_apart(tmp_path):
    rows = [f"photo{number},class {number // 20}" for number in range(100)]
    (tmp_path / "truth.csv").write_text("\n".join(["id,label", *rows, ""]))
    words = ["challenge", "create", "leaking", "--benchmark", "folder", "--truth", str(tmp_path / "truth.csv")]
    done = CliRunner().invoke(app, [*words, "--folder", str(tmp_path / "platform"), "--json"])
    assert done.exit_code == 0 and "warning: The order of the ids tells labels" in done.stderr
    assert '"warnings": [' in done.stdout and "warning:" not in done.stdout
    again = CliRunner().invoke(app, ["challenge", "data", "leaking", "--renew", "--folder", str(tmp_path / "platform")])
    assert again.exit_code == 0 and "items.csv" in again.stdout
