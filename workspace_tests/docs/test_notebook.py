"""Objects in a notebook: tables and pictures that say what the numbers say, and a bar for long work."""

from __future__ import annotations

import json
import re

import pytest
from IPython.core.formatters import HTMLFormatter, PNGFormatter

import fieldmark
from fieldmark.errors import MisuseError
from fieldmark.identification import identify
from fieldmark.models import load_model
from fieldmark.work import progress as progress_module
from fieldmark_tests.places import DOCS

NOTEBOOK = DOCS / "notebooks" / "first-look.ipynb"
SETTINGS = {"backbone": "resnet10t", "weights": "random", "size": 32}
PNG = b"\x89PNG"
# What a notebook asks of an object.
as_html, as_png = HTMLFormatter(), PNGFormatter()


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    from fieldmark_tests.fixtures import COLORS, save_photo

    root = tmp_path_factory.mktemp("notebook")
    for number, (label, color) in enumerate(COLORS.items()):
        for photo in range(8):
            part = "train" if photo < 4 else "val" if photo % 2 else "test"
            save_photo(root / "photos" / part / label / f"{number}-{photo}.jpg", color, 10 * number + photo)
    rows = [f"{label},Fungi,{str(label == 'Alba alba').lower()}" for label in COLORS]
    (root / "photos" / "taxa.csv").write_text("\n".join(["label,kingdom,poisonous", *rows]) + "\n")
    results = [
        fieldmark.fit("folder", root / "photos", method, root / method, settings=settings)
        for method, settings in (("centroid", SETTINGS), ("frequent", {}))
    ]
    return root, results


def test_a_scorecard_shows_its_metrics_with_intervals(fitted):
    card = fitted[1][0].scorecard
    frame, html = card.to_frame(), as_html(card)
    assert frame["metric"].to_list() == list(card.metrics)
    assert frame["value"].to_list() == [score.value for score in card.metrics.values()]
    assert all(f"{100 * score.value:.1f}" in html for score in card.metrics.values())
    assert as_png(card.plot()).startswith(PNG)
    assert "centroid" in as_html(fitted[1][0])


def test_a_comparison_shows_who_is_ahead(fitted, tmp_path):
    root, _ = fitted
    compared = fieldmark.compare([root / "centroid", root / "frequent"])
    frame = compared.to_frame()
    assert frame["run"].to_list() == list(compared.names) and frame["behind"].to_list()[0] is None
    assert frame["behind"].to_list()[1] == pytest.approx(compared.scores[0].value - compared.scores[1].value)
    assert all(name in as_html(compared) for name in compared.names)
    assert as_png(compared.plot(tmp_path / "ranks.png")).startswith(PNG) and (tmp_path / "ranks.png").exists()
    with pytest.raises(MisuseError, match=r"expected one of \.png"):
        compared.plot(tmp_path / "ranks.xls")


def test_a_model_shows_labels_and_scores(fitted):
    model = load_model(fitted[0] / "centroid")
    assert model.to_frame()["label"].to_list() == list(model.labels.names)
    assert "Never eat a mushroom" in as_html(model) and "score on test" in as_html(model)
    assert as_png(model.plot()).startswith(PNG)


def test_an_answer_shows_names_and_dangers(fitted):
    root, _ = fitted
    answer = identify(next((root / "photos" / "test").rglob("*.jpg")), root / "centroid")
    frame, html = answer.to_frame(), as_html(answer)
    assert frame["label"].to_list() == [name.label for name in answer.names]
    assert "BE CAREFUL" in html and answer.names[0].shown in html
    assert as_png(answer.plot()).startswith(PNG)


def test_a_dataset_shows_its_parts_and_its_long_tail(fitted):
    photos = fieldmark.dataset("folder", fitted[0] / "photos")
    assert len(photos.to_frame()) == 24
    html = as_html(photos)
    assert "taken for observations" in html and "<th>train</th>" in html
    assert as_png(photos.plot()).startswith(PNG)


def test_names_that_are_markup_stay_text(fitted):
    from fieldmark.notebooks import html_page, html_table

    assert "<script>" not in html_table(["<script>"], [["<script>", "<script>"]]) + html_page("<script>")


def test_long_work_has_a_bar_that_changes_in_place(monkeypatch):
    shown: list[str] = []

    class Handle:
        def update(self, html):
            shown.append(html.data)

    class ZMQInteractiveShell:
        pass

    import IPython
    import IPython.display

    monkeypatch.setattr(IPython, "get_ipython", ZMQInteractiveShell)
    monkeypatch.setattr(IPython.display, "display", lambda html, display_id: (shown.append(html.data), Handle())[1])
    with progress_module.progress("reading <photos>", 3) as tick:
        tick(3)
    assert "0 of 3" in shown[0] and "3 of 3" in shown[-1] and "&lt;photos&gt;" in shown[0]


def test_every_cell_of_the_notebook_names_what_there_is():
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells and all(not cell["outputs"] for cell in cells)
    for cell in cells:
        compile("".join(cell["source"]), "notebook", "exec")
    used = set(re.findall(r"fieldmark\.(\w+)\(", "".join(line for cell in cells for line in cell["source"])))
    assert used <= set(fieldmark.__all__) and {"fit", "compare", "identify"} <= used
