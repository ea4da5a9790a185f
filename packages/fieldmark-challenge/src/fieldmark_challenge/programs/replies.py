"""What the API answers with about programs; OpenAPI describes it from here."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict

from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from fieldmark_challenge.challenges.code_tasks import asks_for_code, code_phases, task_of
from fieldmark_challenge.challenges.phases import phase_at
from fieldmark_challenge.programs.hosts import hosts, why_not
from fieldmark_challenge.programs.tasks import CodeRules, rules_of
from fieldmark_challenge.records.schema import Challenge, utc_now


class RulesOut(BaseModel):
    """What programs may use."""

    seconds: int
    memory_mb: int
    processes: int
    disk_mb: int
    output_mb: int
    archive_mb: int
    debug_seconds: int
    debug_hourly: int
    show_output: bool = Field(description="whether teams see the last lines a program says on the hidden inputs")


class AskedOut(BaseModel):
    """What participants are asked for now."""

    program: bool = Field(description="whether the open phase asks for a program in place of a run")
    items: int = Field(description="how many hidden items programs answer; 0 where the challenge asks for none")
    sample_items: int = Field(description="how many public items debug runs are made on")
    rules: RulesOut | None
    why_not: str = Field(description="why no program can be run now; empty where one can")

    @classmethod
    def seen(cls, session: Session, challenge: Challenge) -> AskedOut:
        task = task_of(session, challenge.id)
        phase = phase_at(session.get_one(Challenge, challenge.id).phases, utc_now())
        return cls(
            program=asks_for_code(session, phase) is not None,
            items=task.items if task else 0,
            sample_items=len(task.sample_items) if task else 0,
            rules=RulesOut(**asdict(rules_of(task))) if task else None,
            why_not=why_not(session) if task else "",
        )


class HostOut(BaseModel):
    """A machine that runs programs."""

    name: str
    runner: str
    failure: str = Field(description="what its self-test found; empty where its walls hold")
    tried_at: dt.datetime


class CodeOut(BaseModel):
    """What a challenge asks of programs, as those who run it see it."""

    items: int = Field(description="how many hidden items programs answer; 0 where the challenge asks for none")
    sample_items: list[str]
    phases: list[str] = Field(description="the phases that require programs")
    rules: RulesOut
    hosts: list[HostOut]
    why_not: str = Field(description="why no program can be run; empty where one can")

    @classmethod
    def seen(cls, session: Session, challenge: Challenge) -> CodeOut:
        task = task_of(session, challenge.id)
        asking = code_phases(session, challenge)
        named = [phase.name for phase in session.get_one(Challenge, challenge.id).phases if phase.id in asking]
        rules = rules_of(task) if task else CodeRules()
        return cls(
            items=task.items if task else 0,
            sample_items=list(task.sample_items) if task else [],
            phases=named,
            rules=RulesOut(**asdict(rules)),
            hosts=[HostOut.model_validate(host, from_attributes=True) for host in hosts(session)],
            why_not=why_not(session),
        )
