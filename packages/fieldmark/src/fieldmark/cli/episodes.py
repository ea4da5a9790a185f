"""`fieldmark episodes`: a few photos per class, drawn again and again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.options import BenchmarkName


def add_to(app: typer.Typer) -> None:
    app.command(
        "episodes",
        epilog="Example: `fieldmark episodes folder --data my-photos --method centroid --method prototypes "
        "--method knn:k=1,vote=majority --shots 1,2,4 --set size=160`",
    )(episodes)


def episodes(
    benchmark: BenchmarkName,
    data: Annotated[Path, typer.Option(help="The root of the release, with labels for test.")],
    method: Annotated[
        list[str], typer.Option(metavar="NAME[:KEY=VALUE,...]", help="A method, with settings of its own.")
    ],
    out: Annotated[Path | None, typer.Option(help="The folder to write or continue; runs/BENCHMARK-episodes.")] = None,
    shots: Annotated[str, typer.Option(help="Training photos per class, separated by commas.")] = "1,2,4,8",
    draws: Annotated[int, typer.Option(help="The number of draws.")] = 10,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of all methods (features, ...).")
    ] = None,
    steps: Annotated[list[str] | None, typer.Option("--step", help="A step after every method, in order.")] = None,
    metric: Annotated[str | None, typer.Option(help="The score to show; the primary one if not given.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the draws.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Evaluate few-shot methods over repeated draws of training photos."""
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.errors import MisuseError, did_you_mean
    from fieldmark.settings import parse_pairs
    from fieldmark.suites.episodes import PLOT_FILE, MethodEntry, plot_shots, run_episodes

    try:
        numbers = [int(number) for number in shots.split(",")]
    except ValueError as error:
        raise MisuseError(f"--shots {shots}: expected numbers separated by commas, like 1,2,4,8.") from error
    metrics = [each.name for each in BENCHMARKS[benchmark].task.metrics]
    if metric is not None and metric not in metrics:  # before hours are spent
        raise MisuseError(f"There is no score called {metric!r} here. {did_you_mean(metric, metrics)}")
    folder = out or Path("runs", f"{benchmark.replace('/', '-')}-episodes")
    common = parse_pairs(settings or [])
    entries = [MethodEntry.parse(text, common, steps or ()) for text in method]
    outcome = run_episodes(benchmark, data, entries, folder, shots=numbers, draws=draws, seed=seed)
    if metric is not None and metric not in outcome.metrics:
        raise MisuseError(f"There is no score called {metric!r} here. {did_you_mean(metric, outcome.metrics)}")
    plot_shots(outcome.to_json(), folder / PLOT_FILE, metric=metric)
    if as_json:
        print_json(outcome.to_json())
        return
    for remark in outcome.facts["remarks"]:
        print(f"note: {remark}")
    print_table(["", *(f"{n} per class" for n in numbers)], outcome.table(metric))
    simulated = ", simulated data" if outcome.facts["simulated"] else ""
    print(
        f"{metric or outcome.metrics[0]} in percent, mean of {draws} draws [95 % interval over draws of the training "
        f"photos], on test: {outcome.facts['test_items']} items{simulated}"
    )
    print(f"all scores, and intervals over the test set, in {folder / 'episodes.json'}; plot in {folder / PLOT_FILE}")
