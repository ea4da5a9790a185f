"""Files that cannot be read: all are named, and left out on request alone."""

from __future__ import annotations

import json

import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError
from fieldmark.releases import open_dataset
from fieldmark.reports.pages.runs import load_context
from fieldmark.views.broken_media import broken_media, refuse_official, without_media


@pytest.fixture
def damaged(make_release):
    """Own photos, two of which break off."""
    root = make_release()
    photos = sorted(root.rglob("*.jpg"))
    for photo in (photos[0], photos[9]):
        photo.write_bytes(photo.read_bytes()[:300])
    return root, [str(photo.relative_to(root)) for photo in (photos[0], photos[9])]


def test_fit_names_every_broken_file_and_goes_on_where_it_is_asked_to(damaged, run_main, tmp_path, monkeypatch):
    root, broken = damaged
    monkeypatch.chdir(tmp_path)
    options = ("--data", root, "--method", "centroid", "--set", "size=32")
    code, _, said = run_main("fit", "folder", *options)
    assert code == 1 and all(path in said for path in broken) and "--skip-broken" in said
    code, _, said = run_main("fit", "folder", *options, "--skip-broken")
    assert code == 0, said
    folder = tmp_path / "runs" / f"{root.name}-centroid"  # called after the data
    run = json.loads((folder / "run.json").read_text())
    assert sorted(run["skipped"]) == sorted(broken)
    assert sum(remark.startswith("Left out, because it cannot be read") for remark in run["remarks"]) == 2
    assert not set(broken) & set(load_context([folder]).opened.dataset.media["path"])


def test_check_finds_broken_photos_of_ones_own_without_a_flag(damaged, run_main):
    root, broken = damaged
    code, told, _ = run_main("check", "folder", root)
    assert code == 1 and "a photo cannot be read (2)" in told and all(path in told for path in broken)
    assert "damaged after their first bytes" not in told
    code, told, _ = run_main("check", "folder", root, "--no-photos")
    assert "damaged after their first bytes" in told


def test_predict_leaves_broken_photos_out_and_says_so(damaged, color_model, run_main):
    root, broken = damaged
    code, _, said = run_main("predict", color_model, root)
    assert code == 1 and "--skip-broken" in said
    code, told, said = run_main("predict", color_model, root, "--skip-broken", "--json")
    assert code == 0 and said.count("left out: ") == 2
    assert not any(path in told for path in broken)


def test_nothing_is_left_out_of_an_official_test_part(fungi_world):
    benchmark = BENCHMARKS["fungitastic/closed"]
    dataset = open_dataset("fungitastic", fungi_world, benchmark.subset)
    tested = dataset.media.filter(dataset.media["parts"].list.contains(benchmark.split.test))["path"][0]
    learned = dataset.media.filter(dataset.media["parts"].list.contains(benchmark.split.train))["path"][0]
    refuse_official(benchmark, dataset, [learned])
    with pytest.raises(InputError, match="official test part of fungitastic/closed"):
        refuse_official(benchmark, dataset, [learned, tested])


def test_an_observation_goes_with_its_last_photo(make_release):
    dataset = open_dataset("folder", make_release())
    assert broken_media(dataset) == {} and without_media(dataset, []) is dataset
    less = without_media(dataset, dataset.media["path"].to_list()[:1])
    assert len(less.media) == len(dataset.media) - 1 and set(less.media["observation_id"]) == set(
        less.observations["observation_id"]
    )
