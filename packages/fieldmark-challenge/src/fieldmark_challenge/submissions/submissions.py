"""Submitting a run, or a program that writes one: checked first, then accepted and counted in one transaction.

The moment at which a request arrives decides about deadlines and about the day (UTC) it counts for; a transfer that
drags on long after the end of a phase is refused all the same.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace

from sqlalchemy import func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError, TooOftenError
from fieldmark_challenge.challenges.code_tasks import asks_for_code
from fieldmark_challenge.challenges.phases import phase_at
from fieldmark_challenge.people.names import clean_name, clean_text, look_of_team
from fieldmark_challenge.people.rights import need_acceptance, need_distance, team_of
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.clock_guard import had_ended
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, Membership, Phase, Submission, Team, User, utc_now
from fieldmark_challenge.records.storage import Storage, new_name
from fieldmark_challenge.submissions.program_intake import open_intake
from fieldmark_challenge.submissions.run_files import RunRefusedError
from fieldmark_challenge.submissions.uploads import Upload, check_run, checklist

# What keeps a team from submitting; a hidden one goes on.
BARRED = {"disqualified": "The team is disqualified", "withdrawn": "The team has withdrawn from the challenge"}
UPLOAD_GRACE = dt.timedelta(minutes=15)
MOST_FOUND = 1000
UNDECLARED = (
    "Say whether external data were used, pretrained weights included: external=no, or external=yes and which ones in "
    "external_note."
)


@dataclass(frozen=True)
class Quota:
    """What a team may still submit."""

    daily: int
    total: int
    used_today: int
    used: int
    resets_at: dt.datetime

    @property
    def today_left(self) -> int:
        return max(0, min(self.daily - self.used_today, self.total_left))

    @property
    def total_left(self) -> int:
        return max(0, self.total - self.used)


@dataclass(frozen=True)
class Entry:
    """What a team says about its run; `external_found` is what the provenance of the run itself records."""

    title: str = ""
    method: str = ""
    external_data: bool = False
    external_note: str = ""
    idempotency_key: str | None = None
    external_found: str = ""

    def cleaned(self) -> Entry:
        """The same with everything in bounds; the use of external data must be explained."""
        note = clean_text(self.external_note, 1000, "note on external data")
        if self.external_data and not note:
            raise RefusalError("Say which external data were used.")
        key = self.idempotency_key
        if key is not None and not 8 <= len(key) <= 64:
            raise RefusalError("An idempotency key has 8 to 64 characters.")
        return Entry(
            title=clean_text(self.title, 120, "title").replace("\n", " "),
            method=clean_text(self.method, 5000, "description of the method"),
            external_data=self.external_data,
            external_note=note,
            idempotency_key=key,
            external_found=" ".join(self.external_found.split())[:MOST_FOUND],
        )


def declares_external(said: str) -> bool:
    """Whether a form says that external data were used.

    Raises:
        RefusalError: When it says neither yes nor no.
    """
    if said not in ("yes", "no"):
        raise RefusalError(UNDECLARED)
    return said == "yes"


def quota(session: Session, team: Team, phase: Phase, moment: dt.datetime) -> Quota:
    """What a team has used of its limits in a phase: with what those who are or were in it have used elsewhere."""
    people = select(Membership.user_id).where(Membership.team_id == team.id)
    theirs = or_(Submission.team_id == team.id, Submission.user_id.in_(people))
    counted = select(func.count()).where(theirs, Submission.phase_id == phase.id, Submission.counted.is_(True))
    today = moment.astimezone(dt.UTC).date()
    midnight = dt.datetime.combine(today + dt.timedelta(days=1), dt.time(), dt.UTC)
    return Quota(
        daily=phase.daily_limit,
        total=phase.total_limit,
        used_today=session.execute(counted.where(Submission.quota_day == today.isoformat())).scalar_one(),
        used=session.execute(counted).scalar_one(),
        resets_at=midnight,
    )


def hand_in(
    database: Database,
    storage: Storage,
    user: User,
    challenge: Challenge,
    upload: Upload,
    entry: Entry,
    *,
    arrived: dt.datetime,
) -> Submission:
    """Checks a run and puts it into the queue.

    Args:
        database: Where what is known about it is kept.
        storage: Where the file is kept.
        user: Who submits it.
        challenge: For which challenge.
        upload: The file.
        entry: What is said about it. Submitting again with the same idempotency key gives the first submission.
        arrived: When the request began.

    Raises:
        RunRefusedError: When the file has mistakes; it is kept in the list of submissions, and nothing is counted.
        ArchiveRefusedError: When the phase asks for a program, and the file holds none.
        TooOftenError: When a limit is reached.
        ConflictError: When no phase is open, there is no team, or the rules are not accepted.
    """
    entry = entry.cleaned()
    with database.read() as session:
        team, phase = standing(session, user, challenge, arrived)
        if earlier := _earlier(session, team, entry):
            return earlier
        _check_limits(quota(session, team, phase, arrived))
        program = open_intake(session) if asks_for_code(session, phase) is not None else None
    try:
        if program is not None:
            weights = program.check(challenge, upload)
            entry = replace(entry, external_found="; ".join(filter(None, (entry.external_found, weights)))[:MOST_FOUND])
        else:
            check_run(checklist(storage, challenge), upload, limit_mb=challenge.max_upload_mb)
    except RunRefusedError as error:
        _note_refused(database, user, team, phase, upload, entry, arrived, error)
        raise
    path = program.new_path(challenge) if program else f"runs/{challenge.id}/{new_name()}"
    storage.put(upload.path, path)
    accepted = None
    try:
        with database.write() as session:
            locked = database.lock(session, Team, team.id)  # one at a time per team: counting and adding are one act
            if locked is None:
                raise NotThereError
            database.lock(session, Challenge, challenge.id, shared=True)  # a reveal waits for this run, or it for that
            team, phase = standing(session, user, challenge, arrived)
            if team.id != locked.id:  # merged meanwhile: it is another team whose runs have to be counted
                raise ConflictError("Your team has just changed. Submit the run again.")
            if earlier := _earlier(session, team, entry):
                return earlier
            _check_limits(quota(session, team, phase, arrived))
            if (program is None) != (asks_for_code(session, phase) is None):
                raise ConflictError("The phase has changed meanwhile. Look at what it asks for, and submit again.")
            accepted = _row(user, team, phase, upload, entry, arrived)
            accepted.path = "" if program else path
            session.add(accepted)
            session.flush()
            if program is not None:
                program.add(session, accepted, upload, path)
            audit.note(session, user, "submission.accept", challenge=challenge, subject=f"{accepted.id}")
    finally:
        if accepted is None:
            storage.delete(path)
    return accepted


def standing(session: Session, user: User, challenge: Challenge, arrived: dt.datetime) -> tuple[Team, Phase]:
    """The team and the phase for which a run counts that arrived at a moment.

    Raises:
        ConflictError: When there is no team, no phase, or something else in the way.
    """
    present = session.get_one(Challenge, challenge.id, populate_existing=True)
    need_acceptance(session, user, present)
    team = team_of(session, user, present)
    if team is None:
        raise ConflictError("Make a team or join one first; a team of one is fine.")
    need_distance(session, user, present)
    if team.standing in BARRED:
        raise ConflictError(f"{BARRED[team.standing]}: runs of it are not taken. {team.standing_reason}".strip())
    phase = phase_at(present.phases, arrived)
    if phase is None or present.revealed_at:
        coming = [phase.starts_at for phase in present.phases if phase.starts_at > arrived]
        later = f" The next phase begins {min(coming):%Y-%m-%d %H:%M} UTC." if coming else ""
        raise ConflictError(f"No phase is open: runs are not taken now.{later}")
    if had_ended(session, phase, utc_now()):
        raise ConflictError(
            "The clock of the server was put back: the phase had ended before, and takes runs again once an organizer "
            "has saved its dates anew."
        )
    if utc_now() > phase.ends_at + UPLOAD_GRACE:
        raise ConflictError("The phase ended while the file was on its way.")
    return team, phase


def _earlier(session: Session, team: Team, entry: Entry) -> Submission | None:
    if entry.idempotency_key is None:
        return None
    query = select(Submission).where(Submission.team_id == team.id, Submission.idempotency_key == entry.idempotency_key)
    return session.scalars(query).one_or_none()


def _check_limits(left: Quota) -> None:
    wait = max(1, int((left.resets_at - utc_now()).total_seconds()))
    if left.total_left == 0:
        raise TooOftenError(f"The team has used all {left.total} runs of this phase.", retry_after_s=wait)
    if left.today_left == 0:
        raise TooOftenError(
            f"The team has used all {left.daily} runs of today; the next day begins at midnight UTC.",
            retry_after_s=wait,
        )


def _row(user: User, team: Team, phase: Phase | None, upload: Upload, entry: Entry, at: dt.datetime) -> Submission:
    return Submission(
        challenge_id=team.challenge_id,
        team_id=team.id,
        phase_id=phase.id if phase else None,
        user_id=user.id,
        title=entry.title,
        method=entry.method,
        external_data=entry.external_data,
        external_note=entry.external_note,
        external_found=entry.external_found,
        filename=upload.filename,
        size=upload.size,
        sha256=upload.sha256,
        idempotency_key=entry.idempotency_key,
        accepted_at=at,
        quota_day=at.astimezone(dt.UTC).date().isoformat(),
        counted=True,
        state="queued",
        reason="waiting for a worker",
    )


def _note_refused(
    database: Database,
    user: User,
    team: Team,
    phase: Phase,
    upload: Upload,
    entry: Entry,
    arrived: dt.datetime,
    error: RunRefusedError,
) -> None:
    """Keeps what was wrong with a run, but not the run: its team can read it again, and it costs nothing."""
    row = _row(user, team, phase, upload, entry, arrived)
    row.idempotency_key = None  # a corrected file may come with the same one
    row.state, row.counted, row.reason, row.problems = "refused", False, str(error), error.problems
    row.finished_at = utc_now()
    with database.write() as session:
        session.add(row)


def add_baseline(
    database: Database,
    storage: Storage,
    actor: User,
    challenge: Challenge,
    name: str,
    upload: Upload,
    method: str = "",
    external: str = "",
) -> Submission:
    """Puts a run of the organizers on the board, beside those of the teams and without a place among them."""
    shown, key = clean_name(name, "baseline's name")
    check_run(checklist(storage, challenge), upload, limit_mb=challenge.max_upload_mb)
    path = f"runs/{challenge.id}/{new_name()}"
    storage.put(upload.path, path)
    row = None
    try:
        with database.write() as session:
            look = look_of_team(session, challenge.id, shown)
            team = Team(challenge_id=challenge.id, name=shown, name_key=key, name_look=look, kind="baseline")
            session.add(team)
            try:
                session.flush()
            except IntegrityError as error:
                raise ConflictError(f"There is a team or a baseline called {shown!r} already.") from error
            entry = Entry(title=shown, method=method, external_data=bool(external), external_note=external).cleaned()
            row = _row(actor, team, None, upload, entry, utc_now())
            row.path, row.counted = path, False
            session.add(row)
            session.flush()
            audit.note(session, actor, "baseline.add", challenge=challenge, subject=shown)
    finally:
        if row is None:
            storage.delete(path)
    return row


def select_final(database: Database, user: User, challenge: Challenge, submission_id: int, selected: bool) -> None:
    """Picks a run for the final ranking, or unpicks it, until the private scores are revealed."""
    with database.write() as session:
        team = team_of(session, user, challenge)
        row = session.get(Submission, submission_id)
        if team is None or row is None or row.team_id != team.id:
            raise NotThereError
        database.lock(session, Team, team.id)
        present: Challenge = database.lock(session, Challenge, challenge.id, shared=True)
        if present.revealed_at:
            raise ConflictError("The private scores are revealed: the choice is made.")
        if row.state != "scored":
            raise ConflictError("Only a scored run can be chosen.")
        if selected and (row.standing or team.standing):
            raise ConflictError("The run is out of the ranking: it cannot be chosen.")
        chosen = select(func.count()).where(
            Submission.team_id == team.id, Submission.selected.is_(True), Submission.id != row.id
        )
        if selected and session.execute(chosen).scalar_one() >= present.max_final:
            raise ConflictError(f"A team chooses at most {present.max_final} runs: unpick another one first.")
        row.selected = selected
        action = "submission.select" if selected else "submission.unselect"
        audit.note(session, user, action, challenge=present, subject=f"{row.id}")


def refund(database: Database, actor: User, challenge: Challenge, submission_id: int) -> None:
    """Gives a team back what a submission cost it."""
    with database.write() as session:
        row = session.get(Submission, submission_id)
        if row is None or row.challenge_id != challenge.id:
            raise NotThereError
        if not row.counted:
            raise ConflictError("This submission does not count against any limit.")
        row.counted = False
        audit.note(session, actor, "submission.refund", challenge=challenge, subject=f"{row.id}")


def team_submissions(session: Session, team: Team) -> list[Submission]:
    """The submissions of a team, newest first."""
    query = select(Submission).where(Submission.team_id == team.id)
    return list(session.scalars(query.order_by(Submission.accepted_at.desc(), Submission.id.desc())))
