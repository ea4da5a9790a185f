"""The routes of the API that are made from actions, each with its entry in OpenAPI."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form
from pydantic.fields import FieldInfo
from starlette.datastructures import FormData
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse

from fieldmark.errors import FieldmarkError
from fieldmark.web.refusals import RefusalError
from fieldmark_challenge.actions.declarations import ActingOrganizer, Action, Actions, FieldShown, Request, kind_of
from fieldmark_challenge.actions.fields import files_of, read_form
from fieldmark_challenge.lifecycle import replies as lifecycle_replies
from fieldmark_challenge.programs import replies as programs_replies
from fieldmark_challenge.records.schema import Challenge, User
from fieldmark_challenge.submissions import replies as submissions_replies
from fieldmark_challenge.submissions.api import TEXT, YES_OR_NO, described_form
from fieldmark_challenge.submissions.run_files import RunRefusedError
from fieldmark_challenge.web.callers import ApiOrganizer, Managed
from fieldmark_challenge.web.dependencies import RowId, bound_upload
from fieldmark_challenge.web.forms import plain_sentence
from fieldmark_challenge.web.lanes import lane_of
from fieldmark_challenge.web.links import address_of
from fieldmark_challenge.web.replies import Done, Refused

# What actions may answer with.
REPLIES = {"Done": Done}
for module in (submissions_replies, programs_replies, lifecycle_replies):
    REPLIES |= vars(module)


def make_router(*modules: Actions) -> APIRouter:
    """The routes of actions that organizers take."""
    router = APIRouter(prefix="/challenges/{slug}", tags=["organizing"], responses={404: {"model": Refused}})
    for action in (one for module in modules for one in module if one.api):
        method, _, path = action.api.partition(" ")
        model = action.request
        refused: dict[int | str, dict[str, Any]] = (
            {status: {"model": Refused} for status in (409, 413, 422)} if action.bounded else {}
        )
        router.add_api_route(
            path,
            _endpoint(action),
            methods=[method],
            status_code=action.status,
            description=action.about,
            response_model=action.reply_type(REPLIES),
            responses=refused,
            openapi_extra=_described(model) if model is not None and files_of(model) else None,
        )
    return router


async def organizer(request: HttpRequest, challenge: Managed, user: ApiOrganizer) -> ActingOrganizer:
    """Who calls, and the challenge that they run."""
    return acting(request, challenge, user)


def acting(request: HttpRequest, challenge: Challenge, user: User) -> ActingOrganizer:
    """Somebody who runs a challenge, by a request."""
    state = request.app.state
    return ActingOrganizer(state.database, state.storage, user, state.upload_mb, address_of(request, ""), challenge)


def _endpoint(action: Action) -> Callable[..., Any]:
    """What FastAPI calls: its parameters are the fields of the request."""
    model = action.request
    parameters = {"by": Annotated[ActingOrganizer, Depends(organizer)], **dict.fromkeys(action.ids, RowId)}
    defaults: dict[str, Any] = {}
    if model is not None and files_of(model):
        parameters["request"] = HttpRequest
        endpoint = _of_files(action, model)
    else:
        endpoint = _of_fields(action, model)
        if model is not None and model.whole:
            parameters["given"] = Annotated[model, Form()]
        elif model is not None:
            for name, field in model.model_fields.items():
                parameters[name] = _form_parameter(field)
                defaults |= {} if field.is_required() else {name: field.default}
    empty = inspect.Parameter.empty
    taken = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=defaults.get(name, empty))
        for name, kind in parameters.items()
    ]
    endpoint.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    endpoint.__name__ = action.name
    return endpoint


def _form_parameter(field: FieldInfo) -> Any:
    kept = tuple(one for one in field.metadata if not isinstance(one, FieldShown))
    return Annotated[(field.annotation, *kept, Form(description=field.description))]


def _of_fields(action: Action, model: type[Request] | None) -> Callable[..., Any]:
    def act(*, by: ActingOrganizer, **sent: Any) -> Any:
        ids = {name: sent.pop(name) for name in action.ids}
        given = None if model is None else sent["given"] if model.whole else model(**sent)
        return action(by, given, ids).reply

    return act


def _of_files(action: Action, model: type[Request]) -> Callable[..., Any]:
    """With files the form is read once it is known who calls, and worked on in the lane of uploads."""

    async def act(*, by: ActingOrganizer, request: HttpRequest, **ids: int) -> Any:
        if action.bounded:
            bound_upload(request, by.challenge)

        def work(form: FormData) -> Any:
            try:
                return action(by, read_form(model, form, {}), ids).reply
            except RunRefusedError as error:
                return JSONResponse({"error": str(error), "problems": error.problems}, status_code=error.status)
            except RefusalError:
                raise
            except FieldmarkError as error:  # about an uploaded table: without the place where the server keeps it
                raise RefusalError(plain_sentence(error)) from error

        async with request.form(max_files=len(files_of(model)), max_fields=10) as form:
            return await lane_of(request).run(by.user.id, work, form)

    return act


def _described(model: type[Request]) -> dict[str, Any]:
    """The form of a request with files, as OpenAPI describes it."""
    fields = {}
    for name, field in model.model_fields.items():
        kind: dict[str, Any] = {"type": "string", "format": "binary"} if name in files_of(model) else TEXT
        kind = YES_OR_NO if kind_of(field.annotation) is bool else kind
        fields[name] = kind | ({"description": field.description} if field.description else {})
    return described_form([name for name, field in model.model_fields.items() if field.is_required()], **fields)
