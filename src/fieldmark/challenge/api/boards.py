"""Boards and comparisons for programs: the numbers of the pages, with the same rights."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from sqlalchemy.orm import Session

from fieldmark.challenge import boards, rights
from fieldmark.challenge.api.auth import Reader
from fieldmark.challenge.api.shapes import Refused
from fieldmark.challenge.board import duel
from fieldmark.challenge.boards import Sight
from fieldmark.challenge.models import User
from fieldmark.challenge.refusals import NotThereError
from fieldmark.challenge.web.context import DatabaseOf
from fieldmark.errors import MisuseError

router = APIRouter(tags=["boards"], responses={404: {"model": Refused}})
PartWanted = Annotated[str | None, Query(max_length=16, description="public or private; the one that counts now")]
MetricWanted = Annotated[str | None, Query(max_length=64, description="the primary metric if not given")]


def _sight(session: Session, user: User, slug: str, part: str | None) -> Sight:
    challenge = rights.open_challenge(session, user, slug)
    manages = rights.manages(session, user, challenge)
    return boards.look(challenge, part, manages=manages, team=rights.team_of(session, user, challenge))


@router.get("/challenges/{slug}/board")
def board(
    slug: str, user: Reader, database: DatabaseOf, part: PartWanted = None, metric: MetricWanted = None
) -> dict[str, Any]:
    """The board: scores with intervals, rank intervals, and who cannot be told apart from the best."""
    with database.read() as session:
        try:
            return boards.board_of(session, _sight(session, user, slug, part), metric).to_json()
        except MisuseError as error:
            raise NotThereError from error


@router.get("/challenges/{slug}/entries/{entry}")
def entry(slug: str, entry: int, user: Reader, database: DatabaseOf, part: PartWanted = None) -> dict[str, Any]:
    """One entry with its scorecard."""
    with database.read() as session:
        found = boards.entry_of(session, _sight(session, user, slug, part), str(entry))
    card = found.card.to_json()
    return {"id": found.id, "team": found.team, "title": found.title, "external_data": found.external_data, **card}


@router.get("/challenges/{slug}/compare")
def compare(
    slug: str, first: int, second: int, user: Reader, database: DatabaseOf, part: PartWanted = None,
    metric: MetricWanted = None,
) -> dict[str, Any]:  # fmt: skip
    """Two entries, paired over units."""
    with database.read() as session:
        sight = _sight(session, user, slug, part)
        pair = [boards.entry_of(session, sight, str(one)) for one in (first, second)]
        try:
            return duel(sight.challenge.benchmark, *pair, metric=None if sight.by_ladder else metric).to_json()
        except MisuseError as error:
            raise NotThereError from error
