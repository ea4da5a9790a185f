"""The pages of those who run a challenge; their forms are actions (`actions.forms`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Depends
from sqlalchemy import select
from sqlalchemy.orm import joinedload
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.web.pages import render
from fieldmark_challenge.challenges import announcements, exports
from fieldmark_challenge.lifecycle import challenge_settings
from fieldmark_challenge.lifecycle.readiness import missing, offers_data
from fieldmark_challenge.people.rights import open_challenge, team_of
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.schema import Submission, User
from fieldmark_challenge.submissions.pages import metrics_by_name, rows_of
from fieldmark_challenge.web.context import UserOf, require_manager
from fieldmark_challenge.web.dependencies import DatabaseOf

router = APIRouter(prefix="/c/{slug}/organize", dependencies=[Depends(require_manager)])


@router.get("")
def organize(request: Request, slug: str, user: UserOf, database: DatabaseOf) -> Response:
    return organize_page(request, slug, user, database)


@router.get("/submissions")
def all_submissions(request: Request, slug: str, user: UserOf, database: DatabaseOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
        query = select(Submission).where(Submission.challenge_id == challenge.id)
        query = query.options(joinedload(Submission.team), joinedload(Submission.user))
        runs = list(session.scalars(query.order_by(Submission.accepted_at.desc(), Submission.id.desc())))
        rows = rows_of(session, challenge, runs, manages=True)
        team = team_of(session, user, challenge)
        return render(
            request,
            "organize_submissions.html",
            c=challenge,
            rows=rows,
            manages=True,
            team=team,
            metric_of=metrics_by_name(challenge),
        )


@router.get("/audit")
def audit_log(request: Request, slug: str, user: UserOf, database: DatabaseOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
        events = audit.events(session, challenge)
        team = team_of(session, user, challenge)
        return render(request, "audit.html", c=challenge, events=events, manages=True, team=team)


@router.get("/export.csv")
def export_csv(slug: str, user: UserOf, database: DatabaseOf) -> Response:
    with database.read() as session:
        rows = exports.export_rows(session, open_challenge(session, user, slug, manage=True))
    headers = {"content-disposition": f'attachment; filename="{slug}.csv"'}
    return Response(exports.to_csv(rows), media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/export.json")
def export_json(slug: str, user: UserOf, database: DatabaseOf) -> Response:
    with database.read() as session:
        rows = exports.export_rows(session, open_challenge(session, user, slug, manage=True))
    headers = {"content-disposition": f'attachment; filename="{slug}.json"'}
    body = json.dumps({"challenge": slug, "submissions": rows}, indent=2, ensure_ascii=False)
    return Response(body, media_type="application/json", headers=headers)


def organize_page(
    request: Request,
    slug: str,
    user: User,
    database: DatabaseOf,
    *,
    status: int = 200,
    error: str = "",
    problems: Sequence[dict[str, Any]] = (),
    sent: Mapping[str, str] | None = None,
) -> Response:
    """The page of those who run a challenge, also with what is wrong with a form that they sent."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
        return render(
            request,
            "organize.html",
            status,
            truth_file=BENCHMARKS[challenge.versioned_benchmark].task.answer.truth_file,
            c=challenge,
            phases=challenge.phases,
            organizers=challenge_settings.organizers_of(session, challenge),
            counts=challenge_settings.count_states(session, challenge),
            files=challenge.files,
            baselines=challenge_settings.baselines_of(session, challenge),
            announcements=announcements.announcements_of(session, challenge),
            missing=missing(session, challenge),
            offers_data=offers_data(challenge),
            manages=True,
            team=team_of(session, user, challenge),
            error=error,
            problems=problems,
        )
