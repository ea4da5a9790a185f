"""The fields of a request as options of the shell."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from fieldmark.errors import InputError, MisuseError
from fieldmark_challenge.actions.declarations import FieldShown, Request, Sent, kind_of, shown
from fieldmark_challenge.cli.options import WHEN, moment, text_in

TYPED: Any = Annotated  # with types that are known when it runs


def field_options(model: type[Request]) -> Iterator[inspect.Parameter]:
    """The options of a request, each with its help and its default."""
    for name, field in model.model_fields.items():
        how = shown(model, name)
        if not how.in_shell:
            continue
        default = inspect.Parameter.empty if field.is_required() else field.default
        if how.undo or how.from_file:
            default = False if how.undo else None if default == "" else default
        kind = _typed_as(how, field)
        kind = kind if field.is_required() or default is not None else kind | None
        taken = TYPED[kind, _info(how, field)]
        yield inspect.Parameter(
            _typed_name(name, how), inspect.Parameter.KEYWORD_ONLY, annotation=taken, default=default
        )


def _typed_name(name: str, how: FieldShown) -> str:
    if how.undo:
        return "undo"
    return how.shell.partition("/")[0].strip("-").replace("-", "_") or name


def _typed_as(how: FieldShown, field: FieldInfo) -> Any:
    kind = kind_of(field.annotation)
    return Path if how.from_file or kind is Sent else str if kind is dt.datetime else kind


def _info(how: FieldShown, field: FieldInfo) -> Any:
    about = how.undo or how.help or field.description
    if how.argument:
        return typer.Argument(help=about)
    kind = kind_of(field.annotation)
    metavar = WHEN if kind is dt.datetime else None
    names = ("--undo",) if how.undo else (how.shell,) if how.shell else ()
    least = how.least if kind is int else None
    return typer.Option(*names, help=about, metavar=metavar, min=least)


def read_options(model: type[Request], typed: dict[str, Any]) -> Request:
    """The request that was typed; its options are taken out of what was typed.

    Raises:
        MisuseError, InputError: When something typed is not what it should be.
    """
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        how = shown(model, name)
        if not how.in_shell:
            continue
        value = typed.pop(_typed_name(name, how))
        if how.undo:
            values[name] = not value
        elif value is not None:
            values[name] = _read(how, field, value)
    if model.nothing and not values:
        raise MisuseError(model.nothing)
    return model.checked(values)


def _read(how: FieldShown, field: FieldInfo, value: Any) -> Any:
    kind = kind_of(field.annotation)
    if kind is dt.datetime:
        return moment(value)
    if kind is not Sent:
        return text_in(value, how.from_file) if how.from_file else value
    if value.is_dir() and how.from_file == "a run file":
        from fieldmark.runs.provenance import run_file

        value = run_file(value)
    if not value.is_file():
        raise InputError(value, found="no such file", expected=how.from_file or "a file")
    return Sent(value.name, value)
