"""`fieldmark list`: what there is."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer

from fieldmark.cli import completion


class Kind(StrEnum):
    """What can be listed."""

    BENCHMARKS = "benchmarks"
    DATASETS = "datasets"
    WORLDS = "worlds"
    METHODS = "methods"
    STEPS = "steps"
    BACKBONES = "backbones"
    RECIPES = "recipes"
    METRICS = "metrics"
    TABLES = "tables"


# Names stay whole, so that they can be copied.
UNBROKEN: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def add_to(app: typer.Typer) -> None:
    app.command("list", epilog="Example: `fieldmark list methods`, then `fieldmark list methods finetune`")(list_kind)


def list_kind(
    kind: Annotated[
        str | None,
        typer.Argument(
            help=f"What to list: {', '.join(Kind)}. If not given: the names of all of them.",
            autocompletion=completion.kinds,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            help="One of them, with everything that can be set: types, defaults and a sentence on each; of a dataset "
            "its license, homepage, size and what to cite.",
            autocompletion=completion.listed,
        ),
    ] = None,
    challenge: Annotated[
        str | None,
        typer.Option(
            help="With benchmarks: the editions of one challenge side by side (birdclef, plantclef, ...).",
            autocompletion=completion.challenges,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List benchmarks, datasets, methods, steps, backbones, recipes, metrics or tables."""
    from fieldmark.cli.output import print_json, print_table
    from fieldmark.errors import MisuseError, did_you_mean

    if kind is None:
        everything = {each.value: entries_of(each) for each in Kind}
        if as_json:
            print_json(everything)
        else:
            _print_names(everything)
        return
    if challenge is not None:
        if kind != Kind.BENCHMARKS:
            raise MisuseError(f"Only benchmarks have editions: `fieldmark list benchmarks --challenge {challenge}`.")
        _show_editions(challenge, as_json=as_json)
        return
    if kind not in list(Kind):
        raise MisuseError(f"Nothing called {kind!r} can be listed. {did_you_mean(kind, Kind)}")
    if name is not None:
        (_show_record if kind == Kind.DATASETS else partial(_show_one, kind))(name, as_json=as_json)
        return
    entries = entries_of(Kind(kind))
    if as_json:
        print_json(entries)
    elif kind == Kind.METHODS:
        _print_methods(entries)
    else:
        print_table([kind, "about"], [[name, about] for name, about in entries.items()], numbers=False)


def _print_methods(entries: dict[str, str]) -> None:
    """Methods by the question they answer, chains apart."""
    from fieldmark.cli.output import print_table
    from fieldmark.methods import methods_by_question

    print("auto finds the best of these within the minutes given: fieldmark fit BENCHMARK --data ROOT")
    for question, names in methods_by_question().items():
        print()
        print_table([question, "about"], [[name, entries[name]] for name in names], numbers=False)


def _show_editions(challenge: str, *, as_json: bool) -> None:
    """The editions of a challenge, a row each."""
    from dataclasses import asdict

    from fieldmark.benchmarks.editions import editions
    from fieldmark.cli.output import print_json, print_table

    found = editions(challenge)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    header = ["edition", "asks for", "a run begins", "ranks by", "best reported", "changed"]
    rows = [
        [
            one.benchmark + ("*" if one.provisional else ""),
            one.asks,
            one.run,
            one.ranks_by,
            one.reported,
            ", ".join(one.changed),
        ]
        for one in found
    ]
    print_table(header, rows, numbers=False)
    for one in found:
        if one.provisional:
            print(f"* {one.benchmark} is provisional: {one.provisional}")
    for one in found:
        for sentence in one.not_known:
            print(f"not known of {one.benchmark}: {sentence}")


def _show_record(name: str, *, as_json: bool) -> None:
    """The record of a dataset."""
    from fieldmark.cli.output import print_json
    from fieldmark.releases.download.room import show_size
    from fieldmark.releases.facts import facts_of

    facts = facts_of(name)
    if as_json:
        print_json(facts)
        return
    print(f"{facts['name']}: {facts['about']}\n")
    shown = {key: facts.get(key) for key in ("license", "terms", "homepage")}
    shown["benchmarks"] = ", ".join(facts["benchmarks"])
    shown["size"] = (facts.get("size") or {}).get("in_words")
    for key, value in shown.items():
        print(f"{key}: {value or 'not known'}")
    if facts.get("download"):
        files, size, unknown = facts["download"].values()
        print(f"download: {files} files, {show_size(size)} and {unknown} files whose size is not published")
    if facts.get("world"):
        print(f"world: {facts['world']}")
    print(f"\n{facts['citation']}" if facts.get("citation") else "citation: not known")
    print(f"\nexample: fieldmark check {name} ROOT")


def _show_one(kind: str, name: str, *, as_json: bool) -> None:
    """One entry with its settings."""
    from dataclasses import asdict

    from fieldmark.cli.output import print_json, print_table
    from fieldmark.fitting.setting_lists import describe

    found = describe(kind, name)
    if as_json:
        print_json(asdict(found))
        return
    print(f"{found.name}: {found.about}")
    if found.text:
        print(f"\n{found.text}")
    for group, notes in found.settings.items():
        print(f"\nsettings {group}:" if notes else f"\nno settings {group}")
        if notes:
            rows = [[note.name, note.allowed, note.default, note.about] for note in notes]
            print_table(["", "type", "default", "about"], rows, numbers=False)
    print(f"\nexample: {found.example}")


def _print_names(everything: dict[str, dict[str, str]]) -> None:
    import textwrap

    for kind, entries in everything.items():
        print(f"{kind}:")
        print(textwrap.fill(", ".join(entries), 100, initial_indent="  ", subsequent_indent="  ", **UNBROKEN))
    print("one line about each: fieldmark list KIND; settings: fieldmark list methods NAME")


# Where each registry lives.
REGISTRIES = {
    Kind.BENCHMARKS: "fieldmark.benchmarks:BENCHMARKS",
    Kind.DATASETS: "fieldmark.releases:DATASETS",
    Kind.WORLDS: "fieldmark_worlds:WORLDS",
    Kind.METHODS: "fieldmark.methods:METHODS",
    Kind.STEPS: "fieldmark.steps:STEPS",
    Kind.TABLES: "fieldmark.suites.tables:TABLES",
}


def entries_of(kind: Kind) -> dict[str, str]:
    """The names of a kind, each with a line about it."""
    if kind is Kind.BACKBONES:
        return _backbones()
    if kind is Kind.RECIPES:
        from fieldmark.fitting.setting_lists import recipe_lines

        return recipe_lines()
    if kind is Kind.METRICS:
        from fieldmark.benchmarks import BENCHMARKS
        from fieldmark.benchmarks.selection import conventions

        return {name: metric.about for each in BENCHMARKS for name, metric in conventions(BENCHMARKS[each]).items()}
    module, _, name = REGISTRIES[kind].partition(":")
    registry: Any = getattr(import_module(module), name)
    return {name: registry.about(name) for name in registry}


def _backbones() -> dict[str, str]:
    from fieldmark.features.settings import EMBEDDERS, PACKAGED

    packaged = {name: f"ImageNet weights in the package {package}" for name, (package, _) in PACKAGED.items()}
    anything = {
        "<any timm name>": "weights from the hub, or from a file with --set weights=FILE",
        "openclip:<name>": "open_clip networks, the same way",
        "hf-hub:<org>/<name>": "a repository of the hub; local-dir:<folder> for one on disk",
    }
    return packaged | anything | {name: f"for recordings: {about}" for name, about in EMBEDDERS.items()}
