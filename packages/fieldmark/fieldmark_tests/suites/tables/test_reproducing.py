"""Tables of papers: declared right, run cell by cell, shown beside the paper."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from fieldmark.benchmarks.declarations import Reported
from fieldmark.cli.main import app
from fieldmark.errors import InputError, MisuseError
from fieldmark.registry import Registry
from fieldmark.suites.tables import TABLES, Cell, Table, reproduce
from fieldmark.suites.tables.pages import DASH, MEANINGLESS, MINUS, to_html, to_json, to_markdown, write_pages

LITTLE = {"backbone": "resnet10t", "weights": "random", "size": 32}
SMALL = Table(
    name="small",
    title="Two cheap methods and one that cannot be run",
    source="A paper, table 1",
    metrics=("top_1", "macro_f1_all", "macro_f1_union"),
    cells=(
        Cell("frequent", "Guessing", "folder", "frequent", reported=(Reported("", source="table 1", top_1=0.25),)),
        Cell(
            "centroid",
            "Centroid",
            "folder",
            "centroid",
            LITTLE,
            reported=(
                Reported("", source="table 1", top_1=0.9, macro_f1_union=0.5),
                Reported("", source="table 2", top_1=0.95, macro_f1_union=0.5),
            ),
        ),
        Cell("lost", "Lost weights", "folder", "knn", {**LITTLE, "weights": "nowhere.pth"}, group="Others"),
    ),
)


@pytest.fixture
def done(make_release, tmp_path):
    root = make_release()
    return root, tmp_path / "out", reproduce(SMALL, root, tmp_path / "out")


def test_a_cell_that_fails_is_named_with_its_reason_and_the_others_go_on(done):
    _, out, found = done
    assert [outcome.state for outcome in found.outcomes] == ["run", "run", "failed"]
    assert "nowhere.pth: no such file" in found.failed[0].problem
    assert (out / "cells/centroid/scorecard.json").exists() and not (out / "cells/lost").exists()


def test_our_number_stands_beside_the_papers_with_interval_and_difference(done):
    _, _, found = done
    text = to_markdown(found)
    score = found.outcomes[1].scorecard.metrics["top_1"]
    row = next(line for line in text.splitlines() if line.startswith("| Centroid"))
    ours = f"{100 * score.value:.1f} [{100 * score.low:.1f}, {100 * score.high:.1f}]<br>paper 90.0 and 95.0 ("
    assert ours in row
    points = 100 * (score.value - 0.9)
    assert f"({'+' if points >= 0 else MINUS}{abs(points):.1f})" in row
    assert next(line for line in text.splitlines() if line.startswith("| Lost weights")).count(DASH) == 2
    assert "- lost: weights=nowhere.pth: no such file" in text
    page = to_html(found)
    assert "paper 90.0 (table 1), 95.0 (table 2)" in page and "nowhere.pth" in page
    data = to_json(found)
    assert data["cells"][1]["paper"]["table 2"]["top_1"] == 0.95 and data["cells"][2]["state"] == "failed"


def test_a_finished_cell_is_not_run_again_unless_settings_or_data_change(done, make_release):
    root, out, _ = done
    again = reproduce(SMALL, root, out)
    assert [outcome.state for outcome in again.outcomes] == ["stored", "stored", "failed"]
    changed = reproduce(SMALL, root, out, settings={"lengths": "given"})
    assert [outcome.state for outcome in changed.outcomes] == ["stored", "run", "failed"]
    assert "Centroid *" in to_markdown(
        changed
    ) and "run otherwise than declared (*), with lengths=given" in to_markdown(changed)
    next((root / "train").rglob("*.jpg")).unlink()
    assert [outcome.state for outcome in reproduce(SMALL, root, out).outcomes] == ["run", "run", "failed"]


def test_a_cell_that_was_interrupted_before_its_end_is_run_again(done):
    root, out, _ = done
    (out / "cells/frequent/cell.json").unlink()
    assert reproduce(SMALL, root, out, only=["frequent"]).outcomes[0].state == "run"


def test_only_some_cells_are_run_and_the_others_show_what_is_stored(done):
    root, out, _ = done
    found = reproduce(SMALL, root, out, only=["c*"], settings={"lengths": "given"})
    assert [outcome.state for outcome in found.outcomes] == ["stored", "run", "not run"]
    with pytest.raises(MisuseError, match=r"small has no cell called 'centriod'. Did you mean centroid"):
        reproduce(SMALL, root, out, only=["centriod"])
    with pytest.raises(MisuseError, match=r"No cell has a setting called 'lenghts'. Did you mean lengths"):
        reproduce(SMALL, root, out, settings={"lenghts": "given"})


def test_a_setting_reaches_the_cells_that_know_it_and_no_other(done):
    root, out, _ = done
    found = reproduce(SMALL, root, out, settings={"weights": "random"})
    assert [outcome.state for outcome in found.outcomes] == ["stored", "stored", "run"]
    assert found.outcomes[2].changed == {"weights": "random"} and not found.outcomes[0].changed


def test_on_a_world_only_our_numbers_are_shown(make_release, tmp_path):
    root = make_release()
    (root / "WORLD.json").write_text('{"fieldmark_world": 1}')
    found = reproduce(replace(SMALL, cells=SMALL.cells[:1]), root, tmp_path / "out")
    texts = [to_markdown(found), to_html(found), json.dumps(to_json(found))]
    assert all(MEANINGLESS in text and "25.0" not in text and "0.25" not in text for text in texts)
    assert found.outcomes[0].scorecard is not None


def test_a_release_that_cannot_be_opened_is_refused_once_before_any_cell(tmp_path):
    (tmp_path / "empty").mkdir()
    announced = []
    with pytest.raises(InputError, match="empty"):
        reproduce(SMALL, tmp_path / "empty", tmp_path / "out", announce=announced.append)
    assert announced == []


def test_the_verb_prints_the_table_writes_the_pages_and_ends_with_1_where_a_cell_failed(
    make_release, tmp_path, monkeypatch
):
    monkeypatch.setattr("fieldmark.suites.tables.TABLES", Registry("table", {"small": (f"{__name__}:SMALL", "")}))
    command = ["reproduce", "small", "--data", str(make_release()), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert "paper 25.0" in done.stdout and "note: lost: weights=nowhere.pth" in done.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"cells", "table.md", "table.html", "table.json"}
    only = CliRunner().invoke(app, [*command, "--only", "frequent", "--json"])
    assert only.exit_code == 0 and json.loads(only.stdout)["cells"][0]["state"] == "stored"


def test_without_a_template_engine_the_page_is_left_out_and_nothing_is_lost(done, tmp_path, monkeypatch):
    from fieldmark.errors import MissingExtraError

    def missing(module, purpose):
        raise MissingExtraError("report", "jinja2", purpose)

    monkeypatch.setattr("fieldmark.suites.tables.pages.require", missing)
    assert [path.name for path in write_pages(done[2], tmp_path / "pages")] == ["table.md", "table.json"]


# Typed from the paper once more, line by line: FungiTastic-M 224, FungiTastic 224, FungiTastic-M 384, FungiTastic 384.
TABLE_4 = """
ResNet-50          61.7 79.3 35.2  62.4 77.3 32.8  66.3 82.9 39.8  66.9 80.9 36.3
ResNeXt-50         62.3 79.6 36.0  63.6 78.3 33.8  67.0 84.0 39.9  68.1 81.9 37.5
EfficientNet-B3    61.9 79.2 36.0  64.8 79.4 34.7  67.4 82.8 40.5  68.2 81.9 37.2
EfficientNet-v2-B3 65.5 82.1 38.1  66.0 80.0 36.0  70.3 85.8 43.9  71.6 84.4 40.7
ConvNeXt-Base      66.9 84.0 41.0  67.1 81.3 36.4  70.2 85.7 43.9  71.2 84.2 40.0
ViT-Base/p16       68.0 84.9 39.9  69.7 82.8 38.6  73.9 87.8 46.3  74.9 86.3 43.9
Swin-Base/p4w12    69.2 85.0 42.2  69.3 82.5 38.2  72.9 87.0 47.1  74.3 86.4 43.1
BEiT-Base/p16      69.1 84.6 42.3  70.2 83.2 39.8  74.8 88.3 48.5  75.3 86.7 44.5
"""
GROUPS = ("FungiTastic-M, 224 px", "FungiTastic, 224 px", "FungiTastic-M, 384 px", "FungiTastic, 384 px")


def test_table_4_is_declared_as_the_paper_prints_it():
    table = TABLES["fungitastic-table4"]
    assert len(table.cells) == 32 and tuple(dict.fromkeys(cell.group for cell in table.cells)) == GROUPS
    by_place = {(cell.row, cell.group): cell for cell in table.cells}
    for line in TABLE_4.strip().splitlines():
        row, *numbers = line.split()
        for group, start in zip(GROUPS, range(0, 12, 3), strict=True):
            cell = by_place[row, group]
            first = cell.reported[0]
            found = [first.values[name] for name in ("top_1", "top_3", "macro_f1_all")]
            assert first.source == "FungiTastic, table 4"
            assert [f"{100 * value:.1f}" for value in found] == numbers[start : start + 3]
            size = group.rpartition(" ")[0].rpartition(" ")[2]
            assert cell.method == "finetune" and cell.settings["recipe"].endswith(f"-{size}")
            assert cell.benchmark == ("fungitastic-mini/closed" if "-M" in group else "fungitastic/closed")


# Top-1, F1, top-3; the F1 of 1-NN over the union of truth and answers, all others over all classes.
TABLE_5 = """
clip-1nn           6.1 2.8 -
clip-centroid      7.2 2.2 13.0
dinov2-1nn        17.4 8.4 -
dinov2-centroid   17.9 5.9 27.8
bioclip-1nn       18.8 9.1 -
bioclip-centroid  21.8 6.8 32.6
beit_base-224     11.0 2.1 17.4
beit_base-384     11.4 2.1 18.4
convnext_base-224 14.0 2.7 23.1
convnext_base-384 15.4 2.9 23.6
vit_base-224      13.9 2.7 21.5
vit_base-384      19.5 3.7 29.0
"""


def test_table_5_is_declared_as_the_paper_prints_it_and_run_as_the_organizers_do():
    table = TABLES["fungitastic-table5"]
    lines = [line.split() for line in TABLE_5.strip().splitlines()]
    assert [cell.name for cell in table.cells] == [line[0] for line in lines]
    for cell, (name, top_1, f1, top_3) in zip(table.cells, lines, strict=True):
        over = "macro_f1_union" if name.endswith("-1nn") else "macro_f1_all"
        expected = {"top_1": top_1, over: f1} | ({} if top_3 == "-" else {"top_3": top_3})
        assert {key: f"{100 * value:.1f}" for key, value in cell.reported[0].values.items()} == expected
        if cell.method == "finetune":
            assert cell.settings == {"recipe": f"fungitastic-{name}", "loss": "cross-entropy"}
        else:
            assert cell.settings["resize"] == "squash" and cell.settings["size"] == 224
            assert cell.settings["embeddings"] == "quantized" and cell.settings["lengths"] == "given"


@pytest.mark.parametrize("table", ["fungitastic-table4", "fungitastic-table5"])
def test_every_cell_has_a_method_and_settings_that_exist(table):
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.fitting import prepare

    for cell in TABLES[table].cells:
        configured = prepare(cell.method, cell.settings, BENCHMARKS[cell.benchmark].task)
        assert configured.method.sees == "item"
        assert (not configured.features) == (cell.method == "finetune")
