"""Boards and comparisons for programs: the numbers of the pages, with the same rights."""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.errors import MisuseError
from fieldmark.version import __version__
from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.boards import visibility
from fieldmark_challenge.boards.board_pages import BoardPage
from fieldmark_challenge.boards.leaderboard import duel
from fieldmark_challenge.boards.single_flight import Kept
from fieldmark_challenge.boards.visibility import Sight
from fieldmark_challenge.challenges.metrics import deciding_metric
from fieldmark_challenge.people import rights
from fieldmark_challenge.records.schema import User
from fieldmark_challenge.web.callers import Reader
from fieldmark_challenge.web.dependencies import DatabaseOf, RowId
from fieldmark_challenge.web.replies import Refused

router = APIRouter(tags=["boards"], responses={404: {"model": Refused}})
PartWanted = Annotated[str | None, Query(max_length=16, description="public or private; the one that counts now")]
MetricWanted = Annotated[str | None, Query(max_length=64, description="the primary metric if not given")]
PageWanted = Annotated[int | None, Query(ge=1, le=1_000_000, description="a hundred entries; all of them if not given")]
ANSWERS: Kept[bytes] = Kept(64)


class ScoreOut(BaseModel):
    """A score with its 95 % interval; null where it is undefined or there is none."""

    value: float | None
    low: float | None
    high: float | None


class DifferenceOut(ScoreOut):
    """The difference of two entries, paired over units."""

    p_value: float
    p_adjusted: float = Field(description="after Holm's adjustment over all pairs that were compared")
    probability_first_is_better: float


class RowOut(ScoreOut):
    """One entry on a board."""

    id: str
    team: str
    title: str
    accepted: dt.datetime
    external_data: bool
    external_declared: str = Field(description="which external data the team says it used")
    external_found: str = Field(description="which the provenance of its run, or its program, shows")
    unranked: str = Field("", description="why it has no place; empty if it has one")
    place: int | None
    rank_low: int | None = Field(description="the best rank it may really have, for all entries at once")
    rank_high: int | None
    not_separable_from_best: bool
    behind_best: DifferenceOut | None


class SetApartOut(BaseModel):
    """A disqualified team, or a disqualified run of one that is not."""

    team: str
    title: str = Field(description="of the run; empty where the whole team is meant")
    standing: str
    reason: str
    since: dt.datetime
    after_reveal: bool = Field(description="whether the results were out by then")


class BoardOut(BaseModel):
    """Entries by one metric, best first."""

    benchmark: str
    part: str
    metric: str
    higher_is_better: bool
    units: int = Field(description="independent units that the scores rest on")
    entries: list[RowOut]
    set_apart: list[SetApartOut] = Field(description="who was disqualified, and why")
    total: int = Field(description="how many entries there are on all pages")


class EntryOut(BaseModel):
    """One entry with its scores, as a whole and by month, site or whatever the benchmark names."""

    id: str
    team: str
    title: str
    accepted: dt.datetime
    external_data: bool
    external_declared: str = Field(description="which external data the team says it used")
    external_found: str = Field(description="which the provenance of its run, or its program, shows")
    part: str
    items: int
    units: int
    metrics: dict[str, ScoreOut]
    groups: dict[str, dict[str, dict[str, ScoreOut]]]


class SideOut(ScoreOut):
    """One of two entries that are compared."""

    id: str
    team: str
    title: str


class UnitsOut(BaseModel):
    """On how many units each of two entries is better."""

    first_better: int
    second_better: int
    equal: int


class DuelOut(BaseModel):
    """Two entries compared: the difference is first minus second."""

    metric: str
    first: SideOut
    second: SideOut
    difference: DifferenceOut | None
    separable: bool
    units: UnitsOut
    others: dict[str, DifferenceOut]
    reason: str = Field("", description="why they cannot be compared; empty if they can")


def _sight(session: Session, user: User, slug: str, part: str | None) -> Sight:
    challenge = rights.open_challenge(session, user, slug)
    manages = rights.manages(session, user, challenge)
    return visibility.look(challenge, part, manages=manages, team=rights.team_of(session, user, challenge))


@router.get("/challenges/{slug}/board", response_model=BoardOut, responses={304: {"description": "as it was"}})
def board(
    request: Request, slug: str, user: Reader, database: DatabaseOf, part: PartWanted = None,
    metric: MetricWanted = None, page: PageWanted = None,
) -> Response:  # fmt: skip
    """The leaderboard: scores with intervals, rank intervals, and which entries are not separable from the best."""
    with database.read() as session:
        sight = _sight(session, user, slug, part)
        state = visibility.state_of(session, sight)
        tag = f'W/"{hashlib.sha256(repr((__version__, state, metric, page)).encode()).hexdigest()[:32]}"'
        headers = {"etag": tag, "cache-control": "private, no-cache"} if state else {}
        if state and request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)

        def make() -> bytes:
            try:
                shown = visibility.board_of(session, sight, metric)
            except MisuseError as error:
                raise NotThereError from error
            rows = shown.rows if page is None else BoardPage.cut(shown, page, None).rows
            told = BoardOut.model_validate({**replace(shown, rows=rows).to_json(), "total": len(shown.rows)})
            return told.model_dump_json().encode()

        body = ANSWERS.get((state, metric, page), make) if state else make()
    return Response(body, media_type="application/json", headers=headers)


@router.get("/challenges/{slug}/entries/{entry}")
def entry(slug: str, entry: RowId, user: Reader, database: DatabaseOf, part: PartWanted = None) -> EntryOut:
    """One entry with its scores."""
    with database.read() as session:
        entrant = visibility.entry_of(session, _sight(session, user, slug, part), str(entry))
    about = {name: getattr(entrant, name) for name in ("id", "team", "title", "accepted", "external_data")}
    about |= {"external_declared": entrant.external.note, "external_found": entrant.external.found}
    card = entrant.card.to_json()
    return EntryOut.model_validate({**card, **about, "part": entrant.card.split})


@router.get("/challenges/{slug}/compare")
def compare(
    slug: str, first: int, second: int, user: Reader, database: DatabaseOf, part: PartWanted = None,
    metric: MetricWanted = None,
) -> DuelOut:  # fmt: skip
    """Two entries, paired over units."""
    with database.read() as session:
        sight = _sight(session, user, slug, part)
        pair = [visibility.entry_of(session, sight, str(one)) for one in (first, second)]
        try:
            deciding = deciding_metric(sight.challenge).name
            wanted = deciding if sight.by_ladder or metric is None else metric
            outcome = duel(sight.challenge.versioned_benchmark, *pair, metric=wanted)
        except MisuseError as error:
            raise NotThereError from error
    return DuelOut.model_validate(outcome.to_json())
