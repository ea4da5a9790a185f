"""`fieldmark fit FOLDER`: no benchmark, no method."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest

from fieldmark.cli import own_photos
from fieldmark.cli.own_photos import asked_benchmark, show_own
from fieldmark.errors import MisuseError


def test_a_folder_alone_is_the_benchmark_of_own_photos(tmp_path):
    assert asked_benchmark(str(tmp_path), None) == ("folder", tmp_path, True)
    assert asked_benchmark("folder", tmp_path) == ("folder", tmp_path, False)


def test_a_folder_of_the_name_of_a_benchmark_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert asked_benchmark("folder", None) == ("folder", Path("folder"), True)


@pytest.mark.parametrize(("name", "says"), [("fungitastic/closed", "--data"), ("my-fotos", "neither a folder")])
def test_what_is_missing_is_said(name, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MisuseError, match=says):
        asked_benchmark(name, None)


def test_a_report_is_written_and_opened_beside_the_page_for_the_next_photo(tmp_path, monkeypatch, capsys):
    opened: list[str] = []
    served: list[int] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr("fieldmark.reports.report", lambda runs, page: page)
    monkeypatch.setattr("fieldmark.web.identify_answers.PageAnswers.warm", lambda self: None)
    monkeypatch.setattr("fieldmark.web.local_app.serve_identify", lambda namer, host, port: served.append(port))
    show_own(tmp_path, browser=True)
    assert opened == [(tmp_path / "report.html").as_uri(), f"http://127.0.0.1:{served[0]}/identify"]

    show_own(tmp_path, browser=False)
    assert len(opened) == 2 and "fieldmark identify --serve --model" in capsys.readouterr().out
    assert own_photos.free_port() > 0
