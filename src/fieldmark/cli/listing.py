"""`fieldmark list`: what there is."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer


class Kind(StrEnum):
    """What can be listed."""

    BENCHMARKS = "benchmarks"
    DATASETS = "datasets"
    WORLDS = "worlds"
    METHODS = "methods"
    STEPS = "steps"
    BACKBONES = "backbones"
    METRICS = "metrics"
    TABLES = "tables"


# Names stay whole, so that they can be copied.
UNBROKEN: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def add_to(app: typer.Typer) -> None:
    app.command("list", epilog="Example: `fieldmark list methods`")(list_kind)


def list_kind(
    kind: Annotated[
        str | None, typer.Argument(help=f"What to list: {', '.join(Kind)}. If not given: the names of all of them.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List benchmarks, datasets, worlds, methods, steps, backbones, metrics or tables of papers."""
    from fieldmark.cli.printing import print_json, print_table
    from fieldmark.errors import MisuseError, did_you_mean

    if kind is None:
        everything = {each.value: _entries(each) for each in Kind}
        if as_json:
            print_json(everything)
        else:
            _print_names(everything)
        return
    if kind not in list(Kind):
        raise MisuseError(f"There is nothing called {kind!r} to list. {did_you_mean(kind, Kind)}")
    entries = _entries(Kind(kind))
    if as_json:
        print_json(entries)
    else:
        print_table([kind, "about"], [[name, about] for name, about in entries.items()], numbers=False)


def _print_names(everything: dict[str, dict[str, str]]) -> None:
    import textwrap

    for kind, entries in everything.items():
        print(f"{kind}:")
        print(textwrap.fill(", ".join(entries), 100, initial_indent="  ", subsequent_indent="  ", **UNBROKEN))
    print("with a line about each: fieldmark list KIND")


def _entries(kind: Kind) -> dict[str, str]:
    from fieldmark.benchmarks import BENCHMARKS
    from fieldmark.benchmarks.choosing import conventions
    from fieldmark.datasets import DATASETS
    from fieldmark.features.settings import EMBEDDERS, PACKAGED
    from fieldmark.methods import METHODS
    from fieldmark.reproducing import TABLES
    from fieldmark.steps import STEPS
    from fieldmark.worlds import WORLDS

    registries: dict[Kind, Any] = {
        Kind.BENCHMARKS: BENCHMARKS,
        Kind.DATASETS: DATASETS,
        Kind.WORLDS: WORLDS,
        Kind.METHODS: METHODS,
        Kind.STEPS: STEPS,
        Kind.TABLES: TABLES,
    }
    if kind is Kind.BACKBONES:
        packaged = {name: f"ImageNet weights in the package {package}" for name, (package, _) in PACKAGED.items()}
        anything = {
            "<any timm name>": "weights from the hub, or from a file with --set weights=FILE",
            "openclip:<name>": "the same, for networks of open_clip",
            "hf-hub:<org>/<name>": "a repository of the hub; local-dir:<folder> for one on disk",
        }
        return packaged | anything | {name: f"for recordings: {about}" for name, about in EMBEDDERS.items()}
    if kind is Kind.METRICS:
        return {name: metric.about for each in BENCHMARKS for name, metric in conventions(BENCHMARKS[each]).items()}
    return {name: registries[kind].about(name) for name in registries[kind]}
