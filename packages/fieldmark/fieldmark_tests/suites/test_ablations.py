"""`fieldmark ablate`: every modality alone, each left out, all; compared on the same units, shown on the page."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import fieldmark
from fieldmark.cli.main import app
from fieldmark.errors import InputError, MisuseError

MODALITIES = ("habitat+substrate", "date", "place")
SETTINGS = {"place.waves": "2"}


@pytest.fixture(scope="module")
def made(fungi_world, tmp_path_factory):
    out = tmp_path_factory.mktemp("ablation") / "out"
    result = fieldmark.ablate("fungitastic/closed", fungi_world, out, modalities=MODALITIES, settings=SETTINGS)
    return result, out


def test_every_modality_stands_alone_and_is_left_out_once(made):
    result, out = made
    reads = {row.name: row.modalities for row in result.rows}
    assert reads == {
        "all": MODALITIES,
        **{f"only-{name}": (name,) for name in MODALITIES},
        **{f"without-{name}": tuple(one for one in MODALITIES if one != name) for name in MODALITIES},
    }
    assert result.metric == "macro_f1_all" and result.simulated and result.units > 10
    for row in result.rows:
        run = json.loads((out / row.name / "run.json").read_text())
        assert run["modalities"] == [name for group in row.modalities for name in group.split("+")]
        assert (
            row.score.value
            == json.loads((out / row.name / "scorecard.json").read_text())["metrics"]["macro_f1_all"]["value"]
        )
    assert json.loads((out / "ablation.json").read_text())["rows"][0]["run"] == "all"
    assert not (out / "members").exists()


def test_differences_are_paired_as_in_a_comparison_of_two_runs(made):
    result, out = made
    row = next(row for row in result.rows if row.name == "without-date")
    pair = fieldmark.compare([out / "without-date", out / "all"])
    apart = pair.outcome.differences[0]
    sign = 1 if pair.names[0] == "without-date" else -1
    assert row.less_all.value == pytest.approx(sign * apart.value) and row.less_all.p_value == apart.p_value
    assert row.less_first is not None and result.rows[0].less_all is None and result.rows[1].less_first is None


def test_a_second_call_makes_nothing_again_and_other_settings_are_refused(made, fungi_world):
    result, out = made
    before = {path: path.stat().st_mtime_ns for path in out.glob("*/run.json")}
    again = fieldmark.ablate("fungitastic/closed", fungi_world, out, modalities=MODALITIES, settings=SETTINGS)
    assert [row.to_json() for row in again.rows] == [row.to_json() for row in result.rows]
    assert {path: path.stat().st_mtime_ns for path in out.glob("*/run.json")} == before
    with pytest.raises(InputError, match="found an ablation with seed = 0, expected seed = 1"):
        fieldmark.ablate("fungitastic/closed", fungi_world, out, modalities=MODALITIES, settings=SETTINGS, seed=1)


def test_the_page_shows_the_table_and_the_picture(made, tmp_path):
    _, out = made
    done = CliRunner().invoke(app, ["report", str(out), "--out", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "page.html").read_text()
    assert "Modalities, alone and left out" in page and "without habitat+substrate" in page
    assert page.count("less habitat+substrate alone") == 1 and 'aria-label="macro_f1_all of each run' in page


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"modalities": ["date"]}, "at least two modalities; found date"),
        ({"modalities": ["date", "habitt"]}, "has no input 'habitt'. Did you mean habitat"),
        (
            {"modalities": ["date", "place"], "settings": {"habitat.categories": "9"}},
            "no input called 'habitat' to set",
        ),
        ({"modalities": ["date", "observer"]}, "observer is left out on purpose"),
        ({"settings": {"inputs": "date"}}, "name them with --modalities"),
        ({"metric": "top_11"}, "no metric called 'top_11'"),
        ({"method": "knn"}, "no setting called 'inputs'"),
    ],
)
def test_what_cannot_be_ablated_is_refused_and_nothing_is_left(fungi_world, tmp_path, options, sentence):
    with pytest.raises(MisuseError, match=sentence):
        fieldmark.ablate("fungitastic/closed", fungi_world, tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []


def test_linear_puts_the_inputs_of_a_modality_side_by_side(fungi_world, tmp_path):
    both = ["habitat+substrate", "date"]
    result = fieldmark.ablate("fungitastic/closed", fungi_world, tmp_path / "out", modalities=both, method="linear")
    assert [row.name for row in result.rows] == ["all", "only-habitat+substrate", "only-date"]


def test_a_folder_with_something_else_in_it_is_left_alone(fungi_world, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="found something else, expected nothing, or an ablation to go on with"):
        fieldmark.ablate("fungitastic/closed", fungi_world, tmp_path, modalities=MODALITIES)
