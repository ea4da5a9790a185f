"""Who takes part in a challenge, for programs of those who run it."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

from fastapi import APIRouter, Form
from pydantic import BaseModel, Field

from fieldmark.challenge.people import admissions, rates, rosters
from fieldmark.challenge.people.api import ApiOrganizer, Managed
from fieldmark.challenge.records.participation import Admission
from fieldmark.challenge.records.schema import Team
from fieldmark.challenge.running import announcing, stages, standings
from fieldmark.challenge.site.dependencies import DatabaseOf, RowId
from fieldmark.challenge.site.replies import Done, Refused
from fieldmark.challenge.submitting.replies import AnnouncementOut

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


class AdmissionOut(BaseModel):
    """Somebody who asked to take part, was let in or kept out."""

    name: str
    state: str = Field(description="asked, admitted or refused")
    note: str
    changed_at: dt.datetime

    @classmethod
    def of(cls, row: Admission) -> AdmissionOut:
        return cls(name=row.user.name, state=row.state, note=row.note, changed_at=row.changed_at)


class EntryCodeOut(BaseModel):
    """A code that lets people in."""

    id: int
    shown: str = Field(description="how it begins")
    note: str
    uses: int = Field(description="how many people it is for")
    used: int
    created_at: dt.datetime
    expires_at: dt.datetime
    revoked_at: dt.datetime | None


class NewEntryCodeOut(BaseModel):
    """A new code, told this once."""

    code: str


class AccountOut(BaseModel):
    """An account of a list."""

    name: str
    email: str
    reset: str | None = Field(description="sets the password once, at /reset/...; null for an account that was there")


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


@router.post("/challenges/{slug}/announcements", status_code=201)
def announce(
    challenge: Managed, user: ApiOrganizer, database: DatabaseOf,
    title: Annotated[str, Form(max_length=announcing.LONGEST_TITLE)],
    text: Annotated[str, Form(max_length=announcing.LONGEST_TEXT)] = "",
) -> AnnouncementOut:  # fmt: skip
    """Announces something on the page of the challenge, in its feed, and by mail where there is."""
    row = announcing.announce(database, user, challenge, title, text)
    return AnnouncementOut.model_validate(row, from_attributes=True)


@router.delete("/challenges/{slug}/announcements/{announcement_id}")
def take_back(challenge: Managed, announcement_id: RowId, user: ApiOrganizer, database: DatabaseOf) -> Done:
    """Takes an announcement back."""
    announcing.remove(database, user, challenge, announcement_id)
    return Done(done="taken back")


@router.post("/challenges/{slug}/advance")
def advance(challenge: Managed, user: ApiOrganizer, database: DatabaseOf) -> Done:
    """Carries over to this stage the teams that came through the one before; `count` says how many came."""
    return Done(done="advanced", count=len(stages.advance(database, user, challenge)))


@router.get("/challenges/{slug}/admissions")
def who_may(challenge: Managed, database: DatabaseOf) -> list[AdmissionOut]:
    """Who asked to take part, was let in or kept out."""
    with database.read() as session:
        return [AdmissionOut.of(row) for row in admissions.admissions_of(session, challenge)]


@router.post("/challenges/{slug}/admissions")
def decide(
    challenge: Managed, user: ApiOrganizer, database: DatabaseOf, who: Annotated[str, Form()],
    admit: Annotated[bool, Form()] = True,
) -> Done:  # fmt: skip
    """Lets somebody in by name or address, or keeps them out."""
    admissions.decide(database, user, challenge, who, admit=admit)
    return Done(done="admitted" if admit else "refused")


@router.get("/challenges/{slug}/codes")
def codes(challenge: Managed, database: DatabaseOf) -> list[EntryCodeOut]:
    """The codes that let people in, newest first."""
    with database.read() as session:
        rows = admissions.codes_of(session, challenge)
        return [EntryCodeOut.model_validate(row, from_attributes=True) for row in rows]


@router.post("/challenges/{slug}/codes", status_code=201)
def make_code(
    challenge: Managed, user: ApiOrganizer, database: DatabaseOf,
    uses: Annotated[int, Form(ge=1, le=admissions.MOST_USES)] = 1,
    days: Annotated[int, Form(ge=1, le=admissions.MOST_DAYS)] = 14,
    note: Annotated[str, Form(max_length=200)] = "",
) -> NewEntryCodeOut:  # fmt: skip
    """Makes a code for so many people; it is told this once."""
    return NewEntryCodeOut(code=admissions.make_code(database, user, challenge, uses=uses, days=days, note=note))


@router.delete("/challenges/{slug}/codes/{code_id}")
def revoke_code(challenge: Managed, code_id: RowId, user: ApiOrganizer, database: DatabaseOf) -> Done:
    """Ends a code; who came in by it stays."""
    admissions.revoke_code(database, user, challenge, code_id)
    return Done(done="revoked")


@router.post("/challenges/{slug}/accounts", status_code=201)
def make_accounts(
    challenge: Managed, user: ApiOrganizer, database: DatabaseOf,
    table: Annotated[str, Form(description="CSV with the columns name and email")],
) -> list[AccountOut]:  # fmt: skip
    """Makes the accounts of a list and lets them in; who has an account already is let in and gets no link."""
    rates.count(database, rates.ROSTER, str(user.id))
    made = rosters.make_accounts(database, user, challenge, table)
    return [AccountOut(name=one.name, email=one.email, reset=one.secret) for one in made]
