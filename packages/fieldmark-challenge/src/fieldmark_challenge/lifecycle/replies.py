"""What the API answers with to those who run a challenge."""

from __future__ import annotations

import datetime as dt
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from fieldmark_challenge.lifecycle import challenge_settings
from fieldmark_challenge.records.participation import Admission
from fieldmark_challenge.records.schema import Challenge, Submission, Team
from fieldmark_challenge.submissions.replies import ChallengeOut, FileOut, PhaseOut, stage_told


class OrganizerOut(BaseModel):
    """Somebody who runs a challenge."""

    id: int
    name: str
    owner: bool


class BaselineOut(BaseModel):
    """A run of the organizers."""

    submission: int
    name: str
    state: str


class ManagedOut(ChallengeOut):
    """A challenge as those who run it see it."""

    published_at: dt.datetime | None
    description: str
    rules: str
    rules_version: int
    units: int
    units_public: int
    max_team_size: int
    needs_run_without_external: bool
    ladder: bool
    access: str = Field(description="who may take part: open, approval, invitation or private")
    merging: bool = Field(description="whether teams may merge")
    truth_sha256: str
    revision: int = Field(description="counts up when everything is scored again")
    organizers: list[OrganizerOut]
    submissions: dict[str, int] = Field(description="how many there are in each state")
    baselines: list[BaselineOut]
    files: list[FileOut]

    @classmethod
    def seen(cls, session: Session, challenge: Challenge) -> ManagedOut:
        """All that organizers decide about, and where it stands."""
        stored = {name: getattr(challenge, name) for name in cls.model_fields if hasattr(challenge, name)}
        stored |= {
            "phases": [PhaseOut.of(phase) for phase in challenge.phases],
            "files": [FileOut.of(file) for file in challenge.files],
            "organizers": organizers_out(session, challenge),
            "submissions": challenge_settings.count_states(session, challenge),
            "baselines": [
                BaselineOut(submission=run.id, name=run.title, state=run.state)
                for run in challenge_settings.baselines_of(session, challenge)
            ],
        }
        return cls(**stored, **stage_told(challenge))


def organizers_out(session: Session, challenge: Challenge) -> list[OrganizerOut]:
    """Who runs a challenge, its owner first."""
    return [
        OrganizerOut(id=user.id, name=user.name, owner=user.id == challenge.owner_id)
        for user in challenge_settings.organizers_of(session, challenge)
    ]


class QueuedOut(BaseModel):
    """A run that waits, is being scored, or has failed."""

    id: int
    challenge: str
    team: str
    title: str
    state: str
    position: int | None = Field(description="the place in the queue of the whole platform, from 1, while it waits")
    attempts: int
    worker: str
    accepted_at: dt.datetime
    started_at: dt.datetime | None
    reason: str
    detail: str = Field(description="what the platform noted, for organizers")

    @classmethod
    def of(cls, run: Submission, position: int | None) -> QueuedOut:
        names = ("id", "state", "attempts", "worker", "accepted_at", "started_at", "reason", "detail")
        about = {name: getattr(run, name) for name in names}
        title = run.title or run.filename
        return cls(challenge=run.challenge.slug, team=run.team.name, title=title, position=position, **about)


class EventOut(BaseModel):
    """A line of the audit log."""

    at: dt.datetime
    actor: str
    action: str
    subject: str
    details: dict[str, Any]


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
