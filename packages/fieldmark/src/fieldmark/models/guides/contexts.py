"""Which circumstances a model takes into account: the inputs of its priors, by the names that people know them by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from fieldmark.steps.base import Step
from fieldmark.steps.priors.base import ContextStep
from fieldmark.tables.inputs import CONTEXT

# Columns of the items by the name of the context.
COLUMNS = {declared.name: declared.columns for declared in CONTEXT}


def contexts_of(steps: Sequence[Step]) -> tuple[str, ...]:
    """The contexts that the priors among some steps read, each once; priors that val gave no weight read nothing."""
    read = [name for step in steps if isinstance(step, ContextStep) and _counts(step) for name in step.inputs]
    return tuple(dict.fromkeys(read))


def _counts(step: ContextStep) -> bool:
    exponents: Sequence[float] | None = getattr(step, "exponents", None)
    return exponents is None or any(exponents)


def columns_of_contexts(contexts: Iterable[str]) -> list[str]:
    """The columns behind some contexts.

    >>> columns_of_contexts(["place", "habitat"])
    ['lat', 'lon', 'habitat']
    """
    return [column for name in contexts for column in COLUMNS.get(name, (name,))]


def without_contexts(items: pl.DataFrame, contexts: Iterable[str]) -> pl.DataFrame:
    """The items as if nothing were known of some contexts."""
    gone = [name for name in columns_of_contexts(contexts) if name in items.columns]
    return items.with_columns(pl.lit(None, items.schema[name]).alias(name) for name in gone)


def with_columns_of(items: pl.DataFrame, contexts: Iterable[str]) -> pl.DataFrame:
    """The items with a column for everything that the contexts may be read from, empty where it is not there."""
    missing = [name for name in columns_of_contexts(contexts) if name not in items.columns]
    return items.with_columns(pl.lit(None, pl.String).alias(name) for name in missing)
