"""Taking part: the pages of a challenge, its rules and data, and the team."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO
from typing import Any

from fastapi import APIRouter
from PIL import Image, UnidentifiedImageError
from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.web.pages import FormOf, go, render
from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark_challenge.challenges import announcements, team_merges
from fieldmark_challenge.challenges.code_tasks import code_phases
from fieldmark_challenge.challenges.phases import phase_at
from fieldmark_challenge.challenges.stages import stages_around
from fieldmark_challenge.people import rates, rights, teams
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.records.participation import Admission
from fieldmark_challenge.records.schema import (
    Challenge,
    DataFile,
    Invitation,
    Membership,
    Submission,
    Team,
    User,
    utc_now,
)
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.submissions.starter_kits import starter_kit
from fieldmark_challenge.web.attachments import sent
from fieldmark_challenge.web.context import UserOf, ViewerOf
from fieldmark_challenge.web.dependencies import DatabaseOf, RowId, StorageOf
from fieldmark_challenge.web.forms import text_of
from fieldmark_challenge.web.links import address_of
from fieldmark_challenge.web.markdown_text import pictures_in

router = APIRouter()


@router.get("/c/{slug}")
def overview(request: Request, slug: str, database: DatabaseOf, storage: StorageOf, viewer: ViewerOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, viewer.user, slug)
        benchmark = BENCHMARKS[challenge.versioned_benchmark]
        return render(
            request,
            "challenge.html",
            c=challenge,
            phase=phase_at(challenge.phases, utc_now()),
            phases=challenge.phases,
            asking=code_phases(session, challenge),
            manages=rights.manages(session, viewer.user, challenge),
            team=rights.team_of(session, viewer.user, challenge),
            accepted=rights.has_accepted(session, viewer.user, challenge),
            barred=_barred(session, viewer.user, challenge),
            asked=viewer.user is not None and session.get(Admission, (challenge.id, viewer.user.id)) is not None,
            metrics=[(metric.name, metric.about) for metric in benchmark.task.metrics],
            reported=benchmark.reported,
            provisional=benchmark.provisional,
            counts=_counts(session, challenge),
            announcements=announcements.announcements_of(session, challenge),
            stages=stages_around(session, viewer.user, challenge),
            pictures=shown_pictures(storage, challenge),
        )


@router.get("/c/{slug}/announcements.atom")
def feed(request: Request, slug: str, database: DatabaseOf, viewer: ViewerOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, viewer.user, slug)
        rows = announcements.announcements_of(session, challenge)
    body = announcements.as_feed(challenge, rows, address_of(request, f"/c/{slug}"))
    return Response(body, media_type="application/atom+xml; charset=utf-8")


@router.post("/c/{slug}/rules")
def accept_rules(slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
    if text_of(form, "accept") != "yes":
        raise RefusalError("Tick the box to accept the rules.")
    teams.accept_rules(database, user, challenge)
    return go(f"/c/{slug}", "rules")


@router.get("/c/{slug}/data")
def data(request: Request, slug: str, database: DatabaseOf, viewer: ViewerOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, viewer.user, slug)
        return render(
            request,
            "data.html",
            c=challenge,
            files=challenge.files,
            team=rights.team_of(session, viewer.user, challenge),
            accepted=rights.has_accepted(session, viewer.user, challenge),
            manages=rights.manages(session, viewer.user, challenge),
        )


@router.get("/c/{slug}/data/{file_id}")
def download(slug: str, file_id: RowId, user: UserOf, database: DatabaseOf, storage: StorageOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        file = session.get(DataFile, file_id)
        if file is None or file.challenge_id != challenge.id:
            raise NotThereError
        rights.need_acceptance(session, user, challenge)
    return sent(storage, file.path, file.name, file.size)


@router.get("/c/{slug}/starter-kit.zip")
def kit(request: Request, slug: str, user: UserOf, database: DatabaseOf, storage: StorageOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        rights.need_acceptance(session, user, challenge)
        program = bool(code_phases(session, challenge))
        data = starter_kit(challenge, storage, address_of(request, f"/c/{slug}"), program=program)
    headers = {"content-disposition": f'attachment; filename="{slug}-starter-kit.zip"'}
    return Response(data, media_type="application/zip", headers=headers)


@router.get("/c/{slug}/team")
def team_page(request: Request, slug: str, user: UserOf, database: DatabaseOf) -> Response:
    return show_team(request, slug, user, database)


@router.post("/c/{slug}/team")
def make_team(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    name = text_of(form, "name")
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
    try:
        teams.make_team(database, user, challenge, name)
    except NotThereError:
        raise
    except RefusalError as error:
        return show_team(request, slug, user, database, status=error.status, error=str(error), values={"name": name})
    return go(f"/c/{slug}/team", "team")


@router.post("/c/{slug}/team/invite")
def invite(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    team = _own_team(database, user, slug)
    try:
        secret = teams.invite(database, user, team, text_of(form, "note"))
    except NotThereError:
        raise
    except RefusalError as error:
        return show_team(request, slug, user, database, status=error.status, error=str(error))
    return show_team(request, slug, user, database, link=address_of(request, f"/join/{secret}"))


@router.post("/c/{slug}/team/invitations/{invitation_id}/revoke")
def revoke(slug: str, invitation_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    teams.revoke_invitation(database, user, _own_team(database, user, slug), invitation_id)
    return go(f"/c/{slug}/team", "revoked")


@router.post("/c/{slug}/team/leave")
def leave(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
    try:
        teams.leave(database, user, challenge)
    except NotThereError:
        raise
    except RefusalError as error:
        return show_team(request, slug, user, database, status=error.status, error=str(error))
    return go(f"/c/{slug}/team", "left")


@router.get("/join/{token}")
def join_page(request: Request, token: str, user: UserOf, database: DatabaseOf) -> Response:
    return _join(request, token, user, database)


@router.post("/join/{token}")
def join(request: Request, token: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    rates.count(database, rates.JOIN, str(user.id))
    try:
        if text_of(form, "accept") == "yes":
            with database.read() as session:
                invitation = teams.find_invitation(session, user, token)
            if invitation is not None:
                teams.accept_rules(database, user, invitation.team.challenge)
        team = teams.join(database, user, token)
    except RefusalError as error:
        return _join(request, token, user, database, status=error.status, error=str(error))
    return go(f"/c/{team.challenge.slug}/team", "joined")


def _barred(session: Session, user: User | None, challenge: Challenge) -> str:
    """Why somebody may not take part; empty if they may."""
    try:
        if user is not None:
            rights.need_admission(session, user, challenge)
    except RefusalError as error:
        return str(error)
    return ""


def _counts(session: Session, challenge: Challenge) -> dict[str, int]:
    here = (Team.challenge_id == challenge.id, Team.kind == "participants")
    team = select(func.count()).where(*here, Team.standing.in_(rights.COUNTED))
    run = select(func.count()).where(Submission.challenge_id == challenge.id, Submission.state == "scored")
    return {"teams": session.execute(team).scalar_one(), "submissions": session.execute(run).scalar_one()}


def _own_team(database: DatabaseOf, user: User, slug: str) -> Team:
    with database.read() as session:
        team = rights.team_of(session, user, open_challenge(session, user, slug))
    if team is None:
        raise NotThereError
    return team


def show_team(
    request: Request,
    slug: str,
    user: User,
    database: DatabaseOf,
    *,
    status: int = 200,
    error: str = "",
    link: str | None = None,
    values: dict[str, Any] | None = None,
) -> Response:
    """The page of one's own team, or the form that makes one."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        team = rights.team_of(session, user, challenge)
        members: list[Membership] = []
        invitations: list[Invitation] = []
        if team is not None:
            here = (Membership.team_id == team.id, Membership.left_at.is_(None))
            of_team = select(Membership).where(*here).options(joinedload(Membership.user))
            members = list(session.scalars(of_team.order_by(Membership.joined_at)))
            invited = select(Invitation).where(Invitation.team_id == team.id).order_by(Invitation.id.desc())
            invitations = list(session.scalars(invited))
        return render(
            request,
            "team.html",
            status,
            c=challenge,
            team=team,
            members=members,
            people=len(team.members) if team is not None else 0,
            invitations=invitations,
            offers=team_merges.offers_of(session, team) if team is not None else None,
            link=link,
            is_captain=team is not None and team.captain_id == user.id,
            settled=team is not None and teams.has_handed_in(session, team),
            accepted=rights.has_accepted(session, user, challenge),
            manages=rights.manages(session, user, challenge),
            error=error,
            values=values or {"name": ""},
        )


def _join(
    request: Request, token: str, user: User, database: DatabaseOf, *, status: int = 200, error: str = ""
) -> Response:
    with database.read() as session:
        invitation = teams.find_invitation(session, user, token)
        challenge = invitation.team.challenge if invitation else None
        return render(
            request,
            "join.html",
            status if invitation else 404,
            valid=invitation is not None,
            invitation=invitation,
            accepted=challenge is not None and rights.has_accepted(session, user, challenge),
            manages=challenge is not None and rights.manages(session, user, challenge),
            error=error,
        )


KINDS = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}


# Larger ones are not shown: they come with every view of the page.
LARGEST_BYTES, MOST = 1 << 20, 6


def shown_pictures(storage: Storage, challenge: Challenge) -> dict[str, str]:
    """The pictures that description and rules name, as data URIs by their names; nobody sees any other file by this."""
    named = {*pictures_in(challenge.description), *pictures_in(challenge.rules)}
    files = [file for file in challenge.files if file.name in named and file.size <= LARGEST_BYTES][:MOST]
    found = {file.name: _as_address(storage, file) for file in files}
    return {name: address for name, address in found.items() if address}


def _as_address(storage: Storage, file: DataFile) -> str:
    """A picture as a data URI; empty for what is none, whatever its name says."""
    if not storage.exists(file.path):
        return ""
    data = b"".join(storage.chunks(file.path))
    try:
        with Image.open(BytesIO(data), formats=tuple(KINDS)) as picture:
            kind = KINDS[str(picture.format)]
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
        return ""
    return f"data:{kind};base64,{b64encode(data).decode()}"
