"""One computation for many readers, kept until something changes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fieldmark.web.refusals import BusyError
from fieldmark_challenge.boards import single_flight
from fieldmark_challenge.boards.single_flight import Kept


def test_many_who_ask_at_once_wait_for_one_computation():
    made, begun, go_on = [], threading.Event(), threading.Event()
    boards: Kept[str] = Kept(4)

    def make() -> str:
        made.append(1)
        begun.set()
        assert go_on.wait(60)
        return "board"

    with ThreadPoolExecutor(30) as many:
        answers = [many.submit(boards.get, "key", make) for _ in range(30)]
        assert begun.wait(60)
        go_on.set()
        assert [answer.result(60) for answer in answers] == ["board"] * 30
    assert made == [1]
    assert boards.get("key", lambda: "another") == "board" and boards.get("other", lambda: "another") == "another"


def test_a_computation_that_fails_fails_for_all_and_is_tried_again():
    boards: Kept[str] = Kept(4)
    with pytest.raises(ZeroDivisionError):
        boards.get("key", lambda: str(1 / 0))
    assert boards.get("key", lambda: "board") == "board"


def test_who_waits_too_long_is_told_to_come_again(monkeypatch):
    monkeypatch.setattr(single_flight, "WAIT_S", 0.0)
    boards: Kept[str] = Kept(4)

    def make() -> str:
        with ThreadPoolExecutor(1) as other, pytest.raises(BusyError):
            other.submit(boards.get, "key", make).result(60)
        return "board"

    assert boards.get("key", make) == "board"
