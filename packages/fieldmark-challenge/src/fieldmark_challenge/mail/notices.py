"""Who is told what. Looks every half minute for what has happened, so that nothing else has to think of mail.

A notice is put into the outbox under a key that names its reason and its reader: looking twice, or from two servers at
once, makes one mail.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Select, and_, or_, select
from sqlalchemy.orm import Session, joinedload

from fieldmark_challenge.mail import outbox
from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.mail_schema import OutgoingMail
from fieldmark_challenge.records.participation import Admission, Announcement
from fieldmark_challenge.records.schema import Acceptance, Challenge, Membership, Phase, Submission, Team, User, utc_now

# What is older than this when it is first seen is no news. Keys are kept longer than runs and phases are looked at.
NEWS = dt.timedelta(days=3)
RUNS_FROM = dt.timedelta(days=10)
WARNING = dt.timedelta(hours=24)
OVERLAP = dt.timedelta(minutes=10)  # a transaction may take a while between its clock and its end
AT_ONCE = 500


def collect(database: Database, now: dt.datetime | None = None, *, looked: dt.datetime | None = None) -> int:
    """Puts a mail into the outbox for everything that has happened since mail was turned on.

    Args:
        database: The database.
        now: The present moment.
        looked: When this was last done, if known: runs that were done well before were seen then.

    Returns:
        How many mails.
    """
    now = now or utc_now()
    with database.read() as session:
        since = outbox.on_since(session)
    if since is None:
        return 0
    if since > now:  # the clock was put back: what happens now would lie before
        outbox.begin_anew(database, now)
        since = now
    with database.read() as session:
        runs_since = max(since, now - NEWS, (looked or since) - OVERLAP)
        wanted = [*_runs(session, runs_since, now), *_openings(session, since, now), *_endings(session, now)]
        wanted += _programs(session, runs_since, now)
        wanted += _announcements(session, max(since, now - NEWS))
        known: set[str | None] = set()
        for start in range(0, len(wanted), AT_ONCE):
            keys = [one["once"] for one in wanted[start : start + AT_ONCE]]
            known |= set(session.scalars(select(OutgoingMail.once).where(OutgoingMail.once.in_(keys))))
    new = [one for one in wanted if one["once"] not in known]
    if not new:
        return 0
    with database.write() as session:
        outbox.forget_old(session)
        return sum(outbox.put(session, **one) for one in new)


def participants(session: Session, challenge_id: int, *, before: dt.datetime | None = None) -> set[int]:
    """Those who accepted the rules of a challenge or are in one of its teams, with verified addresses."""
    accepted = select(Acceptance.user_id).where(Acceptance.challenge_id == challenge_id)
    joined = select(Membership.user_id).where(Membership.challenge_id == challenge_id, Membership.left_at.is_(None))
    refused = select(Admission.user_id).where(Admission.challenge_id == challenge_id, Admission.state == "refused")
    if before is not None:
        accepted, joined = accepted.where(Acceptance.accepted_at < before), joined.where(Membership.joined_at < before)
    return set(session.scalars(_reachable().where(User.id.in_(accepted.union(joined)), User.id.not_in(refused))))


def _reachable() -> Select[int]:
    return select(User.id).where(User.email_verified_at.is_not(None), User.disabled_at.is_(None))


def _about(challenge: Challenge) -> dict[str, Any]:
    return {"challenge": challenge.title, "slug": challenge.slug}


def _runs(session: Session, since: dt.datetime, now: dt.datetime) -> Iterable[dict[str, Any]]:
    """Runs that a worker is done with; of one that was refused at the door its sender knows already."""
    query = (
        select(Submission)
        .where(Submission.state.in_(("scored", "refused", "failed")), Submission.attempts > 0)
        .where(Submission.finished_at > since, Submission.accepted_at > now - RUNS_FROM)
        .options(joinedload(Submission.challenge), joinedload(Submission.team).joinedload(Team.members))
        .order_by(Submission.finished_at, Submission.id)
    )
    runs = session.scalars(query).unique().all()
    verified = set(session.scalars(_reachable())) if runs else set()
    for run in runs:
        readers = verified.intersection(_present(run.team) or [run.user_id])
        about = _about(run.challenge) | {"run": run.id, "title": run.title, "team": run.team.name, "state": run.state}
        about["counted"] = run.counted
        for user_id in sorted(readers):
            yield {"kind": "run", "data": about, "user_id": user_id, "once": f"run:{run.id}:{user_id}"}


def _programs(session: Session, since: dt.datetime, now: dt.datetime) -> Iterable[dict[str, Any]]:
    """Debug runs that have ended, for those who started them, and programs that ended without a run, for their teams.

    Of a program that ended well its team hears when the run is scored.
    """
    tried = and_(Program.submission_id.is_(None), Program.state.in_(("done", "refused", "failed")))
    query = (
        select(Program)
        .where(or_(tried, Program.state.in_(("refused", "failed"))))
        .where(Program.finished_at > since, Program.accepted_at > now - RUNS_FROM)
        .options(joinedload(Program.challenge), joinedload(Program.team).joinedload(Team.members))
        .order_by(Program.finished_at, Program.id)
    )
    programs = session.scalars(query).unique().all()
    verified = set(session.scalars(_reachable())) if programs else set()
    for program in programs:
        debug = program.submission_id is None
        readers = verified.intersection([program.user_id] if debug else _present(program.team) or [program.user_id])
        about = _about(program.challenge) | {"program": program.id, "run": program.submission_id}
        about |= {"file": program.filename, "team": program.team.name, "state": program.state}
        about["counted"] = program.ran_at is not None
        for user_id in sorted(readers):
            # One that failed and is run again may end in another way.
            once = f"program:{program.id}:{program.state}:{user_id}"
            yield {"kind": "program", "data": about, "user_id": user_id, "once": once}


def _present(team: Team) -> list[int]:
    return [member.user_id for member in team.members if member.left_at is None]


def _announcements(session: Session, since: dt.datetime) -> Iterable[dict[str, Any]]:
    """What organizers have announced, for those who take part."""
    query = select(Announcement, Challenge).join(Challenge, Challenge.id == Announcement.challenge_id)
    query = query.where(Announcement.created_at > since, Challenge.published_at.is_not(None))
    for announcement, challenge in session.execute(query.order_by(Announcement.id)):
        about = _about(challenge) | {"subject": announcement.title, "text": announcement.text}
        for user_id in sorted(participants(session, challenge.id)):
            once = f"announcement:{announcement.id}:{user_id}"
            yield {"kind": "announcement", "data": about, "user_id": user_id, "once": once}


def _openings(session: Session, since: dt.datetime, now: dt.datetime) -> Iterable[dict[str, Any]]:
    """Phases that have opened, for those who took part before."""
    query = select(Phase).join(Challenge).options(joinedload(Phase.challenge))
    open_now = query.where(Phase.starts_at > max(since, now - NEWS), Phase.starts_at <= now, Phase.ends_at > now)
    for phase in _visible(session, open_now):
        for user_id in participants(session, phase.challenge_id, before=phase.starts_at):
            yield _phase_mail("phase-opens", phase, phase.starts_at, user_id)


def _endings(session: Session, now: dt.datetime) -> Iterable[dict[str, Any]]:
    """Phases that end within a day, or in the last quarter of a short one."""
    query = select(Phase).join(Challenge).options(joinedload(Phase.challenge))
    ending = query.where(Phase.starts_at <= now, Phase.ends_at > now, Phase.ends_at < now + WARNING)
    for phase in _visible(session, ending):
        if phase.ends_at - now <= min(WARNING, (phase.ends_at - phase.starts_at) / 4):
            for user_id in participants(session, phase.challenge_id):
                yield _phase_mail("phase-ends", phase, phase.ends_at, user_id)


def _visible(session: Session, query: Any) -> list[Phase]:
    """Of challenges that people can see and that are not over."""
    return list(session.scalars(query.where(Challenge.published_at.is_not(None), Challenge.revealed_at.is_(None))))


def _phase_mail(kind: str, phase: Phase, moment: dt.datetime, user_id: int) -> dict[str, Any]:
    about = _about(phase.challenge) | {"phase": phase.name, "ends": f"{phase.ends_at:%Y-%m-%d %H:%M}"}
    # A phase that is moved is news again.
    once = f"{kind}:{phase.id}:{moment:%Y%m%dT%H%M}:{user_id}"
    return {"kind": kind, "data": about, "user_id": user_id, "once": once}
