"""docs/results.md: every number of a claim is in the study that it links to, and every study has a page."""

from __future__ import annotations

import re

import pytest

from fieldmark_tests.places import DOCS, ROOT
from studies.evidence.results import RESULTS

STUDIES = ROOT / "studies" / "pages"
ROWS = re.findall(r"^\| (.+?) \| (.*?) \| (.*?) \|$", (DOCS / "results.md").read_text(encoding="utf-8"), re.MULTILINE)
# Numbers that describe the claim rather than the result.
DESCRIBING = {"95", "0"}


@pytest.mark.parametrize("row", [row for row in ROWS if "results/" in row[2]], ids=lambda row: row[0])
def test_numbers_of_a_claim_are_in_its_study(row):
    _, answer, links = row
    study = "".join(
        (STUDIES / f"{name}.md").read_text(encoding="utf-8") for name in re.findall(r"results/([\w-]+)\.md", links)
    )
    numbers = re.findall(
        r"-?\d[\d,.]*\d(?:e-\d+)?|\d", re.sub(r"`[^`]*`|Lite\d|macro-F1|exit code \d|top-\d", "", answer)
    )
    wanted = [number.replace(",", "") for number in numbers if number not in DESCRIBING]
    assert [number for number in wanted if number not in study.replace(",", "")] == []


def test_every_study_with_a_page_has_a_result():
    pages = {path.stem for path in STUDIES.glob("*.md")} - {"performance"}
    assert pages and all((RESULTS / f"{name}.json").exists() for name in pages)
