"""The forms of pages that are made from actions: where they are sent to, and what is shown then."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.datastructures import FormData
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from fieldmark.errors import FieldmarkError
from fieldmark.web.pages import FormOf, go
from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark_challenge.actions import ORGANIZING
from fieldmark_challenge.actions.api import acting
from fieldmark_challenge.actions.declarations import ActingOrganizer, Action, Actions
from fieldmark_challenge.actions.fields import FormField, files_of, form_rows, read_form
from fieldmark_challenge.lifecycle.pages import organize_page
from fieldmark_challenge.lifecycle.people_pages import people_page
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.programs.pages import code_page
from fieldmark_challenge.submissions.run_files import RunRefusedError
from fieldmark_challenge.web.context import UserOf, bounded_by_challenge, require_manager
from fieldmark_challenge.web.dependencies import DatabaseOf, RowId
from fieldmark_challenge.web.forms import plain_sentence
from fieldmark_challenge.web.lanes import lane_of

# What is shown again when a form will not do; elsewhere a page of its own says so.
PAGES: dict[str, Callable[..., Response]] = {"": organize_page, "/people": people_page, "/code": code_page}


def make_router(*modules: Actions) -> APIRouter:
    """Where the forms of organizers are sent to."""
    router = APIRouter(prefix="/c/{slug}/organize", dependencies=[Depends(require_manager)])
    for action in (one for module in modules for one in module):
        for path, settled in action.pages.items():
            bounded = [Depends(bounded_by_challenge)] if action.bounded else []
            router.add_api_route(path, _endpoint(action, settled), methods=["POST"], dependencies=bounded)
    return router


def form_of(name: str) -> list[list[FormField]]:
    """The fields of the form of an action, by rows; for templates."""
    request = next(one.request for module in ORGANIZING for one in module if one.name == name)
    return form_rows(request) if request is not None else []


def offered_on(page: str) -> list[tuple[Action, str]]:
    """The actions whose forms a page makes by itself, each with where it is sent to; for templates."""
    shown = (one for module in ORGANIZING for one in module if one.button and one.on == page)
    return [(action, path) for action in shown for path in action.pages]


def organizer(request: HttpRequest, slug: str, user: UserOf, database: DatabaseOf) -> ActingOrganizer:
    """Who fills a form in, and the challenge that they run."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
        challenge.phases  # noqa: B018  (loaded while there is a session)
    return acting(request, challenge, user)


def _endpoint(action: Action, settled: Mapping[str, Any]) -> Callable[..., Any]:
    def act(*, request: HttpRequest, by: ActingOrganizer, form: FormData, **ids: int) -> Response:
        return _done(action, settled, request, by, form, ids)

    async def act_in_lane(*, request: HttpRequest, by: ActingOrganizer, form: FormData, **ids: int) -> Response:
        return await lane_of(request).run(by.user.id, _done, action, settled, request, by, form, ids)

    endpoint: Callable[..., Any] = act_in_lane if action.request is not None and files_of(action.request) else act
    kinds = {"request": HttpRequest, "by": Annotated[ActingOrganizer, Depends(organizer)], "form": FormOf}
    kinds |= dict.fromkeys(action.ids, RowId)
    taken = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in kinds.items()]
    endpoint.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    return endpoint


def _done(
    action: Action,
    settled: Mapping[str, Any],
    request: HttpRequest,
    by: ActingOrganizer,
    form: FormData,
    ids: dict[str, int],
) -> Response:
    """Does what a form asks, or shows its page again with what is wrong with it."""
    page, place = PAGES.get(action.on), (request, by.challenge.slug, by.user, by.database)
    try:
        if action.there is not None:
            action.there(by, **ids)
        told = action(by, read_form(action.request, form, settled) if action.request is not None else None, ids)
    except NotThereError:
        raise
    except FieldmarkError as error:
        if page is None:
            raise
        status = error.status if isinstance(error, RefusalError) else 400
        problems = error.problems if isinstance(error, RunRefusedError) else []
        sent = {name: value for name, value in form.items() if isinstance(value, str)}
        return page(*place, status=status, error=plain_sentence(error), problems=problems, sent=sent)
    if told.once is not None and page is not None:
        return page(*place, **told.once)
    return go(f"/c/{by.challenge.slug}/organize{action.on}", told.done)
