"""The documentation as a site: generated pages say what the code says, and no link leads nowhere.

`make docs` builds it; what fails there in strict mode is found here without building anything.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest
import yaml

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.selection import conventions
from fieldmark.methods import METHODS
from fieldmark.steps import STEPS
from fieldmark_tests.places import ROOT
from handbook.benchmark_pages import file_of
from handbook.hooks import generated, study_pages, unlisted
from handbook.markdown import anchor

DOCS = ROOT / "docs"
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    written = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
    return written | generated(DOCS)


def anchors_of(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    own = {match[1] for heading in headings if (match := re.search(r"\{#([\w-]+)\}", heading))}
    return own | {anchor(heading) for heading in headings}


def test_no_link_leads_nowhere(pages):
    broken = []
    for name, text in pages.items():
        for found in LINK.findall(CODE.sub("", FENCE.sub("", text))):
            link = found[0] or found[1]
            if link.startswith(("http://", "https://", "mailto:")):
                continue
            place, _, heading = link.partition("#")
            target = PurePosixPath(name) if not place else PurePosixPath(name).parent / place
            target = PurePosixPath(*_resolved(target.parts))
            if str(target) not in pages and not (DOCS / target).is_file():
                broken.append(f"{name}: {link}")
            elif heading and str(target) in pages and heading not in anchors_of(pages[str(target)]):
                broken.append(f"{name}: {link} (no such heading)")
    assert broken == []


def _resolved(parts):
    kept: list[str] = []
    for part in parts:
        kept = kept[:-1] if part == ".." else [*kept, part]
    return kept


def test_links_of_pages_at_the_root_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for found in LINK.findall(CODE.sub("", FENCE.sub("", text))):
            link = (found[0] or found[1]).partition("#")[0]
            assert not link or link.startswith("http") or (ROOT / link).exists(), f"{name}: {link}"


def test_every_page_is_in_the_menu(pages):
    config = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.SafeLoader)
    listed = set(re.findall(r"[\w/-]+\.md", str(config["nav"])))
    assert listed <= set(pages)
    # Hooks list the pages of benchmarks and studies, and those by hand that nobody has put into the menu yet.
    by_hooks = {file_of(name) for name in BENCHMARKS} | {f"results/{name}.md" for name in study_pages()}
    assert set(pages) - listed == by_hooks | set(unlisted(str(config["nav"]), DOCS))


def test_a_benchmark_has_a_page_with_all_that_it_declares(pages):
    for name in BENCHMARKS:
        page, benchmark = pages[file_of(name)], BENCHMARKS[name]
        for heading in ("Task", "Split", "Metrics", "Run format", "Results", "Peculiarities"):
            assert f"\n## {heading}\n" in page, name
        assert all(f"`{metric}`" in page for metric in conventions(benchmark)), name
        assert all(one.what in page and one.source in page for one in benchmark.reported), name
        assert benchmark.provisional in page and all(sentence in page for sentence in benchmark.not_known), name


def test_the_reference_names_every_method_step_and_command(pages):
    assert all(f"\n## {name}\n" in pages["reference/methods.md"] for name in METHODS)
    assert all(f"\n## {name}\n" in pages["reference/steps.md"] for name in STEPS)
    assert "{#fieldmark-challenge-reveal}" in pages["reference/commands.md"]
    assert "| `--yes` |" in pages["reference/commands.md"]


def test_the_site_asks_no_other_host():
    config = yaml.load((ROOT / "mkdocs.yml").read_text(), yaml.SafeLoader)
    assert config["theme"]["font"] is False and config["strict"] is True
    assert "extra_javascript" not in config and all(not one.startswith("http") for one in config["extra_css"])
