"""Pages that only look: board, entry, comparison, receipts, and the planner."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query
from markupsafe import Markup
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Metric
from fieldmark.errors import MisuseError
from fieldmark.scoring import Scorecard, receipts
from fieldmark.scoring.score_parts import CLASSES_FILE, MEDIA_FILE, PARTS_FILE, PRIVATE, PUBLIC, TRUTH_FILES
from fieldmark.web.pages import fragment, render
from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.boards import board_charts, planner, visibility
from fieldmark_challenge.boards.board_pages import BoardPage
from fieldmark_challenge.boards.leaderboard import Board, duel
from fieldmark_challenge.boards.single_flight import Kept
from fieldmark_challenge.boards.visibility import Sight
from fieldmark_challenge.challenges import stages
from fieldmark_challenge.challenges.code_tasks import task_of
from fieldmark_challenge.challenges.metrics import board_metric, deciding_metric
from fieldmark_challenge.challenges.visible_output import program_of, visible_output
from fieldmark_challenge.people import rights
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.scoring.stored_scores import cards_of, parts_visible, salt_secret
from fieldmark_challenge.web.context import UserOf, Viewer, ViewerOf, kept_headers, page_tag
from fieldmark_challenge.web.dependencies import DatabaseOf, RowId, StorageOf

router = APIRouter()
T = TypeVar("T")
TRUTH_TABLES = (*TRUTH_FILES, CLASSES_FILE, MEDIA_FILE, PARTS_FILE)
RECEIPT_KEY = "receipt-key"
Count = Annotated[int, Query(ge=0, le=10_000_000)]
Share = Annotated[float, Query(ge=0, le=1, allow_inf_nan=False)]
Difference = Annotated[float, Query(ge=0, allow_inf_nan=False)]
Correlation = Annotated[float, Query(ge=-1, le=1, allow_inf_nan=False)]
Basis = Annotated[Literal["measured", "assumed"] | None, Query()]
PartWanted = Annotated[str | None, Query(alias="part", max_length=16)]
MetricWanted = Annotated[str | None, Query(alias="metric", max_length=64)]
PageWanted = Annotated[int, Query(ge=1, le=1_000_000)]
CONTENTS: Kept[Markup] = Kept(256)


def sight_of(session: Session, viewer: Viewer, slug: str, part: str | None) -> Sight:
    """A part of a challenge as the viewer may see it."""
    challenge = rights.open_challenge(session, viewer.user, slug)
    manages = rights.manages(session, viewer.user, challenge)
    return visibility.look(challenge, part, manages=manages, team=rights.team_of(session, viewer.user, challenge))


@router.get("/c/{slug}/board")
def board(
    request: Request, slug: str, database: DatabaseOf, viewer: ViewerOf, part: PartWanted = None,
    metric: MetricWanted = None, page: PageWanted = 1,
) -> Response:  # fmt: skip
    """The leaderboard, with what cannot be told apart. A browser that has it already is told so."""
    with database.read() as session:
        sight = sight_of(session, viewer, slug, part)
        state = visibility.state_of(session, sight)
        around = stages.stages_around(session, viewer.user, sight.challenge)
        tag = page_tag(request, state and (state, tuple(around)))
        if tag is not None and request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=kept_headers(tag))
        team = sight.team.name if sight.team is not None else None
        key = (state, metric, page, team)
        content = _content(request, session, sight, metric, page) if state is None else CONTENTS.get(
            key, lambda: _content(request, session, sight, metric, page)
        )  # fmt: skip
        answer = render(request, "board.html", **_shared(sight), content=content, stages=around)
        if tag is not None:
            answer.headers.update(kept_headers(tag))
        return answer


def _content(request: Request, session: Session, sight: Sight, metric: str | None, page: int) -> Markup:
    """What the page of a board shows that is the same for all of a team."""
    shown = _board(session, sight, metric)
    entries = visibility.entries_of(session, sight)
    public = {}
    if sight.part == PRIVATE:
        before = visibility.board_of(session, visibility.look(sight.challenge, PUBLIC, manages=sight.manages))
        public = {row.entrant.team: row.place for row in before.rows if row.place is not None}
    cut = BoardPage.cut(shown, page, sight.team.name if sight.team is not None else None)
    return fragment(
        request,
        "board_content.html",
        **_shared(sight),
        board=shown,
        page=cut,
        metrics=[shown.metric]
        if sight.by_ladder
        else list(BENCHMARKS[sight.challenge.versioned_benchmark].task.metrics),
        whiskers=board_charts.whiskers(shown, cut.rows),
        public=public,
        progress=board_charts.progress(sight, entries, shown.metric),
        runs=board_charts.runs(sight, entries, shown.metric),
        total=len(entries),
    )


@router.get("/c/{slug}/entries/{entry}")
def entry(
    request: Request, slug: str, entry: RowId, database: DatabaseOf, viewer: ViewerOf, part: PartWanted = None
) -> HTMLResponse:
    """One entry: its scores, and how they differ by site or month."""
    with database.read() as session:
        sight = sight_of(session, viewer, slug, part)
        entrant = visibility.entry_of(session, sight, str(entry))
        declared = _metrics(sight)
        row = next((row for row in visibility.board_of(session, sight).rows if row.entrant.id == entrant.id), None)
        return render(
            request,
            "entry.html",
            **_shared(sight),
            one=entrant,
            row=row,
            s=visibility.submission_of(session, entrant),
            metrics=[metric for metric in declared if metric.name in entrant.card.metrics],
            breakdowns=board_charts.breakdowns([entrant], deciding_metric(sight.challenge)),
            others=[other for other in visibility.entries_of(session, sight) if other.id != entrant.id],
            mine=sight.team is not None and sight.team.name == entrant.team,
        )


@router.get("/c/{slug}/compare")
def compare(
    request: Request, slug: str, database: DatabaseOf, viewer: ViewerOf, first: int | None = None,
    second: int | None = None, part: PartWanted = None, metric: MetricWanted = None,
) -> HTMLResponse:  # fmt: skip
    """Any two entries compared, paired over units."""
    with database.read() as session:
        sight = sight_of(session, viewer, slug, part)
        entries = visibility.entries_of(session, sight)
        outcome = None
        # A better run of a team replaces the one that was on the board when the form was opened.
        gone = {str(one) for one in (first, second) if one is not None} - {one.id for one in entries}
        if first is not None and second is not None and not gone:
            pair = [visibility.entry_of(session, sight, str(one)) for one in (first, second)]
            deciding = deciding_metric(sight.challenge).name
            wanted = deciding if sight.by_ladder or metric is None else metric
            outcome = _asked(lambda: duel(sight.challenge.versioned_benchmark, *pair, metric=wanted))
        return render(
            request,
            "compare.html",
            404 if gone else 200,
            **_shared(sight),
            entries=entries,
            duel=outcome,
            gone=bool(gone),
            chosen=(first, second),
            metrics={one.name: one for one in _metrics(sight)},
            picture=board_charts.differences(outcome) if outcome is not None else "",
            breakdowns=board_charts.breakdowns([outcome.first, outcome.second], outcome.metric)
            if outcome is not None
            else [],
        )


@router.get("/c/{slug}/submissions/{number}/receipt.json")
def receipt(slug: str, number: RowId, database: DatabaseOf, viewer: ViewerOf, part: PartWanted = None) -> Response:
    """The receipt of a score, for its team and for organizers."""
    key, secret = receipt_key(database), salt_secret(database)
    with database.read() as session:
        challenge = rights.open_challenge(session, viewer.user, slug)
        submission = rights.open_submission(session, viewer.user, challenge, number)
        manages = rights.manages(session, viewer.user, challenge)
        sight = visibility.look(challenge, part or PUBLIC, manages=manages, team=submission.team)
        card = cards_of(session, submission, parts_visible(challenge, manages)).get(sight.part)
        if card is None or sight.by_ladder or "scored" not in card.provenance:
            raise NotThereError
        program = program_of(session, submission)
        made = receipts.make_receipt(
            card,
            challenge=challenge.slug,
            submission=str(submission.id),
            team=submission.team.name,
            accepted=submission.accepted_at,
            run_name=submission.filename if program is None else "predictions.csv",
            key=key,
            salt=receipts.challenge_salt(secret, challenge.id),
            hidden=not manages and challenge.revealed_at is None,
            run_hidden=not visible_output(program, task_of(session, challenge.id), manages=manages).run,
        )
    name = f"receipt-{slug}-{number}-{sight.part}.json"
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(json.dumps(made, indent=2) + "\n", media_type="application/json", headers=headers)


@router.get("/receipt-key.txt")
def receipt_key_page(database: DatabaseOf) -> PlainTextResponse:
    """The key that this server signs receipts with, for `fieldmark score --verify --signer`."""
    key = receipt_key(database)
    return PlainTextResponse(receipts.public_fingerprint(key) + "\n" if key else "receipts are not signed\n")


@router.get("/c/{slug}/organize/truth/{table}")
def truth_table(slug: str, table: str, database: DatabaseOf, storage: StorageOf, user: UserOf) -> Response:
    """One table of the truth as the server keeps it, for organizers who want to publish it in the end."""
    with database.read() as session:
        path = rights.open_challenge(session, user, slug, manage=True).truth_path
    if table not in TRUTH_TABLES or not storage.exists(f"{path}/{table}"):
        raise NotThereError
    headers = {"content-disposition": f'attachment; filename="{table}"'}
    kind = "text/csv" if table.endswith(".csv") else "application/vnd.apache.parquet"
    return StreamingResponse(storage.chunks(f"{path}/{table}"), media_type=kind, headers=headers)


@router.get("/organize/plan")
def plan_ahead(
    request: Request, user: UserOf, units: Count = 500, score: Share = 0.5, entries: Count = 10,
    correlation: Correlation = planner.USUAL_CORRELATION, difference: Share = 0.02, public_share: Share = 0.3,
) -> HTMLResponse:  # fmt: skip
    """What a test set could show, before there is a challenge."""
    if user.role not in ("organizer", "admin"):
        raise NotThereError
    public = round(units * public_share)
    wishes = {"units": units, "public_share": public_share}
    wishes |= {"score": score, "entries": entries, "correlation": correlation, "difference": difference}
    shared = {"c": None, "metric": board_metric("folder", "top_1"), "wishes": wishes}
    parts = {"all": units, PUBLIC: public, PRIVATE: units - public}
    return _planned(request, shared, parts, [])


@router.get("/c/{slug}/organize/plan")
def plan(
    request: Request, slug: str, database: DatabaseOf, user: UserOf, score: Share = 0.5, entries: Count = 10,
    correlation: Correlation = planner.USUAL_CORRELATION, difference: Difference = 0.02, basis: Basis = None,
) -> HTMLResponse:  # fmt: skip
    """What the test set of a challenge can show, from its baselines where it has good ones."""
    with database.read() as session:
        challenge = rights.open_challenge(session, user, slug, manage=True)
        sight = Sight(challenge, PUBLIC, manages=True, team=rights.team_of(session, user, challenge))
        wishes: dict[str, Any] = {"score": score, "entries": entries, "correlation": correlation}
        wishes |= {"difference": difference, "basis": basis}
        shared = {**_shared(sight), "metric": deciding_metric(challenge), "wishes": wishes}
        private = challenge.units - challenge.units_public
        parts = {"all": challenge.units, PUBLIC: challenge.units_public, PRIVATE: private}
        return _planned(request, shared, parts, visibility.baseline_cards(session, challenge))


def _planned(
    request: Request, shared: dict[str, Any], parts: dict[str, int], baselines: list[Scorecard]
) -> HTMLResponse:
    """The page of the planner; what does not go together is said on it."""
    wishes, metric = shared["wishes"], shared["metric"]
    made, error = None, ""
    basis = wishes.get("basis") or ("measured" if baselines and planner.tells(baselines[0], metric) else "assumed")
    measured = basis == "measured" and bool(baselines)
    try:
        if measured:
            spread = planner.measured_spread(baselines[0], metric, baselines[1] if len(baselines) > 1 else None)
        else:
            spread = planner.assumed_spread(wishes["score"], correlation=wishes["correlation"])
        wanted = {"entries": wishes["entries"], "difference": wishes["difference"]}
        made = board_charts.planned(spread, parts, metric, **wanted)
    except MisuseError as refused:
        error = str(refused)
    shared = {**shared, "made": made, "error": error, "measured": measured, "baselines": len(baselines)}
    return render(request, "plan.html", 400 if error else 200, **shared)


def receipt_key(database: Database) -> bytes | None:
    """The key of this server, made once; None where the package for signatures is missing."""
    return database.setting(RECEIPT_KEY, receipts.new_key) if receipts.can_sign() else None


def _shared(sight: Sight) -> dict[str, Any]:
    """What every page of a challenge gets."""
    parts = parts_visible(sight.challenge, sight.manages)
    there = parts if sight.challenge.units_public < sight.challenge.units else (PUBLIC,)
    return {"c": sight.challenge, "manages": sight.manages, "team": sight.team, "part": sight.part, "parts": there}


def _metrics(sight: Sight) -> tuple[Metric, ...]:
    return BENCHMARKS[sight.challenge.versioned_benchmark].task.metrics


def _board(session: Session, sight: Sight, metric: str | None) -> Board:
    return _asked(lambda: visibility.board_of(session, sight, metric))


def _asked(make: Callable[[], T]) -> T:
    """What was asked for by name may not exist, which is nothing there rather than a fault."""
    try:
        return make()
    except MisuseError as error:
        raise NotThereError from error
