"""The index: every name that the documentation explains, in one alphabetical list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.cli.main import application
from fieldmark.methods import METHODS
from fieldmark.steps import STEPS
from handbook.benchmark_pages import file_of
from handbook.commands import commands
from handbook.markdown import anchor, table


def page(docs: Path) -> str:
    """The index page.

    Args:
        docs: The folder of pages written by hand, whose titles are listed as well.
    """
    root: Any = typer.main.get_command(application())
    entries = [(" ".join(path[1:]), "command", f"reference/commands.md#{'-'.join(path)}") for path, _ in commands(root)]
    entries += [(name, "method", f"reference/methods.md#{anchor(name)}") for name in METHODS]
    entries += [(name, "step", f"reference/steps.md#{anchor(name)}") for name in STEPS]
    entries += [(name, "benchmark", file_of(name)) for name in BENCHMARKS]
    for metric in sorted({one.name for name in BENCHMARKS for one in BENCHMARKS[name].task.metrics}):
        home = next(name for name in BENCHMARKS if metric in {one.name for one in BENCHMARKS[name].task.metrics})
        entries.append((metric, "metric", f"{file_of(home)}#metrics"))
    for path in sorted(docs.glob("**/*.md")):
        title = next((line[2:] for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# ")), "")
        entries.append((title or path.stem, "page", path.relative_to(docs).as_posix()))
    rows = ([f"[{name}]({place})", kind] for name, kind, place in sorted(entries, key=lambda one: one[0].lower()))
    return "\n".join(["# Index", "", f"{len(entries)} names.", "", table(["name", "what"], rows), ""])
