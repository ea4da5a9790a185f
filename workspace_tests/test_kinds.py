"""What `make quick` runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from fieldmark_tests.kinds import (
    FIXTURES,
    KINDS,
    PATHS,
    PLACES,
    QUICK,
    TESTS,
    WHOLE,
    kinds_of,
    kinds_of_path,
    leaves_out,
)
from fieldmark_tests.places import ROOT


def is_whole(config: pytest.Config) -> bool:
    """Whether this run was asked for all tests."""
    return not config.option.markexpr and not config.option.keyword and {*config.getini("testpaths")} <= {*config.args}


def test_quick_selects_a_good_share_of_all_tests(request):
    if not is_whole(request.config):
        pytest.skip("only a run of all tests knows the share")
    items = request.session.items
    quick = [item for item in items if not kinds_of(item)]
    assert 0.35 < len(quick) / len(items) < 0.75
    folders = {item.path.parent.name for item in quick}
    assert {
        "metrics",
        "stats",
        "scoring",
        "oracles",
        "runs",
        "questions",
        "splits",
        "cli",
        "releases",
        "steps",
    } <= folders


def test_no_quick_test_asks_for_postgresql_chromium_or_bubblewrap(request):
    heavy = {name for name, kind in FIXTURES.items() if kind in ("postgres", "browser", "sandbox")}
    assert {"postgresql", "browser"} <= heavy
    for item in request.session.items:
        if any(item.get_closest_marker(kind) for kind in KINDS):
            continue
        assert not heavy & set(getattr(item, "fixturenames", ())), item.nodeid
        assert "[postgresql" not in item.nodeid, item.nodeid
        assert "bwrap" not in item.path.read_text(encoding="utf-8") or item.path == Path(__file__), item.nodeid


def test_every_kind_is_registered_and_left_out_by_make_quick():
    registered = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    assert [line.partition(":")[0] for line in registered] == list(KINDS)
    assert re.findall(r'-m "(.*)"', (ROOT / "Makefile").read_text()) == [QUICK]


def test_every_listed_path_and_test_is_there():
    for path in (*PATHS, *TESTS):
        assert any((ROOT / place / path).exists() for place in PLACES), path
    assert all((ROOT / place).is_dir() for place in WHOLE)
    for path, names in TESTS.items():
        text = (ROOT / PLACES[0] / path).read_text(encoding="utf-8")
        assert all(f"def {name}(" in text for name in names), path


def test_a_path_is_left_out_only_where_no_further_mark_could_select_its_tests():
    assert leaves_out(QUICK, {"training"})
    assert leaves_out("not slow", {"slow", "training"})
    assert leaves_out("postgres and not slow", {"slow"})
    assert not leaves_out("postgres or browser", {"slow"})
    assert not leaves_out("not slow", {"training"})
    assert not leaves_out("not slow and not own_mark", {"slow"})
    assert not leaves_out("", {"slow"})
    assert not leaves_out(QUICK, ())


def test_doctests_go_with_the_folder_of_their_module():
    assert kinds_of_path(ROOT / PLACES[1] / "training/losses.py") == {"training"}
    assert kinds_of_path(ROOT / PLACES[1] / "metrics/classification.py") == frozenset()
