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
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs, scorecards, or run files from elsewhere, on the same units.")
    ],
    metric: Annotated[str | None, typer.Option(help="The metric; the primary one if not given.")] = None,
    benchmark: Annotated[
        str | None, typer.Option(help="The benchmark of run files; that of the other runs if not given.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The release that holds the truth for run files; that of the other runs.")
    ] = None,
    truth: Annotated[Path | None, typer.Option(help="Or the truth as CSV: id,label and optionally unit.")] = None,
    classes: Annotated[Path | None, typer.Option(help="With --truth: the classes as CSV: label.")] = None,
    media: Annotated[Path | None, typer.Option(help="With --truth of soundscapes: the recordings as CSV.")] = None,
    split: Annotated[
        str | None, typer.Option(help="The part that run files predict; test if no run says otherwise.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write the table as Markdown.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Also write the table as LaTeX.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Also plot it (.png, .svg, .pdf).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare runs: paired differences with intervals, ranks, and which are separable."""
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.storage.files import write_text
    from fieldmark.views.compare_runs import compare as compare_runs

    tables = {"data": data, "truth": truth, "classes": classes, "media": media}
    compared = compare_runs(runs, metric=metric, benchmark=benchmark, split=split, **tables)
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
