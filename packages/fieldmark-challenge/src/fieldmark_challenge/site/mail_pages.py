"""Addresses and notices of one's own account; the link that ends notices; and, for admins, what became of mails."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.web.pages import FormOf, go, render
from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark_challenge.mail import addresses, outbox, topics
from fieldmark_challenge.mail.messages import TOPICS
from fieldmark_challenge.people import rates
from fieldmark_challenge.records.mail_schema import OutgoingMail
from fieldmark_challenge.site.account_pages import account_page
from fieldmark_challenge.web.context import AdminOf, UserOf
from fieldmark_challenge.web.dependencies import DatabaseOf
from fieldmark_challenge.web.forms import text_of

router = APIRouter()
SHOWN = 100


@router.post("/account/email")
def change_email(request: Request, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    try:
        rates.count(database, rates.SIGN_IN, f"email {user.id}")  # a password is asked for
        proves = addresses.change_address(database, user, text_of(form, "email"), text_of(form, "password"))
    except RefusalError as error:
        return account_page(request, user, database, status=error.status, error=str(error))
    return go("/account", "verify-sent" if proves else "email")


@router.post("/account/verify")
def send_again(request: Request, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    try:
        addresses.ask_to_verify(database, user)
    except RefusalError as error:
        return account_page(request, user, database, status=error.status, error=str(error))
    return go("/account", "verify-sent")


@router.get("/verify/{token}")
def verify_page(request: Request, token: str, user: UserOf, database: DatabaseOf) -> Response:
    with database.read() as session:
        address = addresses.token_address(session, user, token)
    return render(request, "verify.html", 200 if address else 404, address=address)


@router.post("/verify/{token}")
def verify(request: Request, token: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    try:
        addresses.verify(database, user, token)
    except NotThereError:
        return render(request, "verify.html", 404, address=None)
    except ConflictError as error:
        return account_page(request, user, database, status=error.status, error=str(error))
    return go("/account", "verified")


@router.post("/account/notices")
def choose_notices(request: Request, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    try:
        topics.set_wanted(database, user, {str(topic) for topic in form.getlist("topics")})
    except RefusalError as error:
        return account_page(request, user, database, status=error.status, error=str(error))
    return go("/account", "saved")


@router.get("/notices/{key}")
def stop_page(request: Request, key: str, database: DatabaseOf) -> Response:
    _, topic = topics.read_stop_key(database, key)
    return render(request, "stop_notices.html", about=TOPICS[topic], stopped=False)


@router.post("/notices/{key}")
def stop(request: Request, key: str, database: DatabaseOf, form: FormOf) -> Response:
    """The form is tied to the browser as all are; that a person may end these notices is proven by the link."""
    topic = topics.stop(database, key)
    return render(request, "stop_notices.html", about=TOPICS[topic], stopped=True)


@router.get("/admin/mail")
def mail_page(request: Request, admin: AdminOf, database: DatabaseOf) -> Response:
    with database.read() as session:
        newest = select(OutgoingMail).order_by(OutgoingMail.id.desc()).limit(SHOWN)
        return render(
            request,
            "mail.html",
            since=outbox.on_since(session),
            counts=outbox.counts(session),
            mails=list(session.scalars(newest)),
        )


@router.post("/admin/mail/trial")
def send_trial(request: Request, admin: AdminOf, database: DatabaseOf, form: FormOf) -> Response:
    rates.count(database, rates.MAIL_TO, f"trial {admin.id}")
    with database.write() as session:
        if not outbox.put(session, "trial", {}, user_id=admin.id, address=admin.email):
            raise ConflictError("This server sends no e-mail.")
    return go("/admin/mail", "trial-sent")
