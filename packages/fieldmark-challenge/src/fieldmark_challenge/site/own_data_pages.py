"""One's own data: to take home, and to have deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from fieldmark.web.pages import FormOf, go
from fieldmark.web.refusals import RefusalError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.people import deletion, rates
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import CHUNK
from fieldmark_challenge.site import own_data
from fieldmark_challenge.site.account_pages import account_page
from fieldmark_challenge.web.context import UserOf
from fieldmark_challenge.web.dependencies import DatabaseOf, StorageOf
from fieldmark_challenge.web.forms import text_of

router = APIRouter()


@router.get("/account/export.zip")
def export(user: UserOf, database: DatabaseOf, storage: StorageOf) -> Response:
    rates.count(database, rates.EXPORT, str(user.id))
    with ExitStack() as stack:
        path = stack.enter_context(scratch("export")) / "data.zip"
        with database.read() as session:
            own_data.write_archive(session, storage, user, path)
        kept = stack.pop_all()

    def pieces() -> Iterator[bytes]:
        with kept, path.open("rb") as file:
            while piece := file.read(CHUNK):
                yield piece

    headers = {"content-disposition": 'attachment; filename="fieldmark-data.zip"'}
    return StreamingResponse(pieces(), media_type="application/zip", headers=headers)


@router.post("/account/delete")
def delete(request: Request, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    try:
        rates.count(database, rates.SIGN_IN, f"delete {user.id}")
        if text_of(form, "sure") != "yes":
            raise RefusalError("Tick the box: deletion cannot be undone.")
        rename = text_of(form, "rename_teams") == "yes"
        deletion.delete_own(database, user, text_of(form, "password"), rename_teams=rename)
    except RefusalError as error:
        return account_page(request, user, database, status=error.status, error=str(error))
    response = go("/", "deleted")
    response.delete_cookie(SESSION_COOKIE, path="/")
    return response
