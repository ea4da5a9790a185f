"""What every release declares, and what people are told of it."""

from __future__ import annotations

import json
import re
from importlib import import_module

import pytest
from typer.testing import CliRunner

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.cli.main import app
from fieldmark.releases import DATASETS
from fieldmark.releases.checks import CHECKS
from fieldmark.releases.download.manifests import MANIFESTS
from fieldmark.releases.facts import citations_of, facts_of
from fieldmark.releases.record import bibtex_entries, declared_records, record_of
from fieldmark_worlds import WORLDS


def said(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.mark.parametrize("name", sorted(declared_records()))
def test_what_is_read_of_a_record_is_what_its_module_says(name):
    read, record = declared_records()[name], record_of(name)
    assert (record.name, record.about, record.single_file) == (name, read.about, read.single_file)
    assert DATASETS[name] is record.open and callable(CHECKS[name])
    assert (name in MANIFESTS) == bool(record.download) and (name in WORLDS) == (record.world is not None)
    assert record.world is None or (WORLDS.about(name) == record.world.about and callable(WORLDS[name]))
    assert record.homepage is None or record.homepage.startswith("https://")
    assert any(BENCHMARKS[one].dataset == name for one in BENCHMARKS)


def test_every_module_with_records_is_found():
    modules = {place.module for place in declared_records().values()}
    assert sum(len(import_module(module).RECORDS) for module in modules) == len(declared_records())


def test_citations_are_whole_entries_and_a_key_means_one_paper():
    papers: dict[str, str] = {}
    for name in declared_records():
        text = record_of(name).citation or ""
        entries = dict(bibtex_entries(text))
        assert len(entries) == len(re.findall("^@", text, re.MULTILINE))
        for key, entry in entries.items():
            assert entry.count("{") == entry.count("}") and entry.endswith("\n}") and "\n  title = {" in entry
            assert papers.setdefault(key, entry) == entry, key


def test_cite_prints_each_entry_once_for_datasets_and_benchmarks():
    printed = said("cite", "fungitastic", "fungitastic/open", "fungitastic/closed@1", "semi-inat-2021")
    assert re.findall(r"@\w+\{(\w+),", printed) == ["picek2024fungitastic", "su2021semiinat"]
    as_json = json.loads(said("cite", "birdclef-2022", "snakeclef-2022", "--json"))
    assert {tuple(entries) for entries in as_json.values()} == {("joly2022lifeclef",)}
    done = CliRunner().invoke(app, ["cite", "folder"])
    assert done.exit_code == 1 and not done.stdout and "folder: no paper to cite is known" in done.stderr
    assert "Did you mean fungitastic" in str(CliRunner().invoke(app, ["cite", "fungitastik"]).exception)


def test_list_shows_what_is_known_of_a_dataset_and_what_is_not():
    shown = said("list", "datasets", "semi-inat-2021")
    assert "license: not known" in shown and "terms: non-commercial research" in shown
    assert "343,219 photos" in shown and "@article{su2021semiinat," in shown and "benchmarks: semi-inat-2021" in shown
    assert json.loads(said("list", "datasets", "fathomnet-2025", "--json"))["homepage"].startswith("https://github.com")
    assert facts_of("birdclef-2026")["citation"] is None and citations_of(["birdclef-2026"]) == {"birdclef-2026": {}}
