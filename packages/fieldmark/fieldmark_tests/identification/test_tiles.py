"""Plots answered tile by tile."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.identification.tiles import listed, tile_votes, tiles_of
from fieldmark.runs.label_scores import LabelScores
from fieldmark.tables.labels import Labels
from fieldmark_tests.fixtures import COLORS


def test_tiles_cover_the_photo_once_and_reach_over_where_asked():
    boxes = tiles_of(3)
    assert sum((box.right - box.left) * (box.bottom - box.top) for box in boxes) == pytest.approx(1.0)
    wide = tiles_of(2, overlap=0.5)
    assert wide[0] == (0.0, 0.0, 0.75, 0.75) and wide[3] == (0.25, 0.25, 1.0, 1.0)


def test_a_plot_lists_what_grows_in_any_of_its_tiles(make_release, tmp_path, run_main):
    fieldmark.fit("folder", make_release(per_class=10), "linear", tmp_path / "run", settings={"size": 32})
    names = sorted(COLORS)
    plot = np.zeros((96, 96, 3), dtype=np.uint8)
    plot[:, :48], plot[:, 48:] = COLORS[names[0]], COLORS[names[1]]
    (tmp_path / "plots").mkdir()
    Image.fromarray(plot).save(tmp_path / "plots" / "CBN-A1.png")
    out = tmp_path / "plots.csv"
    code, printed, _ = run_main("tile", tmp_path / "run", tmp_path / "plots", "--out", out, "--tiles", 2)
    assert code == 0 and "1 plots" in printed
    header, line = out.read_text().splitlines()
    assert header == '"quadrat_id","species_ids"' and line.startswith('"CBN-A1",')
    votes = tile_votes(fieldmark.load_model(tmp_path / "run"), [tmp_path / "plots" / "CBN-A1.png"], tiles=2)
    best = {votes.labels.names[code] for code in np.argsort(-votes.scores[0])[:2]}
    assert best == set(names[:2])


def test_too_many_are_cut_and_none_is_never_the_answer():
    votes = LabelScores(("a", "b"), Labels(("x", "y", "z")), np.array([[0.9, 0.8, 0.7], [0.1, 0.2, 0.05]]), "score")
    answers = listed(votes, at_least=0.5, most=2).decisions
    assert answers is not None
    assert [answers.of(row).tolist() for row in range(2)] == [[0, 1], [1]]


def test_a_benchmark_without_lists_is_refused(make_release, tmp_path, run_main):
    code, _, said = run_main("tile", tmp_path, tmp_path, "--out", tmp_path / "r.csv", "--benchmark", "plantclef-2020")
    assert code != 0 and "no lists of labels" in said


def test_two_plots_of_one_name_are_refused(tmp_path):
    with pytest.raises(MisuseError, match="Two photos are called a"):
        tile_votes(None, [tmp_path / "a.jpg", tmp_path / "b" / "a.jpg"])  # type: ignore[arg-type]
