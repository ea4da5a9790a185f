"""How programs are taken in where a phase asks for them: a hook, which those who run them fill (`programs.intake`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError
from fieldmark_challenge.records.schema import Challenge, Submission
from fieldmark_challenge.submissions.uploads import Upload


@dataclass(frozen=True)
class ProgramIntake:
    """What taking in a program needs.

    Args:
        why_not: Why no program can be run now; empty where one can.
        check: Refuses an archive that holds no program; says which files of weights lie in it.
        new_path: Where the next archive of a challenge is stored.
        add: Queues the program of a submission, which has no run until the program has written it.
    """

    why_not: Callable[[Session], str]
    check: Callable[[Challenge, Upload], str]
    new_path: Callable[[Challenge], str]
    add: Callable[[Session, Submission, Upload, str], object]


NOBODY = "This server runs no programs."
_intakes: list[ProgramIntake] = []


def register(intake: ProgramIntake) -> None:
    """Has programs taken in this way."""
    _intakes[:] = [intake]


def why_not(session: Session) -> str:
    """Why no program can be taken in now; empty where one can."""
    return _intakes[0].why_not(session) if _intakes else NOBODY


def open_intake(session: Session) -> ProgramIntake:
    """The way in for programs.

    Raises:
        ConflictError: When none can be run now; says why.
    """
    if reason := why_not(session):
        raise ConflictError(reason)
    return _intakes[0]
