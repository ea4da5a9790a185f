"""What people type into the search of the site leads to the page that answers it (`searches.csv`)."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fieldmark_tests.places import DOCS
from handbook.hooks import generated

HERE = Path(__file__).parent
with (HERE / "searches.csv").open(encoding="utf-8") as file:
    SEARCHES = list(csv.DictReader(file))
HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)


def sections() -> list[dict[str, str | float]]:
    """The sections of all pages that searches find."""
    written = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
    made: list[dict[str, str | float]] = []
    for page, text in (written | generated(DOCS)).items():
        if not text.startswith("---\nsearch: {exclude: true}"):
            boost = re.match(r"---\nsearch: \{boost: ([\d.]+)\}", text)
            _, *parts = HEADING.split(text)
            of_page = {"page": page, "boost": float(boost[1]) if boost else 1.0}
            made += [of_page | {"title": title, "text": body} for title, body in zip(*[iter(parts)] * 2, strict=True)]
    return made


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    mkdocs = pytest.importorskip("mkdocs.contrib.search")
    lunr, node = next(Path(mkdocs.__file__).parent.rglob("lunr.js"), None), shutil.which("node")
    if node is None or lunr is None:
        pytest.skip("needs node, and lunr.js of MkDocs")
    asked = [row["search"] for row in SEARCHES]
    done = subprocess.run(
        [node, HERE / "search_index.js", lunr],
        input=json.dumps({"sections": sections(), "searches": asked}),
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(asked, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("row", SEARCHES, ids=lambda row: f"{row['who']}: {row['search']}")
def test_a_search_leads_to_the_page_that_answers_it(found, row):
    assert row["page"] in found[row["search"]][:2]
