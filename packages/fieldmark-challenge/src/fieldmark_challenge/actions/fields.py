"""The fields of a request in forms: how they are shown, and how what somebody filled in is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from starlette.datastructures import FormData

from fieldmark.web.refusals import RefusalError
from fieldmark_challenge.actions.declarations import FieldShown, Request, Sent, kind_of, shown
from fieldmark_challenge.web.forms import file_of, moment_of, number_of, text_of


def label_of(name: str, how: FieldShown) -> str:
    """What a form calls a field."""
    return how.label or name.replace("_", " ").capitalize()


def files_of(model: type[Request]) -> list[str]:
    """The fields that are files."""
    return [name for name, field in model.model_fields.items() if kind_of(field.annotation) is Sent]


def read_form(model: type[Request], form: FormData, settled: Mapping[str, Any]) -> Request:
    """The request of a form that somebody filled in, in full: a box that is not ticked says no.

    Raises:
        RefusalError: Says what was found and what is expected.
    """
    values = dict(settled)
    for name, field in model.model_fields.items():
        if name not in values:
            values[name] = _read(name, shown(model, name), field, form)
    return model.checked(values)


def _read(name: str, how: FieldShown, field: Any, form: FormData) -> Any:
    key, label, kind = how.form or name, label_of(name, how), kind_of(field.annotation)
    if kind is int:
        return number_of(form, key, label)
    if kind is dt.datetime:
        return moment_of(form, key, label)
    if kind is bool:
        said = text_of(form, key)
        return said != how.no if field.default is True else said == "yes"
    if kind is Sent:
        file = file_of(form, key)
        if file is None and field.is_required():
            raise RefusalError(f"{label}: send a file (in the field {key!r}).")
        return None if file is None else Sent(file.filename or key, file.file)
    if get_origin(kind) is list:
        return [int(one) for one in form.getlist(key) if isinstance(one, str) and one.isdigit()]
    text = text_of(form, key)
    return None if not text and type(None) in get_args(field.annotation) and is_choice(field.annotation) else text


def is_choice(annotation: Any) -> bool:
    """Whether a field is one of several words."""
    return get_origin(annotation) is Literal or any(is_choice(one) for one in get_args(annotation) if one is not str)


@dataclass(frozen=True)
class FormField:
    """A field as templates show it (`actions.html`)."""

    name: str
    of: str
    label: str
    type: str
    value: Any
    required: bool
    most: int | None
    how: FieldShown


def form_rows(model: type[Request]) -> list[list[FormField]]:
    """The fields of a form, those that stand beside each other in one row."""
    rows: list[list[FormField]] = []
    types = {int: "number", dt.datetime: "datetime-local", bool: "check", Sent: "file"}
    for name, field in model.model_fields.items():
        how = shown(model, name)
        if get_origin(kind_of(field.annotation)) is list:  # of rows that only the page knows
            continue
        kind = "choice" if how.choices else "area" if how.rows else types.get(kind_of(field.annotation), "text")
        # What may be left out of a change stands in its form as it is; only texts may be empty.
        required = field.is_required() or kind in ("number", "datetime-local") or bool(how.least)
        value = "" if field.is_required() or field.default is None else field.default
        limits = (getattr(one, "max_length", None) or getattr(one, "le", None) for one in field.metadata)
        most = next((limit for limit in limits if limit), None)
        shown_field = FormField(how.form or name, name, label_of(name, how), kind, value, required, most, how)
        if how.beside:
            rows[-1].append(shown_field)
        else:
            rows.append([shown_field])
    return rows
