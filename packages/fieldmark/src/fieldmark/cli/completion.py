"""What the tab key offers: names of benchmarks, methods and the like, each with its line."""

from __future__ import annotations

from collections.abc import Iterable

import typer

Offered = list[tuple[str, str]]


def _starting(names: Iterable[tuple[str, str]], incomplete: str) -> Offered:
    return [(name, about) for name, about in names if name.startswith(incomplete)]


def kinds(incomplete: str) -> list[str]:
    """What `fieldmark list` lists."""
    from fieldmark.cli.list_names import Kind

    return [kind.value for kind in Kind if kind.value.startswith(incomplete)]


def listed(ctx: typer.Context, incomplete: str) -> Offered:
    """The names of the kind that was typed before."""
    from fieldmark.cli.list_names import Kind, entries_of

    kind = ctx.params.get("kind")
    return _starting(entries_of(Kind(kind)).items(), incomplete) if kind in list(Kind) else []


def benchmarks(incomplete: str) -> Offered:
    """Benchmarks."""
    from fieldmark.benchmarks import BENCHMARKS

    return _starting(((name, BENCHMARKS.about(name)) for name in BENCHMARKS), incomplete)


def challenges(incomplete: str) -> list[str]:
    """Challenges with editions."""
    from fieldmark.benchmarks.editions import challenges as known

    return [name for name in known() if name.startswith(incomplete)]


def methods(incomplete: str) -> Offered:
    """Methods."""
    from fieldmark.methods import METHODS

    return _starting(((name, METHODS.about(name)) for name in METHODS), incomplete)


def steps(incomplete: str) -> Offered:
    """Steps."""
    from fieldmark.steps import STEPS

    return _starting(((name, STEPS.about(name)) for name in STEPS), incomplete)


def datasets(incomplete: str) -> Offered:
    """Datasets."""
    from fieldmark.releases import DATASETS

    return _starting(((name, DATASETS.about(name)) for name in DATASETS), incomplete)


def citable(incomplete: str) -> Offered:
    """Datasets and benchmarks."""
    return [*datasets(incomplete), *benchmarks(incomplete)]


def worlds(incomplete: str) -> Offered:
    """Simulated releases."""
    from fieldmark_worlds import WORLDS

    return _starting(((name, WORLDS.about(name)) for name in WORLDS), incomplete)
