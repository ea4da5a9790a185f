from __future__ import annotations

from fieldmark.work import progress as module
from fieldmark.work.progress import progress


def test_what_has_not_begun_says_nothing_of_how_long_it_takes(monkeypatch, capsys):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.0)
    with progress("sending", 3) as tick:
        for done in (0, 1, 2):
            tick(done)
    first, second, last = capsys.readouterr().err.splitlines()
    assert (first, last) == ("sending: 0/3", "sending: 3/3")
    assert second.startswith("sending: 1/3, about ")


def test_the_end_is_told_once(capsys):
    with progress("sending", 3) as tick:
        for done in (3, 0, 0):
            tick(done)
    assert capsys.readouterr().err.splitlines() == ["sending: 3/3"]
