"""What the page as a whole promises."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.fitting import fit
from fieldmark.reports import report
from fieldmark.reports.sections import SECTIONS
from fieldmark.scoring import SCORECARD_FILE, Scorecard
from fieldmark_tests.reports.by_hand import (
    FUNGI,
    FUNGI_TAXA,
    MakeRelease,
    MakeRun,
    noisy,
    perfect,
    soft,
    write_release,
    write_run,
)

VOID = {"meta", "link", "img", "input", "br", "line", "circle", "path", "use", "rect"}


class Page(HTMLParser):
    """A page taken apart: every tag with its attributes, all text, and tags that were not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.misnested: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.misnested.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def test_photos_without_a_table_of_observations_are_not_called_observations(make_release, make_run, tmp_path):
    root = make_release({"Alba alba": {"train": 6, "test": 4}, "Alba nigra": {"train": 6, "test": 4}})
    (root / "observations.csv").unlink()
    page = write([make_run(root, perfect)], tmp_path)[1]
    lead = "8 test photos, 2 classes. Each photo counts as one observation"
    assert lead in page.text and "8 observations" not in page.text


def write(runs: list[Path], tmp_path: Path, **options: object) -> tuple[str, Page]:
    path = report(runs, tmp_path / "pages" / "page.html", **options)  # type: ignore[arg-type]
    html = path.read_text(encoding="utf-8")
    return html, Page(html)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Page]:
    """The page about one run on the five fungi, for the tests that only read it."""
    folder = tmp_path_factory.mktemp("written")
    root = write_release(folder / "release", FUNGI, taxa=FUNGI_TAXA, dated=True, located=True)
    return write([write_run(folder / "run", root, noisy)], folder)


def test_the_page_asks_nothing_of_the_network(written: tuple[str, Page]) -> None:
    html, page = written
    for _, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "srcset", "action"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")), value
    assert "http:" not in html and "https:" not in html
    assert "@import" not in html and not re.search(r"url\((?!#)", html)


def test_the_page_is_well_formed_and_small(written: tuple[str, Page]) -> None:
    html, page = written
    assert page.open == [] and page.misnested == []
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    referred = set(re.findall(r'(?:xlink:href="|href="|url\()#([^")]+)', html))
    assert referred <= set(ids)
    assert len(html) < 2_000_000


def test_figures_and_photos_say_what_they_show(written: tuple[str, Page]) -> None:
    _, page = written
    assert all(attributes.get("alt") for tag, attributes in page.tags if tag == "img")
    assert all(attributes.get("aria-label") for tag, attributes in page.tags if tag == "svg")
    assert all(attributes.get("scope") for tag, attributes in page.tags if tag == "th")


@pytest.mark.parametrize("world", [True, False])
def test_the_title_says_simulated_exactly_for_worlds(
    make_release: MakeRelease, make_run: MakeRun, tmp_path: Path, world: bool
) -> None:
    html, page = write([make_run(make_release(FUNGI, world=world), noisy)], tmp_path)
    title = html[html.index("<title>") + 7 : html.index("</title>")]
    assert title == ("folder: by hand (simulated data)" if world else "release: by hand")  # own data: their folder
    assert ("nothing here says how well" in page.text) == world


def test_labels_are_escaped_everywhere(written: tuple[str, Page]) -> None:
    html, page = written
    assert "<b>" not in html and "<i>bog" not in html
    assert "Boletus <b>&nus" in page.text


def test_the_same_runs_give_the_same_page(fungi: Path, make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(fungi, noisy)
    assert write([run], tmp_path)[0] == write([run], tmp_path)[0]


def test_a_page_tells_no_paths_of_the_machine(fungi: Path, make_run: MakeRun, tmp_path: Path) -> None:
    html, _ = write([make_run(fungi, noisy)], tmp_path)
    assert str(tmp_path) not in html


def test_sections_without_material_are_left_out(make_release: MakeRelease, make_run: MakeRun, tmp_path: Path) -> None:
    bare = {"one thing": {"train": 3, "val": 1, "test": 2}, "other thing": {"train": 3, "val": 1, "test": 2}}
    _, page = write([make_run(make_release(bare), noisy, scale="score")], tmp_path)
    sections = {attributes["id"] for tag, attributes in page.tags if tag == "section"}
    assert sections >= {"scores", "look", "long-tail", "confusions", "origin"}
    assert not sections & {"observations", "where-when", "tree", "ranks", "reliability", "season", "collectors"}


def test_every_section_stands_where_there_is_material(written: tuple[str, Page]) -> None:
    _, page = written
    sections = [attributes["id"] for tag, attributes in page.tags if tag == "section"]
    assert set(sections) >= {
        "scores", "look", "observations", "where-when", "long-tail", "tree",
        "confusions", "ranks", "reliability", "season", "origin",
    }  # fmt: skip
    assert not set(sections) & {"reported", "soundscapes", "sites", "species", "unknown", "costs", "collectors"}
    assert sections == [name for name in SECTIONS if name in sections]  # in the order of the registry


def test_a_fitted_run_is_reported_through_the_library(fungi: Path, tmp_path: Path) -> None:
    fit("folder", fungi, "frequent", tmp_path / "frequent")
    card = Scorecard.read(tmp_path / "frequent" / SCORECARD_FILE)
    path = fieldmark.report([tmp_path / "frequent"], tmp_path / "page.html")
    assert path == tmp_path / "page.html"
    page = Page(path.read_text(encoding="utf-8"))
    assert f"{100 * card.metrics['top_1'].value:.1f}%" in page.text.replace(" %", "%")


def test_perfect_answers_have_no_confusions(fungi: Path, make_run: MakeRun, tmp_path: Path) -> None:
    _, page = write([make_run(fungi, perfect)], tmp_path)
    assert "No confusions. Correct: 23 of 23 photos." in page.text


def test_a_missing_interval_gives_its_reason(make_release: MakeRelease, make_run: MakeRun, tmp_path: Path) -> None:
    root = make_release({"a": {"train": 2, "val": 1, "test": 1}, "b": {"train": 2, "val": 1}})
    html, page = write([make_run(root, perfect)], tmp_path)
    assert "no interval" in page.text
    assert 'title="one unit only: nothing to compare it with"' in html


def test_val_is_reported_where_there_is_no_test(make_release: MakeRelease, make_run: MakeRun, tmp_path: Path) -> None:
    root = make_release({"a": {"train": 4, "val": 3}, "b": {"train": 4, "val": 3}})
    _, page = write([make_run(root, noisy)], tmp_path)
    assert "6 val photos from 4 observations, 2 classes." in page.text


def test_a_thousand_classes_stay_readable(make_release: MakeRelease, make_run: MakeRun, tmp_path: Path) -> None:
    root = make_release({f"class {n:04d}": {"train": 1, "val": n < 9, "test": n % 3 == 0} for n in range(1000)})
    html, page = write([make_run(root, noisy)], tmp_path)
    assert "neighbors in frequency share one" in page.text
    assert len(html) < 1_000_000


def test_an_unreadable_photo_does_not_stop_the_page(fungi: Path, make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(fungi, noisy)
    for photo in (fungi / "test").rglob("*.jpg"):
        photo.write_bytes(b"not a photo")
    _, page = write([run], tmp_path)
    assert "no photo" in page.text


def test_a_moved_release_is_found_with_data(fungi: Path, make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(fungi, noisy)
    moved = fungi.rename(tmp_path / "moved")
    with pytest.raises(InputError, match="pass its new place with --data"):
        report([run], tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
    assert report([run], tmp_path / "page.html", data=moved).exists()


def test_a_changed_release_is_refused(fungi: Path, make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(fungi, noisy)
    taxa = (fungi / "taxa.csv").read_text()
    (fungi / "taxa.csv").write_text(taxa.replace("Galerina,true", "Galerina,false"))
    with pytest.raises(InputError, match="The release changed since"):
        report([run], tmp_path / "page.html")


def test_runs_on_other_data_are_refused(make_release: MakeRelease, make_run: MakeRun, tmp_path: Path) -> None:
    first = make_run(make_release(FUNGI, name="first"), noisy, name="run-1")
    other = make_run(make_release(FUNGI, taxa=FUNGI_TAXA, name="other"), noisy, name="run-2")
    with pytest.raises(InputError, match=r"run-2: found data with the digest .* as in .*run-1"):
        report([first, other], tmp_path / "page.html")


def test_runs_of_other_benchmarks_are_refused(fungi: Path, make_run: MakeRun, tmp_path: Path) -> None:
    first, other = make_run(fungi, noisy, name="run-1"), make_run(fungi, noisy, name="run-2", version="0")
    with pytest.raises(InputError, match=r"found the benchmark folder \(version 0\)"):
        report([first, other], tmp_path / "page.html")


def test_no_runs_and_other_folders_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="at least one run"):
        report([], tmp_path / "page.html")
    with pytest.raises(InputError, match="the folder of a run"):
        report([tmp_path], tmp_path / "page.html")


def test_scores_that_only_rank_are_reported_by_genus(fungi: Path, make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(fungi, lambda opened, truth: soft(np.roll(truth, 1), len(opened.view.labels)), scale="score")
    _, page = write([run], tmp_path)
    sections = {attributes["id"] for tag, attributes in page.tags if tag == "section"}
    assert "ranks" in sections and "reliability" not in sections


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_a_missing_extra_is_named(module: str) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from fieldmark.errors import MissingExtraError\nfrom fieldmark.reports import report\n"
        "try:\n    report(['x'], 'y')\nexcept MissingExtraError as error:\n    print(error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"needs {module}, which is not installed: pip install 'fieldmark[report]'." in answer.stdout
