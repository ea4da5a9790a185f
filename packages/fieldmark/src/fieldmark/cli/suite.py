"""`fieldmark suite`: many benchmarks at once, and a ranking that says how sure it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.options import AddressOption, EngineOption

Results = Annotated[list[str], typer.Argument(help="Folders of results, or addresses of such (s3://, https://).")]
SuiteName = Annotated[str, typer.Argument(help="The suite (`fieldmark suite list`).")]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(
        help="Evaluate models on many datasets and rank them.",
        epilog="Example: `fieldmark suite run own --data my-sets`, then `fieldmark suite table own results`",
        no_args_is_help=True,
        rich_markup_mode="markdown",
    )
    group.command("list", epilog="Example: `fieldmark suite list photos`")(list_suites)
    group.command(
        "run",
        epilog="Example: `fieldmark suite run photos --data data --backbone efficientnet_lite0 --method lda`",
    )(run)
    group.command(
        "add", epilog="Example: `fieldmark suite add photos mine --data data --answers birds=mine.csv --out results`"
    )(add)
    group.command("table", epilog="Example: `fieldmark suite table photos results --page photos.html`")(table)
    group.command(
        "model", epilog="Example: `fieldmark suite model photos 'efficientnet_lite1 lda' results --page model.html`"
    )(model)
    group.command("check", epilog="Example: `fieldmark suite check results`")(check)
    group.command("merge", epilog="Example: `fieldmark suite merge results laptop/results s3://lab/results`")(merge)
    app.add_typer(group, name="suite")


def list_suites(
    name: Annotated[str | None, typer.Argument(help="One suite, with its cells; all suites if not given.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List suites, or the cells of one."""
    from dataclasses import asdict

    from fieldmark.cli.output import print_json, print_table
    from fieldmark.suites.catalog import SUITES, suite_named

    suites = SUITES.values() if name is None else [suite_named(name)]
    if as_json:
        print_json([asdict(suite) for suite in suites])
    elif name is None:
        rows = [[suite.name, suite.version, str(len(suite.cells) or ""), suite.title] for suite in suites]
        print_table(["suite", "version", "cells", "about"], rows, numbers=False)
    else:
        suite = suite_named(name)
        rows = [
            [cell.name, cell.benchmark, cell.release, cell.scored_by.name, ", ".join(map(str, cell.protocol.items()))]
            for cell in suite.cells
        ]
        print_table(["cell", "benchmark", "folder under the root", "metric", "protocol"], rows, numbers=False)
        print(f"models: {', '.join(suite.backbones) or 'no backbone'} with {', '.join(suite.methods)}")


def run(
    suite: SuiteName,
    data: Annotated[Path, typer.Option(help="The folder that contains the releases, one folder each.")],
    out: Annotated[Path, typer.Option(help="The folder of results, new or to continue.")] = Path("results"),
    backbone: Annotated[
        list[str] | None, typer.Option(help="A backbone, as in --set backbone=; those of the suite if not given.")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:KEY=VALUE,...]", help="A method; those of the suite if not given."),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="CELL", help="A cell; all of them if not given.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of all models (features, ...).")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="The number of cells to run in parallel.")] = 1,
    engine: EngineOption = "local",
    address: AddressOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Fit and score models on every cell of a suite whose release is there.

    What is stored is not fitted again: the same command goes on after an interruption. A release that is absent is a
    missing cell, named with what to do. A model that is refused in a cell is named with the reason, the others go on,
    and the exit code is 1 in the end.
    """
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.settings import parse_pairs
    from fieldmark.suites.catalog import suite_named
    from fieldmark.suites.ranking import suite_table
    from fieldmark.suites.suite_runs import models_of, run_suite

    declared = suite_named(suite, data)
    models = models_of(declared, backbone or (), method or (), parse_pairs(settings or []))
    done = run_suite(
        declared, data, out, models=models, only=only or (), processes=processes, engine=engine, address=address
    )
    made = suite_table(declared, done.results) if done.results else None
    if as_json:
        about = {"missing": dict(done.missing), "failed": [[*key, why] for key, why in done.failed.items()]}
        print_json({**about, "table": None if made is None else made.to_json()})
    else:
        if made is not None:
            print_table(*made.table())
            simulated = ", simulated data" if made.simulated else ""
            print(f"percent [95 % interval]; {len(done.results)} results in {out}, {done.made} of them new{simulated}")
        for cell, what in done.missing.items():
            print(f"missing: {cell}: {what}")
        for (model, cell), why in done.failed.items():
            print(f"failed: {model} on {cell}: {why}")
    if done.failed:
        raise typer.Exit(1)


def add(
    suite: SuiteName,
    name: Annotated[str, typer.Argument(metavar="MODEL", help="The name of the model in the table.")],
    data: Annotated[Path, typer.Option(help="The folder that contains the releases, one folder each.")],
    answers: Annotated[
        list[str], typer.Option(metavar="CELL=FILE", help="The answers in a cell: a run file, or the folder of a run.")
    ],
    out: Annotated[Path, typer.Option(help="The folder of results.")] = Path("results"),
    external_data: Annotated[
        list[str] | None, typer.Option(help="External data used, or none; unknown if not given.")
    ] = None,
) -> None:
    """Score answers that were made elsewhere, and put them into the table of a suite."""
    from fieldmark.settings import parse_pairs
    from fieldmark.suites.catalog import suite_named
    from fieldmark.suites.foreign_answers import add_answers

    given = parse_pairs(answers)
    for path in add_answers(suite_named(suite, data), data, out, given, name=name, external_data=external_data or ()):
        print(f"written to {path}")


def table(
    suite: SuiteName,
    results: Results,
    page: Annotated[Path | None, typer.Option(help="Also write a self-contained HTML page.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write the table as Markdown.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Show models by cells, with means and the ranks that each may really have."""
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.storage.files import write_text
    from fieldmark.suites.catalog import suite_named
    from fieldmark.suites.ranking import suite_table
    from fieldmark.suites.results import read_results
    from fieldmark.suites.suite_pages import suite_page

    made = suite_table(suite_named(suite), read_results(results))
    if page is not None:
        write_text(page, suite_page(made, suite_named(suite)))
    if markdown is not None:
        write_text(markdown, made.to_markdown())
    if as_json:
        print_json(made.to_json())
        return
    print_table(*made.table())
    for remark in made.remarks:
        print(f"note: {remark}")
    print(
        "percent [95 % interval; those of all cells with --json or --page]. Rank here: on these cells, with other "
        "units. Rank elsewhere: on other cells like these. Both hold for all models at once."
    )


def model(
    suite: SuiteName,
    name: Annotated[str, typer.Argument(metavar="MODEL", help="The name of the model in the table.")],
    results: Results,
    page: Annotated[Path | None, typer.Option(help="Also write a self-contained HTML page.")] = None,
) -> None:
    """Show one model: its cells, the species it misses most, and whether its probabilities can be believed."""
    from fieldmark.cli.output import print_table
    from fieldmark.storage.files import write_text
    from fieldmark.suites.catalog import suite_named
    from fieldmark.suites.model_pages import NO_STRENGTHS, model_page, model_profile
    from fieldmark.suites.results import read_results

    declared = suite_named(suite)
    profile = model_profile(declared, read_results(results), name)
    if page is not None:
        write_text(page, model_page(profile, declared))
    off = {one.cell: f"{100 * one.error:.1f}" for one in profile.calibration}
    rows = [
        [cell, f"{100 * score.value:.1f}", f"{profile.ranks[cell]} of {profile.models}", off.get(cell, "")]
        for cell, score in profile.row.scores.items()
    ]
    print_table(["cell", "score, %", "number", "probabilities off by, points"], rows)
    for one in profile.worst:
        print(f"missed: {one.name} ({one.cell}): {one.right} of {one.items} right")
    if profile.lacking:
        print(f"note: {', '.join(profile.lacking)}: {NO_STRENGTHS}")


def check(results: Results) -> None:
    """Check results: digests, versions, external data, and whether they can be compared; exit code 1 for any fault."""
    from fieldmark.suites.results import check_results, read_results

    found = read_results(results)
    problems = check_results(found)
    for problem in problems:
        print(problem)
    print(f"{len(found)} results, {len(problems)} problems")
    if problems:
        raise typer.Exit(1)


def merge(
    out: Annotated[Path, typer.Argument(help="The folder to write into; existing results are kept.")], results: Results
) -> None:
    """Put the results of several machines into one folder; two different scores of the same content are refused."""
    from fieldmark.suites.results import merge_results

    print(f"{merge_results(out, results)} results in {out}")
