"""`fieldmark compare`: compares runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("compare", epilog="Example: `fieldmark compare runs/linear runs/knn runs/centroid --plot ranks.png`")(
        compare
    )


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or scorecards, on the same units.")],
    metric: Annotated[str | None, typer.Option(help="By which metric; the primary one if not given.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write the table as Markdown.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Also write the table as LaTeX.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw it (.png, .svg, .pdf).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare runs pairwise on the same units: differences with intervals, ranks, groups that cannot be told apart."""
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.scoring.comparison import compare as compare_runs
    from fieldmark.storage.files import write_text

    compared = compare_runs(runs, metric=metric)
    if markdown is not None:
        write_text(markdown, compared.to_markdown())
    if latex is not None:
        write_text(latex, compared.to_latex())
    if plot is not None:
        compared.plot(plot)
    if as_json:
        print_json(compared.to_json())
        return
    rows = compared.rows()
    print_table(list(rows[0]), [list(row.values()) for row in rows])
    simulated = ", simulated data" if compared.simulated else ""
    print(f"on {compared.split} of {compared.benchmark}: {compared.units} independent units{simulated}")
    for remark in compared.remarks:
        print(remark)
    print("* not separable from the best at 95 %; intervals and p-values of differences are paired over units")
