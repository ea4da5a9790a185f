"""`docs/bring-your-own-model.md` and its notebook run as they stand, in a folder with photos."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark.runs.provenance import Run
from fieldmark_tests.fixtures import write_release
from fieldmark_tests.places import DOCS

PAGE = (DOCS / "bring-your-own-model.md").read_text(encoding="utf-8")
NOTEBOOK = DOCS / "notebooks" / "bring-your-own.ipynb"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("own-model")
    write_release(root / "my-photos", per_class=8)
    return root


def test_every_block_of_the_page_runs(folder, monkeypatch):
    monkeypatch.chdir(folder)
    names: dict[str, object] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)
    for line in re.search(r"```console\n(.*?)```", PAGE, re.DOTALL)[1].splitlines():
        done = CliRunner().invoke(app, shlex.split(line.removeprefix("$ fieldmark ")))
        assert done.exit_code == 0, f"{line}\n{done.output}{done.exception!r}"
    declared = {name: Run.read(Path("runs") / name).external_data for name in ("sklearn", "torch", "colors", "mine")}
    assert declared["torch"] == [] and declared["colors"] is None and declared["mine"] is None
    assert "ImageNet" in declared["sklearn"][0]
    assert set(names["compared"].names) == {"StandardScaler+LogisticRegression", "lda", "mine", "mine.csv"}
    assert names["card"].provenance["external_data"] == ["ImageNet-21k"]


def test_the_page_is_found_by_the_names_of_the_libraries():
    for word in ("pytorch", "timm", "hugging face", "scikit-learn", "sklearn", "open_clip", "transformers"):
        assert word in PAGE.lower(), word


def test_the_notebook_puts_a_pipeline_a_module_and_a_file_into_one_table(folder, monkeypatch):
    monkeypatch.chdir(folder)
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in cells) and all(len(cell["source"]) <= 12 for cell in cells)
    names: dict[str, object] = {}
    for cell in cells:
        exec(compile("".join(cell["source"]), "notebook", "exec"), names)
    compared = names["compared"]
    assert set(compared.names) == {"pipeline", "module", "elsewhere"}
    rows = {row["run"]: row["value"] for row in compared.to_frame().iter_rows(named=True)}
    assert rows["module"] == rows["elsewhere"]  # the same answers, in another order
    assert names["mine"].provenance["external_data"] is None
    table = {row.model: row for row in names["table"].rows}
    assert set(table) == {"pipeline", "module", "elsewhere"} and all(row.standing for row in table.values())
    assert table["module"].scores["mine"] == table["elsewhere"].scores["mine"]
    assert table["elsewhere"].external_data is None and table["module"].external_data == ()
