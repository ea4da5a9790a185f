"""What the API answers with; OpenAPI describes it from here."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, Field
from sqlalchemy.orm import Session, object_session

from fieldmark.scoring import Score
from fieldmark_challenge.challenges.code_tasks import task_of
from fieldmark_challenge.challenges.visible_output import visible_output
from fieldmark_challenge.operations.lease_queue import PROGRAMS
from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.participation import LaterStage
from fieldmark_challenge.records.schema import Challenge, DataFile, Phase, Submission
from fieldmark_challenge.submissions.submissions import Quota


class PhaseOut(BaseModel):
    """A span of time in which runs are taken."""

    id: int
    name: str
    starts_at: dt.datetime
    ends_at: dt.datetime
    daily_limit: int
    total_limit: int

    @classmethod
    def of(cls, phase: Phase) -> PhaseOut:
        return cls.model_validate(phase, from_attributes=True)


class ChallengeOut(BaseModel):
    """A challenge."""

    slug: str
    title: str
    summary: str
    benchmark: str
    benchmark_version: str
    metric: str = Field(description="the one that decides")
    simulated: bool
    items: int
    classes: int
    max_upload_mb: int
    max_final: int
    frozen_at: dt.datetime | None
    revealed_at: dt.datetime | None
    stage_of: str | None = Field(None, description="the challenge that this one is the next stage of")
    stage_entry: str | None = Field(None, description="who went on: all, final or top")
    stage_top: int | None = None
    phases: list[PhaseOut]

    @classmethod
    def of(cls, challenge: Challenge) -> ChallengeOut:
        told = cls.model_validate(challenge, from_attributes=True)
        return told.model_copy(update=stage_told(challenge))


def stage_told(challenge: Challenge) -> dict[str, Any]:
    """What is said about the stage before a challenge, where there is one."""
    session = object_session(challenge)
    stage = session.get(LaterStage, challenge.id) if session is not None else None
    return {} if stage is None else {"stage_of": stage.first.slug, "stage_entry": stage.entry, "stage_top": stage.top}


class AnnouncementOut(BaseModel):
    """What organizers tell everybody."""

    id: int
    title: str
    text: str = Field(description="Markdown")
    created_at: dt.datetime


class FileOut(BaseModel):
    """Something to download."""

    id: int
    name: str
    about: str
    size: int
    sha256: str

    @classmethod
    def of(cls, file: DataFile) -> FileOut:
        return cls.model_validate(file, from_attributes=True)


class QuotaOut(BaseModel):
    """What a team may still submit."""

    phase: str
    today_left: int
    total_left: int
    daily: int
    total: int
    resets_at: dt.datetime

    @classmethod
    def of(cls, phase: Phase, quota: Quota) -> QuotaOut:
        return cls(
            phase=phase.name,
            today_left=quota.today_left,
            total_left=quota.total_left,
            daily=quota.daily,
            total=quota.total,
            resets_at=quota.resets_at,
        )


class ProgramOut(BaseModel):
    """A program and where running it stands."""

    id: int
    debug: bool
    filename: str
    size: int
    sha256: str
    accepted_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    state: str
    reason: str
    problems: list[dict[str, Any]] = Field(description="what is wrong with its answers; of debug runs only")
    output: str | None = Field(description="the last that it said; null where that is not shown")
    position: int | None = Field(description="the place in the queue of programs, from 1, while it waits")

    @classmethod
    def of(cls, session: Session, program: Program, *, manages: bool) -> ProgramOut:
        names = ("id", "filename", "size", "sha256", "accepted_at", "started_at", "finished_at", "state", "reason")
        seen = visible_output(program, task_of(session, program.challenge_id), manages=manages)
        return cls(
            debug=program.submission_id is None,
            problems=seen.problems,
            output=seen.said,
            position=PROGRAMS.position(session, program),
            **{name: getattr(program, name) for name in names},
        )


class SubmissionOut(BaseModel):
    """A run and where it stands."""

    id: int
    team: str
    title: str
    filename: str
    size: int
    sha256: str
    external_data: bool
    external_note: str = Field(description="which external data were declared")
    external_found: str = Field(description="which the provenance of the run, or the program, shows")
    accepted_at: dt.datetime
    state: str
    reason: str
    problems: list[dict[str, Any]] = Field(description="what is wrong with the run, with line numbers")
    counted: bool = Field(description="whether it counts against the limits")
    selected: bool
    standing: str = Field(description="disqualified, hidden or withdrawn: the run or its team is out of the ranking")
    standing_reason: str
    position: int | None = Field(description="the place in the queue, from 1, while it waits")
    scores: dict[str, dict[str, Any]] = Field(description="by part (public; private once revealed) and metric")
    program: ProgramOut | None = Field(None, description="the program that writes the run, where one was submitted")

    @classmethod
    def of(
        cls,
        submission: Submission,
        scores: dict[str, dict[str, Score]],
        position: int | None,
        program: ProgramOut | None = None,
    ) -> SubmissionOut:
        file = (
            program or submission
        )  # what was submitted: of the run that a program wrote nothing is told but its scores
        return cls(
            id=submission.id,
            team=submission.team.name,
            title=submission.title,
            filename=file.filename,
            size=file.size,
            sha256=file.sha256,
            external_data=submission.external_data,
            external_note=submission.external_note,
            external_found=submission.external_found,
            accepted_at=submission.accepted_at,
            state=submission.state,
            reason=submission.reason,
            problems=list(submission.problems or []),
            counted=submission.counted,
            selected=submission.selected,
            standing=submission.standing or submission.team.standing,
            standing_reason=submission.standing_reason or submission.team.standing_reason,
            position=position,
            scores={part: {name: _plain(score) for name, score in by.items()} for part, by in scores.items()},
            program=program,
        )


def _plain(score: Score) -> dict[str, Any]:
    value = score.value if math.isfinite(score.value) else None
    return {**asdict(score), "value": value}
