"""Hooks of MkDocs: adds the generated pages, and those that stand at the root of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from fieldmark.benchmarks import BENCHMARKS
from handbook import benchmark_pages, commands, names, settings

ROOT = Path(__file__).parents[2]


def on_config(config: Any) -> Any:
    """Puts a page for each benchmark into the menu, and pages that it does not name yet under "More"."""
    pages = [{name: benchmark_pages.file_of(name)} for name in BENCHMARKS]
    further: list[str] = unlisted(str(config.nav), Path(config.docs_dir))
    for entry in config.nav:
        if "Benchmarks" in entry:
            entry["Benchmarks"] += [{"One by one": pages}]
        if "How to" in entry and further:
            entry["How to"] += [{"More": further}]
    return config


def unlisted(menu: str, docs: Path) -> list[str]:
    """The pages written by hand that a menu does not name."""
    named = set(re.findall(r"[\w/.-]+\.md", menu))
    return sorted(place for path in docs.rglob("*.md") if (place := path.relative_to(docs).as_posix()) not in named)


def on_files(files: Files, config: Any) -> Files:
    """Adds what is generated."""
    for place, text in generated(Path(config.docs_dir)).items():
        files.append(File.generated(config, place, content=text))
    return files


def generated(docs: Path) -> dict[str, str]:
    """Every generated page by its place in the site."""
    results = (docs / "results.md").read_text(encoding="utf-8")
    return {
        "reference/commands.md": commands.page(),
        "reference/methods.md": settings.methods_page(),
        "reference/steps.md": settings.steps_page(),
        "reference/features.md": settings.features_page(),
        "reference/recipes.md": settings.recipes_page(),
        "benchmarks/index.md": benchmark_pages.overview(),
        **{benchmark_pages.file_of(name): benchmark_pages.page(name, results) for name in BENCHMARKS},
        "names.md": names.page(docs),
        "contributing.md": from_root("CONTRIBUTING.md"),
        "changelog.md": from_root("CHANGELOG.md"),
    }


def from_root(name: str) -> str:
    """A page that stands at the root of the repository, with its links as they are within the site."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.sub(r"\]\(docs/", "](", text)
