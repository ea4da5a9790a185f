"""What a challenge lacks that participants look for: told to its organizers before they show it."""

from __future__ import annotations

from sqlalchemy.orm import Session

from fieldmark.benchmarks import BENCHMARKS
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
    written = {ITEMS_FILE, LABELS_FILE, sample_file(BENCHMARKS[challenge.versioned_benchmark].task)}
    offered = {file.name for file in challenge.files} - written
    if not offered and "://" not in challenge.description:
        told.append("It offers no data: add the files that participants need, or link to them in the description.")
    if not any(phase.ends_at > utc_now() for phase in challenge.phases):
        told.append("No phase is open or ahead: no run can be submitted.")
    return told


def missing_of(database: Database, challenge: Challenge) -> list[str]:
    """The same for a challenge that was read before."""
    with database.read() as session:
        return missing(session, session.get_one(Challenge, challenge.id))
