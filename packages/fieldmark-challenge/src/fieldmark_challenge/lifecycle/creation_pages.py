"""The page with the form that makes a challenge."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import FieldmarkError
from fieldmark.web.pages import FormOf, go, render
from fieldmark.web.refusals import RefusalError
from fieldmark_challenge.lifecycle import creation
from fieldmark_challenge.lifecycle.creation_form import FIELDS, create_from, usual_values
from fieldmark_challenge.records.schema import User
from fieldmark_challenge.web.context import UserOf, require_organizer
from fieldmark_challenge.web.dependencies import DatabaseOf, StorageOf
from fieldmark_challenge.web.forms import plain_sentence, texts_of

router = APIRouter()


@router.get("/organize/new", dependencies=[Depends(require_organizer)])
def new_page(request: Request, user: UserOf) -> Response:
    return _page(request, user, usual_values())


@router.post("/organize/new", dependencies=[Depends(require_organizer)])
def new(request: Request, user: UserOf, database: DatabaseOf, storage: StorageOf, form: FormOf) -> Response:
    try:
        challenge = create_from(form, user, database, storage)
    except FieldmarkError as error:
        status = error.status if isinstance(error, RefusalError) else 400
        return _page(request, user, texts_of(form, *FIELDS), status=status, error=plain_sentence(error))
    warned = creation.warnings_about(database, storage, challenge)
    return go(f"/c/{challenge.slug}/organize", "created-warned" if warned else "created")


def _page(request: Request, user: User, values: dict[str, str], *, status: int = 200, error: str = "") -> Response:
    hosted = [(name, BENCHMARKS.about(name)) for name in BENCHMARKS if BENCHMARKS[name].task.run.hosted]
    may_name_folder = user.role == "admin"
    return render(
        request,
        "challenge_new.html",
        status,
        benchmarks=hosted,
        may_name_folder=may_name_folder,
        values=values,
        error=error,
    )
