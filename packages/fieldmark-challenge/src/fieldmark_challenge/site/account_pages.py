"""One's own account: password, sessions and API tokens; and, for admins, the accounts of others."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy import func, select
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.web.pages import FormOf, client_of, go, render
from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.challenges import registration
from fieldmark_challenge.mail import outbox
from fieldmark_challenge.mail.messages import TOPICS
from fieldmark_challenge.mail.topics import muted_by
from fieldmark_challenge.openid.identities import identities_of
from fieldmark_challenge.openid.offer import offered
from fieldmark_challenge.people import accounts, classrooms, rates
from fieldmark_challenge.records.schema import ROLES, ApiToken, User, WebSession
from fieldmark_challenge.web.context import AdminOf, UserOf
from fieldmark_challenge.web.dependencies import DatabaseOf, RowId
from fieldmark_challenge.web.forms import number_of, text_of
from fieldmark_challenge.web.links import address_of

router = APIRouter()


@router.get("/account")
def account(request: Request, user: UserOf, database: DatabaseOf) -> Response:
    return account_page(request, user, database)


@router.post("/account/password")
def password(request: Request, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    try:
        rates.count(database, rates.SIGN_IN, f"password {user.id}")
        keep = request.cookies.get(SESSION_COOKIE)
        accounts.change_password(database, user, text_of(form, "old"), text_of(form, "new"), keep=keep)
    except RefusalError as error:
        return account_page(request, user, database, status=error.status, error=str(error))
    return go("/account", "password")


@router.post("/account/tokens")
def make_token(request: Request, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    try:
        scopes = [str(scope) for scope in form.getlist("scopes")]
        days = number_of(form, "days", "The days a token is valid")
        secret = accounts.make_token(database, user, text_of(form, "name"), scopes, days=days)
    except RefusalError as error:
        return account_page(request, user, database, status=error.status, error=str(error))
    return account_page(request, user, database, new_token=secret)


@router.post("/account/tokens/{token_id}/revoke")
def revoke_token(token_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    accounts.revoke_token(database, user, token_id)
    return go("/account", "token-revoked")


@router.post("/account/sessions/end")
def end_sessions(request: Request, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    with database.write() as session:
        accounts.end_sessions(session, user.id, keep=request.cookies.get(SESSION_COOKIE))
    return go("/account", "sessions")


@router.get("/admin/users")
def users(request: Request, admin: AdminOf, database: DatabaseOf) -> Response:
    return _users(request, database)


@router.post("/admin/users/{user_id}/role")
def set_role(request: Request, user_id: RowId, admin: AdminOf, database: DatabaseOf, form: FormOf) -> Response:
    try:
        accounts.set_role(database, admin, user_id, text_of(form, "role"))
    except NotThereError:
        raise
    except RefusalError as error:
        return _users(request, database, status=error.status, error=str(error))
    return go("/admin/users", "role")


@router.post("/admin/users/{user_id}/reset-link")
def reset_link(request: Request, user_id: RowId, admin: AdminOf, database: DatabaseOf, form: FormOf) -> Response:
    with database.read() as session:
        user = session.get(User, user_id)
    secret = accounts.make_reset(database, user.email, actor=admin) if user else None
    if secret is None:
        raise NotThereError
    return _users(request, database, link=address_of(request, f"/reset/{secret}"))


@router.post("/admin/users/{user_id}/disable")
def disable(request: Request, user_id: RowId, admin: AdminOf, database: DatabaseOf, form: FormOf) -> Response:
    try:
        accounts.set_disabled(database, admin, user_id, text_of(form, "disabled") == "yes")
    except NotThereError:
        raise
    except RefusalError as error:
        return _users(request, database, status=error.status, error=str(error))
    return go("/admin/users", "disabled")


@router.post("/admin/registration")
def set_registration(admin: AdminOf, database: DatabaseOf, form: FormOf) -> Response:
    registration.set_closed(database, admin, text_of(form, "closed") == "yes")
    return go("/admin/users", "registration")


@router.post("/admin/classrooms")
def open_room(request: Request, admin: AdminOf, database: DatabaseOf, form: FormOf) -> Response:
    try:
        hours = number_of(form, "hours", "The hours")
        classrooms.open_room(database, admin, text_of(form, "network"), hours=hours, note=text_of(form, "note"))
    except RefusalError as error:
        return _users(request, database, status=error.status, error=str(error))
    return go("/admin/users", "room")


@router.post("/admin/classrooms/{room_id}/end")
def end_room(room_id: RowId, admin: AdminOf, database: DatabaseOf, form: FormOf) -> Response:
    classrooms.end_room(database, admin, room_id)
    return go("/admin/users", "room")


def account_page(
    request: Request,
    user: User,
    database: DatabaseOf,
    *,
    status: int = 200,
    error: str = "",
    new_token: str | None = None,
) -> Response:
    """The page of one's own account, also with what went wrong."""
    with database.read() as session:
        query = select(ApiToken).where(ApiToken.user_id == user.id).order_by(ApiToken.id.desc())
        open_sessions = select(func.count()).where(WebSession.user_id == user.id)
        return render(
            request,
            "account.html",
            status,
            error=error,
            tokens=list(session.scalars(query)),
            new_token=new_token,
            sessions=session.execute(open_sessions).scalar_one(),
            scopes=accounts.SCOPES,
            mail_on=outbox.on_since(session) is not None,
            topics=TOPICS,
            muted=muted_by(session, user.id),
            providers=offered(request),
            issuers={one.issuer: one.title for one in offered(request)},
            identities=identities_of(session, user.id),
        )


def _users(
    request: Request, database: DatabaseOf, *, status: int = 200, error: str = "", link: str | None = None
) -> Response:
    with database.read() as session:
        everybody = list(session.scalars(select(User).order_by(User.name_key)))
        rooms, closed = classrooms.open_rooms(session), registration.is_closed(session)
    here = client_of(request)
    shown = {"users": everybody, "roles": ROLES, "error": error, "link": link, "rooms": rooms, "here": here}
    return render(request, "users.html", status, closed=closed, **shown)
