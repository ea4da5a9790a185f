"""`fieldmark report`: one page about one or more runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("report", epilog="Example: `fieldmark report runs/linear runs/centroid --out report.html`")(report)


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders or addresses of runs; the page is about the first.")],
    out: Annotated[Path | None, typer.Option(help="The page; report.html in the first run if not given.")] = None,
    data: Annotated[Path | None, typer.Option(help="The release, if it has moved since the run.")] = None,
) -> None:
    """Write an HTML report about one or more runs."""
    from fieldmark.registry import require
    from fieldmark.storage.addresses import place_text

    page = out or runs[0] / "report.html"
    reports = require("fieldmark.reports", "A report")
    written = reports.report(runs, page, data=data)  # type: ignore[attr-defined]
    print(f"report in {place_text(written)}")
