"""What a challenge lacks that participants look for: told to its organizers before they show it."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.orm import Session

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.web.refusals import ConflictError
from fieldmark_challenge.challenges.offered_files import ITEMS_FILE, LABELS_FILE, sample_file
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, utc_now


def missing(session: Session, challenge: Challenge) -> list[str]:
    """A sentence about each thing that it lacks; nothing where it is ready."""
    told = []
    if challenge.title == challenge.slug:
        told.append("It has no title of its own, only its short name.")
    if not challenge.description:
        told.append("It has no description: what is to be recognized, and where do the data come from?")
    if not offers_data(challenge):
        told.append("It offers no data: add the files that participants need, or link to them in the description.")
    if not any(phase.ends_at > utc_now() for phase in challenge.phases):
        told.append("No phase is open or ahead: no run can be submitted.")
    return told


def offers_data(challenge: Challenge) -> bool:
    """Whether participants get more than the lists that the platform writes."""
    return _has_data(_further_files(challenge), challenge.description)


def _further_files(challenge: Challenge) -> set[str]:
    written = {ITEMS_FILE, LABELS_FILE, sample_file(BENCHMARKS[challenge.versioned_benchmark].task)}
    return {file.name for file in challenge.files} - written


def refuse_without_data(slug: str, offered: Collection[object], description: str) -> None:
    """Refuses to publish a challenge that has nothing to learn from or to answer, unless its organizers mean it.

    Args:
        slug: Its short name.
        offered: What participants can download, apart from the lists that the platform writes.
        description: Its description, which may link to data elsewhere.

    Raises:
        ConflictError: When there are no data; nothing has been published then.
    """
    if not _has_data(offered, description):
        raise ConflictError(
            f"{slug} is not published: it offers no data. Add the files that participants need, link to them in the "
            "description, or confirm that it needs none (--without-data, or without_data=yes)."
        )


def _has_data(offered: Collection[object], description: str) -> bool:
    return bool(offered) or "://" in description


def refuse_unready(database: Database, challenge: Challenge) -> None:
    """The same for a challenge that was read before."""
    with database.read() as session:
        mine = session.get_one(Challenge, challenge.id)
        refuse_without_data(mine.slug, _further_files(mine), mine.description)


def missing_of(database: Database, challenge: Challenge) -> list[str]:
    """The same for a challenge that was read before."""
    with database.read() as session:
        return missing(session, session.get_one(Challenge, challenge.id))
