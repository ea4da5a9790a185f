"""`fieldmark fit`: a method on a benchmark."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldmark.cli import completion
from fieldmark.cli.options import (
    AddressOption,
    DrawSeed,
    EngineOption,
    MethodSettings,
    Overwrite,
    TrustCode,
)

if TYPE_CHECKING:
    from fieldmark.fitting import FitResult
    from fieldmark.fitting.sandboxed import Walls


def add_to(app: typer.Typer) -> None:
    app.command(
        "fit", epilog="Example: `fieldmark fit my-photos`, or `fieldmark fit folder --data my-photos --method linear`"
    )(fit)


def fit(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="BENCHMARK|FOLDER",
            help="The benchmark (`fieldmark list benchmarks`), or a folder of your own photos or recordings.",
            autocompletion=completion.benchmarks,
        ),
    ],
    data: Annotated[Path | None, typer.Option(help="The root of the release, or of your photos.")] = None,
    method: Annotated[
        str,
        typer.Option(
            help="The method (`fieldmark list methods`), a chain such as `linear:size=160` or its file; `auto` finds "
            "the best within --minutes.",
            autocompletion=completion.methods,
        ),
    ] = "auto",
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for the run; runs/BENCHMARK-METHOD if not given, runs/DATA-METHOD for own data."),
    ] = None,
    settings: MethodSettings = None,
    steps: Annotated[
        list[str] | None,
        typer.Option(
            "--step",
            autocompletion=completion.steps,
            help="A step after the method, in order; the default steps if none is given. Settings: NAME:KEY=VALUE,...",
        ),
    ] = None,
    external_data: Annotated[
        list[str] | None,
        typer.Option(
            "--external-data",
            metavar="TEXT",
            help="External data used; pretrained weights are recorded automatically.",
        ),
    ] = None,
    split: Annotated[
        Path | None,
        typer.Option(help="A split file (`fieldmark split`) in place of the benchmark's own split; the run says so."),
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,VALUE",
            help="Choose a setting by cross-validation on train; `auto` takes the settings that the method suggests.",
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="With --search: the number of folds.")] = 5,
    folds_by: Annotated[
        str,
        typer.Option(help="With --search: what stays together: unit, day, block:METRES, or a column such as site."),
    ] = "unit",
    extra_annotations: Annotated[
        list[str] | None,
        typer.Option(
            "--extra-annotations",
            metavar="TEXT",
            help="Extra annotations made on the photos or recordings of the release.",
        ),
    ] = None,
    add: Annotated[
        Path | None,
        typer.Option(help="A table of checked answers (`fieldmark review`) to learn from as well."),
    ] = None,
    pooling: Annotated[
        str,
        typer.Option(
            help="For items with several photos: use mean features, or pool predictions: mean, max, attention."
        ),
    ] = "features",
    walled: Annotated[
        bool,
        typer.Option(
            "--walled",
            help="Run the method (of another package) in a sandbox with only the data it may see.",
        ),
    ] = False,
    trust_code: TrustCode = False,
    skip_broken: Annotated[
        bool,
        typer.Option(
            "--skip-broken",
            help="Skip files that cannot be read, except in an official test set; the run records them.",
        ),
    ] = False,
    minutes: Annotated[float, typer.Option(min=0.01, help="With auto: the time limit.")] = 10.0,
    single: Annotated[bool, typer.Option("--single", help="With auto: one chain and no ensemble.")] = False,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=2, help="Fit with this many seeds, and separate the spread of splits from that of the test set."
        ),
    ] = None,
    browser: Annotated[
        bool,
        typer.Option("--open/--no-open", help="With a folder alone: open the report and a page for the next photo."),
    ] = True,
    seed: DrawSeed = 0,
    overwrite: Overwrite = False,
    engine: EngineOption = "local",
    address: AddressOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scorecard as JSON.")] = False,
) -> None:
    """Fit a method, score it on val and test, and write the folder of the run."""
    from fieldmark.cli.own_photos import asked_benchmark, show_own
    from fieldmark.fitting import Auto, Search
    from fieldmark.fitting import fit as fit_method
    from fieldmark.fitting.search import parse_search
    from fieldmark.settings import parse_pairs

    benchmark, data, folder_alone = asked_benchmark(benchmark, data)
    folder = out or Path("runs", f"{_short_name(benchmark, data)}-{_method_name(method)}")
    fit_once = partial(
        fit_method,
        benchmark,
        data,
        method,
        settings=parse_pairs(settings or []),
        steps=steps or None,
        overwrite=overwrite,
        external_data=external_data or (),
        split=split,
        search=Search(parse_search(search), folds, folds_by) if search else None,
        extra_annotations=extra_annotations or (),
        pooling=pooling,
        add=add,
        engine=engine,
        address=address,
        walls=_walls() if walled else None,
        trust_code=trust_code,
        skip_broken=skip_broken,
        auto=Auto(minutes=minutes, single=single),
    )
    if repeats is not None:
        _repeat(fit_once, repeats, seed, folder, as_json=as_json)
        return
    result = fit_once(folder, seed=seed)
    if as_json:
        _print_json(result)
        return
    _print(result)
    if folder_alone:
        show_own(result.folder, browser=browser and sys.stdout.isatty())


def _repeat(fit_once: Callable[..., FitResult], number: int, seed: int, out: Path, *, as_json: bool) -> None:
    """Fits with several seeds, and shows the mean of each metric and what its spread is made of."""
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.fitting.repeats import fit_repeatedly

    made = fit_repeatedly(number, seed, out, lambda one, folder: fit_once(folder, seed=one))
    if as_json:
        print_json(made.to_json())
        return
    rows = []
    for name, one in made.metrics.items():
        parts = ["" if part is None else f"{part:.4f}" for part in (one.of_test, one.of_split)]
        rows.append([name, f"{one.mean:.4f}", f"{one.deviation:.4f}", *parts])
    print_table(["metric", "mean", "deviation", "of which test", "of which split"], rows)
    print(f"{number} runs in {out}")


def _method_name(method: str) -> str:
    """What a run is called after: a method, or the method of a chain, or the name of its file."""
    if method.endswith((".toml", ".json")):
        return Path(method).stem
    return method.partition(">")[0].partition(":")[0].strip()


def _short_name(benchmark: str, data: Path) -> str:
    """What a run is called after: the benchmark, or the folder of somebody's own data."""
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.releases.record import record_of

    known = record_of(BENCHMARKS[benchmark].dataset)
    own = known is not None and known.homepage is None
    name = str(data).rstrip("/").rpartition("/")[2] if own else ""
    return name if name.strip(".") else benchmark.replace("/", "-")


def _walls() -> Walls:
    """The walls of the platform, which stand around anything that is not trusted.

    Raises:
        MisuseError: Where there are none.
    """
    from fieldmark.errors import MisuseError
    from fieldmark.fitting.sandboxed import Walls
    from fieldmark.sandbox.bubblewrap import environment, failure_of, wall

    program = shutil.which("bwrap")
    if program is None or (said := failure_of(program)):
        why = "it is not installed" if program is None else f"it does not work here ({said})"
        raise MisuseError(
            f"--walled needs bubblewrap, and {why}. Install it (`apt install bubblewrap`), or fit without."
        )
    return Walls(partial(wall, program), environment)


def _print_json(result: FitResult) -> None:
    """The scorecard for a program; what nobody may overlook goes to standard error."""
    from fieldmark.cli.output import print_json
    from fieldmark.runs.provenance import LEAKAGE, OTHER_SPLIT

    for leak in result.run.leaks:
        print(f"note: {LEAKAGE}{leak}", file=sys.stderr)
    for remark in result.run.remarks:
        if remark.startswith(OTHER_SPLIT):
            print(f"note: {remark}", file=sys.stderr)
    print_json(result.scorecard.to_json())


def _print(result: FitResult) -> None:
    from fieldmark.cli.output import print_external_data, print_scorecards, print_unknown

    run, folder = result.run, result.folder
    for remark in run.remarks:
        print(f"note: {remark}")
    print_scorecards({run.method: result.scorecard})
    print_external_data(result.scorecard)
    if result.unknown is not None and len(result.unknown.names) > 1:
        print_unknown(result.unknown)
    if run.search is not None:
        print(f"{run.search['trials']} trials in {folder / run.search['table']}")
    print(f"run in {folder}; next: fieldmark report {folder}")
