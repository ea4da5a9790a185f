"""Who takes part in a challenge, for programs of those who run it."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from fastapi import APIRouter, Form
from pydantic import BaseModel, Field

from fieldmark.challenge.people.api import ApiOrganizer, Managed
from fieldmark.challenge.records.schema import Team
from fieldmark.challenge.running import standings
from fieldmark.challenge.site.dependencies import DatabaseOf, RowId
from fieldmark.challenge.site.replies import Done, Refused

router = APIRouter(tags=["organizing"], responses={404: {"model": Refused}})
StandingWanted = Annotated[Literal["disqualified", "hidden", ""], Form(description="empty to put it back")]
Reason = Annotated[str, Form(max_length=standings.LONGEST, description="those concerned read it")]


class MemberOut(BaseModel):
    """Somebody in a team."""

    name: str
    captain: bool
    left_at: dt.datetime | None


class TeamOut(BaseModel):
    """A team as those who run the challenge see it."""

    id: int
    name: str
    members: list[MemberOut]
    runs: int = Field(description="how many were accepted")
    standing: str = Field(description="disqualified, hidden, withdrawn or merged; empty if it is ranked")
    standing_reason: str
    standing_at: dt.datetime | None

    @classmethod
    def of(cls, team: Team, runs: int) -> TeamOut:
        members = [
            MemberOut(name=one.user.name, captain=one.user_id == team.captain_id, left_at=one.left_at)
            for one in team.members
        ]
        about = {name: getattr(team, name) for name in ("id", "name", "standing", "standing_reason", "standing_at")}
        return cls(members=members, runs=runs, **about)


@router.get("/challenges/{slug}/teams")
def teams(challenge: Managed, database: DatabaseOf) -> list[TeamOut]:
    """The teams: members, how many runs, and whether they are ranked."""
    with database.read() as session:
        return [TeamOut.of(team, runs) for team, runs in standings.teams_of(session, challenge)]


@router.post("/challenges/{slug}/teams/{team_id}/standing")
def team_standing(
    challenge: Managed, team_id: RowId, user: ApiOrganizer, database: DatabaseOf,
    standing: StandingWanted = "disqualified", reason: Reason = "",
) -> Done:  # fmt: skip
    """Disqualifies or hides a team with all its runs, or puts it back."""
    standings.set_team_standing(database, user, challenge, team_id, standing, reason)
    return Done(done=standing or "put back")


@router.post("/challenges/{slug}/submissions/{submission_id}/standing")
def run_standing(
    challenge: Managed, submission_id: RowId, user: ApiOrganizer, database: DatabaseOf,
    standing: StandingWanted = "disqualified", reason: Reason = "",
) -> Done:  # fmt: skip
    """Disqualifies or hides a single run, or puts it back."""
    standings.set_run_standing(database, user, challenge, submission_id, standing, reason)
    return Done(done=standing or "put back")
