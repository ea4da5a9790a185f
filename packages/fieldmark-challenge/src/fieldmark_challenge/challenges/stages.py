"""Challenges in stages: a later one with a test set, dates and limits of its own, for teams that came through.

A later stage is a challenge like any other (truth, phases, limits, files, boards, reveal), tied to the one before it.
Its teams are those of the stage before that its rule lets through; nobody else forms or joins one. They are carried
over when the organizers say so (`lifecycle.advancement`), which may be said again: teams that qualify by then are
added, none is taken away.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError, RefusalError
from fieldmark_challenge.people.rights import is_kept_from, manages, open_challenge
from fieldmark_challenge.records.participation import LaterStage, StageEntry
from fieldmark_challenge.records.schema import Challenge, User

ENTRIES: dict[StageEntry, str] = {
    "all": "all teams of the stage before",
    "final": "teams with a run in the final ranking of the stage before",
    "top": "the first teams of the final ranking of the stage before",
}


@dataclass(frozen=True)
class StageLink:
    """One of the stages that belong together.

    Args:
        number: Which, from 1.
        slug, title: The challenge.
        here: Whether it is the one that is looked at.
    """

    number: int
    slug: str
    title: str
    here: bool


def checked_entry(entry: str, top: int | None) -> tuple[StageEntry, int | None]:
    """Who goes on, as it is stored.

    Raises:
        RefusalError: When there is no such rule, or the number of teams is missing.
    """
    found = next((one for one in ENTRIES if one == entry), None)
    if found is None:
        raise RefusalError(f"Who goes on: found {entry[:40]!r}, expected one of {', '.join(ENTRIES)}.")
    if found == "top" and (top is None or not 1 <= top <= 10_000):
        raise RefusalError("Say how many teams go on: a whole number from 1 to 10000.")
    return found, top if found == "top" else None


def stage_before(session: Session, user: User, slug: str, benchmark: str) -> Challenge:
    """The challenge that a new one is the next stage of, for somebody who runs it.

    Raises:
        NotThereError: When they run none of that name.
        RefusalError: When it is about another benchmark.
        ConflictError: When it has a next stage already.
    """
    first = open_challenge(session, user, slug, manage=True)
    if first.benchmark != benchmark:
        raise RefusalError(f"{slug} is a challenge of {first.benchmark}; its next stage is one as well.")
    if session.scalars(select(LaterStage.challenge_id).where(LaterStage.first_id == first.id)).first() is not None:
        raise ConflictError(f"{slug} has a next stage already.")
    return first


def stages_around(session: Session, user: User | None, challenge: Challenge) -> list[StageLink]:
    """The stages that a challenge is one of, as far as somebody may see them; empty where it is the only one."""
    line = [challenge]
    while (before := session.get(LaterStage, line[0].id)) is not None:
        line.insert(0, session.get_one(Challenge, before.first_id))
    after = select(Challenge).join(LaterStage, LaterStage.challenge_id == Challenge.id)
    while (following := session.scalars(after.where(LaterStage.first_id == line[-1].id)).first()) is not None:
        line.append(following)
    links = [
        StageLink(number, one.slug, one.title, one.id == challenge.id)
        for number, one in enumerate(line, 1)
        if one.id == challenge.id or _may_see(session, user, one)
    ]
    return links if len(links) > 1 else []


def in_words(stage: LaterStage) -> str:
    """Who goes on, as pages say it."""
    return f"the first {stage.top} of the final ranking" if stage.entry == "top" else ENTRIES[stage.entry]


def _may_see(session: Session, user: User | None, challenge: Challenge) -> bool:
    if challenge.published_at is None:
        return manages(session, user, challenge)
    return not is_kept_from(session, user, challenge)
