"""Hooks of MkDocs: adds the generated pages, and those that stand at the root of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from fieldmark.benchmarks import BENCHMARKS
from handbook import benchmark_pages, commands, names, settings

ROOT = Path(__file__).parents[2]
# What a page that lists everything weighs in searches, beside one that is about a thing.
LISTING = 0.2


def on_config(config: Any) -> Any:
    """Puts the pages of benchmarks and studies into the menu, and pages that it does not name yet under "More"."""
    further: list[str] = unlisted(str(config.nav), Path(config.docs_dir))
    group(config.nav, "Benchmarks").append(
        {"One by one": [{name: benchmark_pages.file_of(name)} for name in BENCHMARKS]}
    )
    group(config.nav, "Results").append({"All studies": [f"results/{name}.md" for name in study_pages()]})
    if further:
        group(config.nav, "How-to").append({"More": further})
    return config


def group(menu: list[Any], title: str) -> list[Any]:
    """The entries below a heading of the menu, however deep it is.

    Raises:
        KeyError: When the menu has no such heading.
    """
    for entry in menu:
        for name, below in entry.items() if isinstance(entry, dict) else ():
            if isinstance(below, list):
                if name == title:
                    return below
                try:
                    return group(below, title)
                except KeyError:
                    continue
    raise KeyError(title)


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
    pages = study_pages()
    titles = {name: text.partition("\n# ")[2].partition("\n")[0] for name, text in pages.items()}
    reference = {
        "reference/commands.md": commands.page(),
        "reference/methods.md": settings.methods_page(),
        "reference/steps.md": settings.steps_page(),
        "reference/features.md": settings.features_page(),
        "reference/recipes.md": settings.recipes_page(),
        "benchmarks/index.md": benchmark_pages.overview(),
        **{benchmark_pages.file_of(name): benchmark_pages.page(name, titles) for name in BENCHMARKS},
        "names.md": names.page(docs),
        "contributing.md": from_root("CONTRIBUTING.md"),
        "changelog.md": from_root("CHANGELOG.md"),
    }
    # Searches show pages that people wrote about a thing before those that list everything.
    ranked = {place: f"---\nsearch: {{boost: {LISTING}}}\n---\n\n{text}" for place, text in reference.items()}
    return ranked | {f"results/{name}.md": text for name, text in pages.items()}


def study_pages() -> dict[str, str]:
    """The page of each study by its name; searches leave them out, since their tables would drown the rest."""
    return {
        path.stem: "---\nsearch: {exclude: true}\n---\n\n"
        + path.read_text(encoding="utf-8").replace("../../docs/", "../")
        for path in sorted((ROOT / "studies" / "pages").glob("*.md"))
    }


def from_root(name: str) -> str:
    """A page that stands at the root of the repository, with its links as they are within the site."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.sub(r"\]\(docs/", "](", text)
