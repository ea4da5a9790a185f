"""The pages about speed and scale say what the measured results say."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.evidence.results import RESULTS, ROOT
from studies.perf.__main__ import measure
from studies.perf.costs import TABLES, Assumptions, growth_of
from studies.perf.growth import exponent
from studies.perf.jobs import JOBS, Job
from studies.perf.pages import PAGES, renewed
from studies.perf.ratios import RATIOS

# One counts and measures nothing, one holds the engines before the last.
NO_RATIOS = ("networks", "training_gpu")


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_of_a_page_are_those_of_the_committed_results(page):
    assert (ROOT / page).read_text(encoding="utf-8") == renewed(page), "run python -m studies.perf --tables"


def test_every_measurement_is_told_as_ratios_to_something():
    assert set(JOBS) - set(RATIOS) == {"networks"}  # which counts and measures nothing
    assert {path.stem.removeprefix("perf-") for path in RESULTS.glob("perf-*.json")} <= {*RATIOS, *NO_RATIOS}
    assert all(Path(ROOT, "studies", "perf", f"{name}.py").exists() for name in JOBS)


def test_what_cannot_run_is_skipped_with_a_sentence_and_what_fails_is_told(monkeypatch, capsys):
    monkeypatch.setitem(JOBS, "impossible", Job("something", cannot_run=lambda: "there is no such machine"))
    monkeypatch.setitem(JOBS, "slow", Job("something", minutes=9))
    monkeypatch.setitem(JOBS, "missing", Job("a module that is not there"))
    assert measure("impossible", quick=False) and "skipped: there is no such machine" in capsys.readouterr().out
    assert measure("slow", quick=True) and "skipped: it takes about 9 minutes" in capsys.readouterr().out
    assert not measure("missing", quick=False)


def test_other_prices_give_other_costs_in_proportion():
    usual, dear = (TABLES["tables_4_and_5"](Assumptions(gpu_hour=price)) for price in (4.0, 8.0))
    place = usual.splitlines()[0].split("|").index(" dollars ")
    last = [table.strip().splitlines()[-1].split("|")[place].replace(",", "") for table in (usual, dear)]
    assert float(last[1]) == pytest.approx(2 * float(last[0]), abs=1)


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7])
def test_an_exponent_is_found_whatever_the_fixed_cost(power):
    costs = [7.0 + 0.3 * items**power for items in (100, 400, 1600)]
    assert exponent(costs, least=0.0) == pytest.approx(power, abs=0.01)


def test_what_fits_into_memory_follows_from_the_growth():
    line = growth_of({"items": [0, 4, 16], "cpu_s": [1, 1, 1], "peak_mib": [512, 520, 544]})
    assert line.most_items(1.0) == (1024 - 512) / 2 and line.gib(256) == 1.0
