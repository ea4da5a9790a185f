"""Running a challenge."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends
from sqlalchemy import select
from sqlalchemy.orm import joinedload
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.challenge.people.rights import open_challenge, team_of
from fieldmark.challenge.records import audit
from fieldmark.challenge.records.schema import Challenge, Submission, User
from fieldmark.challenge.refusals import NotThereError, RefusalError
from fieldmark.challenge.running import announcing, creating, exports, offered_files, organizing, phases
from fieldmark.challenge.scoring import queue
from fieldmark.challenge.site.context import FormOf, UserOf, bounded_by_challenge, go, render, require_manager
from fieldmark.challenge.site.dependencies import DatabaseOf, RowId, StorageOf
from fieldmark.challenge.site.forms import file_of, kept_files, moment_of, number_of, text_of
from fieldmark.challenge.site.lanes import lane_of
from fieldmark.challenge.submitting import submissions
from fieldmark.challenge.submitting.pages import metrics_by_name, rows_of
from fieldmark.challenge.submitting.run_files import RunRefusedError
from fieldmark.challenge.submitting.uploads import received
from fieldmark.errors import FieldmarkError

router = APIRouter(prefix="/c/{slug}/organize", dependencies=[Depends(require_manager)])


@router.get("")
def organize(request: Request, slug: str, user: UserOf, database: DatabaseOf) -> Response:
    return _page(request, slug, user, database)


@router.post("/settings")
def settings(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    def act(challenge: Challenge) -> None:
        texts = organizing.Texts(
            title=text_of(form, "title"),
            summary=text_of(form, "summary"),
            description=text_of(form, "description"),
            rules=text_of(form, "rules"),
            max_upload_mb=number_of(form, "max_upload_mb", "The limit on uploads"),
            max_team_size=number_of(form, "max_team_size", "The size of a team"),
            max_final=number_of(form, "max_final", "The number of final runs"),
            needs_run_without_external=text_of(form, "needs_run_without_external") == "yes",
            ladder=text_of(form, "ladder") == "yes",
            access=text_of(form, "access") or challenge.access,
            merging=text_of(form, "merging") == "yes",
        )
        organizing.change(database, user, challenge, texts, most_upload_mb=request.app.state.upload_mb)

    return _do(request, slug, user, database, act, "saved")


@router.post("/phases")
def add_phase(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    return _do(request, slug, user, database, lambda c: _set_phase(database, user, c, form, None), "saved")


@router.post("/phases/{phase_id}")
def change_phase(
    request: Request, slug: str, phase_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf
) -> Response:
    def act(challenge: Challenge) -> None:
        if phase_id not in {phase.id for phase in challenge.phases}:
            raise NotThereError
        _set_phase(database, user, challenge, form, phase_id)

    return _do(request, slug, user, database, act, "saved")


@router.post("/phases/{phase_id}/remove")
def remove_phase(
    request: Request, slug: str, phase_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf
) -> Response:
    return _do(request, slug, user, database, lambda c: phases.remove_phase(database, user, c, phase_id), "saved")


@router.post("/publish")
def publish(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    shown = text_of(form, "published") != "no"

    def act(challenge: Challenge) -> None:
        phases.publish(database, user, challenge, published=shown)

    return _do(request, slug, user, database, act, "published" if shown else "hidden")


@router.post("/freeze")
def freeze(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    return _do(request, slug, user, database, lambda c: phases.freeze(database, user, c), "frozen")


@router.post("/unfreeze")
def unfreeze(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    return _do(request, slug, user, database, lambda c: phases.freeze(database, user, c, frozen=False), "unfrozen")


@router.post("/reveal")
def reveal(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    return _do(request, slug, user, database, lambda c: phases.reveal(database, user, c), "revealed")


@router.post("/rescore")
def rescore(
    request: Request, slug: str, user: UserOf, database: DatabaseOf, storage: StorageOf, form: FormOf
) -> Response:
    """Scores everything again, with a corrected truth if one is sent along."""

    def act(challenge: Challenge) -> None:
        with kept_files(form, "truth", "classes", "media") as files:
            if "truth" in files:
                corrected = (files["truth"], files.get("classes"), files.get("media"))
                creating.replace_truth(database, storage, user, challenge, *corrected)
            else:
                queue.rescore(database, user, challenge)

    return _do(request, slug, user, database, act, "rescored")


@router.post("/baselines", dependencies=[Depends(bounded_by_challenge)])
async def baseline(
    request: Request, slug: str, user: UserOf, database: DatabaseOf, storage: StorageOf, form: FormOf
) -> Response:
    def act(challenge: Challenge) -> None:
        file = file_of(form, "run")
        if file is None:
            raise RefusalError("Choose a run file.")
        with received(file.file, file.filename or "run.csv", limit_mb=challenge.max_upload_mb) as upload:
            name, method = text_of(form, "title"), text_of(form, "method")
            submissions.add_baseline(database, storage, user, challenge, name, upload, method)

    return await lane_of(request).run(user.id, _do, request, slug, user, database, act, "baseline")


@router.post("/data")
def add_data(
    request: Request, slug: str, user: UserOf, database: DatabaseOf, storage: StorageOf, form: FormOf
) -> Response:
    def act(challenge: Challenge) -> None:
        file = file_of(form, "file")
        if file is None:
            raise RefusalError("Choose a file.")
        with received(file.file, file.filename or "file", limit_mb=request.app.state.upload_mb) as upload:
            about = text_of(form, "about")
            offered_files.add_data_file(database, storage, user, challenge, upload.path, upload.filename, about)

    return _do(request, slug, user, database, act, "file")


@router.post("/data/{file_id}/delete")
def delete_data(
    request: Request, slug: str, file_id: RowId, user: UserOf, database: DatabaseOf, storage: StorageOf, form: FormOf
) -> Response:
    def act(challenge: Challenge) -> None:
        organizing.delete_data_file(database, storage, user, challenge, file_id)

    return _do(request, slug, user, database, act, "file-deleted")


@router.post("/announcements")
def announce(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    def act(challenge: Challenge) -> None:
        announcing.announce(database, user, challenge, text_of(form, "title"), text_of(form, "text"))

    return _do(request, slug, user, database, act, "announced")


@router.post("/announcements/{announcement_id}/remove")
def take_back(
    request: Request, slug: str, announcement_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf
) -> Response:
    def act(challenge: Challenge) -> None:
        announcing.remove(database, user, challenge, announcement_id)

    return _do(request, slug, user, database, act, "taken-back")


@router.post("/organizers")
def add_organizer(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    def act(challenge: Challenge) -> None:
        organizing.add_organizer(database, user, challenge, text_of(form, "who"))

    return _do(request, slug, user, database, act, "organizer")


@router.post("/organizers/{user_id}/remove")
def remove_organizer(
    request: Request, slug: str, user_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf
) -> Response:
    def act(challenge: Challenge) -> None:
        organizing.remove_organizer(database, user, challenge, user_id)

    return _do(request, slug, user, database, act, "organizer")


@router.post("/organizers/{heir_id}/own")
def give_away(
    request: Request, slug: str, heir_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf
) -> Response:
    def act(challenge: Challenge) -> None:
        organizing.give_away(database, user, challenge, heir_id)

    return _do(request, slug, user, database, act, "organizer")


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


@router.post("/submissions/{submission_id}/refund")
def refund(slug: str, submission_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
    submissions.refund(database, user, challenge, submission_id)
    return go(f"/c/{slug}/organize/submissions", "refunded")


@router.post("/submissions/{submission_id}/retry")
def retry(slug: str, submission_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
    queue.rescore(database, user, challenge, only=submission_id)
    return go(f"/c/{slug}/organize/submissions", "retried")


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


def _set_phase(database: DatabaseOf, user: User, challenge: Challenge, form: FormData, phase_id: int | None) -> None:
    phases.set_phase(
        database,
        user,
        challenge,
        phase_id=phase_id,
        name=text_of(form, "name"),
        starts_at=moment_of(form, "starts", "The beginning"),
        ends_at=moment_of(form, "ends", "The end"),
        daily_limit=number_of(form, "daily", "The limit per day"),
        total_limit=number_of(form, "total", "The limit in all"),
    )


def _do(
    request: Request, slug: str, user: User, database: DatabaseOf, act: Callable[[Challenge], Any], done: str
) -> Response:
    """Does what a form asks, or shows the page again with what is wrong with it."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
        challenge.phases  # noqa: B018  (loaded while there is a session)
    try:
        act(challenge)
    except NotThereError:
        raise
    except FieldmarkError as error:
        status = error.status if isinstance(error, RefusalError) else 400
        problems = error.problems if isinstance(error, RunRefusedError) else []
        return _page(request, slug, user, database, status=status, error=str(error), problems=problems)
    return go(f"/c/{slug}/organize", done)


def _page(
    request: Request,
    slug: str,
    user: User,
    database: DatabaseOf,
    *,
    status: int = 200,
    error: str = "",
    problems: list[dict[str, Any]] | None = None,
) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
        return render(
            request,
            "organize.html",
            status,
            truth_file=BENCHMARKS[challenge.versioned_benchmark].task.answer.truth_file,
            c=challenge,
            phases=challenge.phases,
            organizers=organizing.organizers_of(session, challenge),
            counts=organizing.count_states(session, challenge),
            files=challenge.files,
            baselines=organizing.baselines_of(session, challenge),
            announcements=announcing.announcements_of(session, challenge),
            manages=True,
            team=team_of(session, user, challenge),
            error=error,
            problems=problems or [],
        )
