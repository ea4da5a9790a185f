"""What anybody sees of what a program said and wrote: one rule, which every way out asks.

On the sample a program has seen nothing that is secret, and its team sees all that it said. On hidden items whatever it
says or writes may be a copy of them: its team is told how it ended and, in the end, what its run scored. Of the run
neither content nor size nor digest is told, since a program chooses them. Those who run the challenge have the hidden
items anyway, and see everything. Where they let teams see the last lines (`show_output`), it is their decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark_challenge.records.code_schema import CodeTask, Program
from fieldmark_challenge.records.schema import Submission

# How much teams see of what a program says on hidden items, where organizers let them see anything.
SHOWN_CHARACTERS = 4000
AT_ONCE = 500  # numbers in one query


@dataclass(frozen=True)
class VisibleOutput:
    """What somebody sees of a program.

    Args:
        said: The last that it said; None where that is not shown.
        problems: What is wrong with its answers.
        detail: What is noted for organizers.
        run: Whether they may have the run that it wrote, and know its size and digest.
    """

    said: str | None = None
    problems: list[dict[str, Any]] = field(default_factory=list)
    detail: str = ""
    run: bool = False


# What is submitted as a run was written by its team, which has it already.
OWN_RUN = VisibleOutput(run=True)


def visible_output(program: Program | None, task: CodeTask | None, *, manages: bool) -> VisibleOutput:
    """What somebody sees of a program.

    Args:
        program: The program; None where a run was submitted.
        task: What its challenge asks of programs.
        manages: Whether they run the challenge.
    """
    if program is None:
        return OWN_RUN
    if manages:
        return VisibleOutput(program.log, list(program.problems or []), program.detail, run=True)
    if program.submission_id is None and program.ran_at is None:
        return VisibleOutput(program.log, list(program.problems or []))
    shown = task is not None and task.show_output
    return VisibleOutput(program.log[-SHOWN_CHARACTERS:] if shown else None)


def programs_of(session: Session, submissions: Sequence[Submission]) -> dict[int, Program]:
    """The programs that wrote, or will write, the runs of submissions, by the numbers of these."""
    numbers, found = [submission.id for submission in submissions], dict[int, Program]()
    for start in range(0, len(numbers), AT_ONCE):
        query = select(Program).where(Program.submission_id.in_(numbers[start : start + AT_ONCE]))
        found |= {program.submission_id or 0: program for program in session.scalars(query)}
    return found


def program_of(session: Session, submission: Submission) -> Program | None:
    """The program of one submission; None where a run was submitted."""
    return programs_of(session, [submission]).get(submission.id)
