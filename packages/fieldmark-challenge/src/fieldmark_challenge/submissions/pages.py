"""Submitting runs, and what became of them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from sqlalchemy.orm import Session
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Metric
from fieldmark.errors import FieldmarkError
from fieldmark.scoring import Score
from fieldmark.web.pages import FormOf, go, render
from fieldmark.web.part_sizes import IN_PARTS_FROM
from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark.web.security import POLICY_WITH_SCRIPT
from fieldmark_challenge.boards.own_scores import own_cards, own_metrics, released
from fieldmark_challenge.challenges.code_tasks import asks_for_code, task_of
from fieldmark_challenge.challenges.offered_files import sample_file
from fieldmark_challenge.challenges.phases import phase_at
from fieldmark_challenge.challenges.visible_output import program_of, visible_output
from fieldmark_challenge.operations.lease_queue import PROGRAMS
from fieldmark_challenge.people import rights
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.records.schema import Challenge, Submission, User, utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.submissions import submissions
from fieldmark_challenge.submissions.program_intake import why_not
from fieldmark_challenge.submissions.run_files import RunRefusedError
from fieldmark_challenge.submissions.submissions import Entry
from fieldmark_challenge.submissions.uploads import received
from fieldmark_challenge.web.attachments import sent
from fieldmark_challenge.web.context import AdmittedOf, UserOf
from fieldmark_challenge.web.dependencies import DatabaseOf, RowId, StorageOf
from fieldmark_challenge.web.forms import file_of, text_of, texts_of
from fieldmark_challenge.web.lanes import lane_of
from fieldmark_challenge.web.links import address_of

log = logging.getLogger(__name__)
router = APIRouter()
FIELDS = ("title", "method", "external", "external_note", "external_found")
EXAMPLE_LINES = 4


@dataclass(frozen=True)
class SubmissionRow:
    """A submission in a list."""

    submission: Submission
    public: dict[str, Score] | None
    private: dict[str, Score] | None
    position: int | None


@router.get("/c/{slug}/submit")
def submit_page(request: Request, slug: str, user: UserOf, database: DatabaseOf, storage: StorageOf) -> Response:
    return _submit(request, slug, user, database, storage)


@router.post("/c/{slug}/submit")
async def submit(
    request: Request, slug: str, user: UserOf, challenge: AdmittedOf, database: DatabaseOf, storage: StorageOf,
    form: FormOf,
) -> Response:  # fmt: skip
    return await lane_of(request).run(user.id, _handed_in, request, slug, user, challenge, database, storage, form)


def _handed_in(
    request: Request, slug: str, user: User, challenge: Challenge, database: DatabaseOf, storage: Storage,
    form: FormData,
) -> Response:  # fmt: skip
    arrived = request.state.arrived
    try:
        file = file_of(form, "run")
        if file is None:
            raise RefusalError("Choose a run file.")
        with received(file.file, file.filename or "run.csv", limit_mb=request.state.upload_limit_mb) as upload:
            handed_in = submissions.hand_in(database, storage, user, challenge, upload, _entry(form), arrived=arrived)
    except RunRefusedError as error:
        return _submit(request, slug, user, database, storage, form=form, error=error, problems=error.problems)
    except NotThereError:
        raise
    except RefusalError as error:
        return _submit(request, slug, user, database, storage, form=form, error=error)
    return go(f"/c/{slug}/submissions/{handed_in.id}", "handed-in")


@router.get("/c/{slug}/submissions")
def submission_list(request: Request, slug: str, user: UserOf, database: DatabaseOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        team = rights.team_of(session, user, challenge)
        manages = rights.manages(session, user, challenge)
        runs = submissions.team_submissions(session, team) if team else []
        phase = phase_at(challenge.phases, utc_now())
        return render(
            request,
            "submissions.html",
            c=challenge,
            team=team,
            phase=phase,
            manages=manages,
            rows=rows_of(session, challenge, runs, manages=manages),
            quota=submissions.quota(session, team, phase, utc_now()) if team and phase else None,
            max_final=challenge.max_final,
            metric_of=metrics_by_name(challenge),
            can_select=team is not None and challenge.revealed_at is None,
        )


@router.get("/c/{slug}/submissions/{submission_id}")
def submission(request: Request, slug: str, submission_id: RowId, user: UserOf, database: DatabaseOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        run = rights.open_submission(session, user, challenge, submission_id)
        manages = rights.manages(session, user, challenge)
        cards = own_cards(session, challenge, run, manages=manages)
        team = rights.team_of(session, user, challenge)
        own = team is not None and team.id == run.team_id
        program = program_of(session, run)
        page = render(
            request,
            "submission.html",
            program=program,
            program_position=PROGRAMS.position(session, program) if program else None,
            seen=visible_output(program, task_of(session, challenge.id), manages=manages),
            c=challenge,
            s=run,
            team=team,
            position=queue.position(session, run),
            public=cards.get("public"),
            private=cards.get("private"),
            metrics=list(metrics_by_name(challenge).values()),
            released=released(session, challenge, run) if challenge.ladder and "public" in cards else None,
            can_select=own
            and run.state == "scored"
            and challenge.revealed_at is None
            and not (run.standing or run.team.standing),
            live=run.state in ("queued", "running"),
            manages=manages,
        )
    page.headers["content-security-policy"] = POLICY_WITH_SCRIPT  # it looks again by itself
    return page


@router.get("/c/{slug}/submissions/{submission_id}/status")
def submission_status(slug: str, submission_id: RowId, user: UserOf, database: DatabaseOf) -> Response:
    with database.read() as session:
        run = rights.open_submission(session, user, open_challenge(session, user, slug), submission_id)
        place = queue.position(session, run)
    return JSONResponse({"state": run.state, "reason": run.reason, "position": place})


@router.get("/c/{slug}/submissions/{submission_id}/file")
def submission_file(
    slug: str, submission_id: RowId, user: UserOf, database: DatabaseOf, storage: StorageOf, written: bool = False
) -> Response:
    """What was submitted; for organizers with `written`, what a program that was submitted wrote."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        run = rights.open_submission(session, user, challenge, submission_id)
        program = program_of(session, run)
        manages = rights.manages(session, user, challenge)
        seen = visible_output(program, task_of(session, challenge.id), manages=manages)
    if program is not None and not (written and seen.run):
        return sent(storage, program.path, program.filename, program.size)
    if not run.path:
        raise NotThereError
    return sent(storage, run.path, run.filename if program is None else "predictions.csv", run.size)


@router.post("/c/{slug}/submissions/{submission_id}/select")
def select_final(slug: str, submission_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
    submissions.select_final(database, user, challenge, submission_id, text_of(form, "selected") == "yes")
    return go(f"/c/{slug}/submissions", "selected")


def rows_of(session: Session, challenge: Challenge, runs: list[Submission], *, manages: bool) -> list[SubmissionRow]:
    """Submissions with the scores that may be shown."""
    scores = own_metrics(session, challenge, runs, manages=manages)
    return [
        SubmissionRow(run, scores[run.id].get("public"), scores[run.id].get("private"), queue.position(session, run))
        for run in runs
    ]


def metrics_by_name(challenge: Challenge) -> dict[str, Metric]:
    """The metrics of a challenge, the primary one first."""
    return {metric.name: metric for metric in BENCHMARKS[challenge.versioned_benchmark].task.metrics}


def example_of(storage: Storage, challenge: Challenge) -> list[str]:
    """The first lines of the sample run: what the format looks like."""
    task = BENCHMARKS[challenge.versioned_benchmark].task
    sample = next((file for file in challenge.files if file.name == sample_file(task)), None)
    if sample is None:
        return []
    try:
        with storage.open(sample.path) as file:
            return [line[:160] for line in task.run.example(file, EXAMPLE_LINES)]
    except (ValueError, OSError, FieldmarkError) as error:  # somebody put another file in its place
        log.warning("the sample run of %s cannot be shown: %s", challenge.slug, error)
        return []


def _entry(form: FormData) -> Entry:
    return Entry(
        title=text_of(form, "title"),
        method=text_of(form, "method"),
        external_data=submissions.declares_external(text_of(form, "external")),
        external_note=text_of(form, "external_note"),
        external_found=text_of(form, "external_found"),
        idempotency_key=text_of(form, "once") or None,
    )


def _submit(
    request: Request,
    slug: str,
    user: User,
    database: DatabaseOf,
    storage: Storage,
    *,
    form: FormData | None = None,
    error: RefusalError | None = None,
    problems: list[dict[str, Any]] | None = None,
) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        team = rights.team_of(session, user, challenge)
        phase = phase_at(challenge.phases, utc_now())
        task = asks_for_code(session, phase)
        page = render(
            request,
            "submit.html",
            error.status if error else 200,
            task=task,
            why_not=why_not(session) if task else "",
            git_address=address_of(request, f"/api/v1/challenges/{slug}/program.git"),
            c=challenge,
            phase=phase,
            phases=challenge.phases,
            team=team,
            quota=submissions.quota(session, team, phase, utc_now()) if team and phase else None,
            accepted=rights.has_accepted(session, user, challenge),
            manages=rights.manages(session, user, challenge),
            run_format=example_of(storage, challenge),
            error=str(error) if error else "",
            problems=problems or [],
            total=error.total if isinstance(error, RunRefusedError) else 0,
            values=texts_of(form, *FIELDS) if form else dict.fromkeys(FIELDS, ""),
            parts_from=IN_PARTS_FROM,
        )
    page.headers["content-security-policy"] = POLICY_WITH_SCRIPT  # large files are sent in parts
    return page
