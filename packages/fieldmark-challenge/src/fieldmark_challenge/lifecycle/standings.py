"""Taking a team or a single run out of the ranking, with a reason, and putting it back.

A disqualified team or run is named below the ranking with the reason, a hidden one is not named at all; neither is
ranked or shown with scores, and the others close up. It may be done and undone at any time, also after the reveal:
who did what, when and why is in the audit log, and the board says that it was done after the results were out.
"""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark_challenge.challenges.limits import LONGEST_REASON
from fieldmark_challenge.people.names import clean_text
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, Membership, Standing, Submission, Team, User, utc_now

CHOICES: tuple[Standing, ...] = ("", "disqualified", "hidden")


def set_team_standing(
    database: Database, actor: User, challenge: Challenge, team_id: int, standing: str, reason: str
) -> Team:
    """Takes a team with all its runs out of the ranking, or puts it back (an empty standing).

    Raises:
        NotThereError: When the challenge has no such team.
        RefusalError: When there is no reason, or no such standing.
        ConflictError: When the team lives on in another one.
    """
    with database.write() as session:
        team: Team | None = database.lock(session, Team, team_id)
        if team is None or team.challenge_id != challenge.id:
            raise NotThereError
        if team.standing == "merged":
            raise ConflictError(f"{team.name} has become part of another team: choose that one.")
        _change(session, actor, challenge, team, team.name, *_checked(standing, reason))
    return team


def set_run_standing(
    database: Database, actor: User, challenge: Challenge, submission_id: int, standing: str, reason: str
) -> Submission:
    """The same for a single run; the other runs of its team stay."""
    with database.write() as session:
        run: Submission | None = database.lock(session, Submission, submission_id)
        if run is None or run.challenge_id != challenge.id:
            raise NotThereError
        _change(session, actor, challenge, run, f"run {run.id}", *_checked(standing, reason))
    return run


def teams_of(session: Session, challenge: Challenge) -> list[tuple[Team, int]]:
    """The teams of participants by name, each with the number of its accepted runs."""
    runs = select(Submission.team_id, func.count()).where(Submission.challenge_id == challenge.id)
    accepted = runs.where(Submission.path != "").group_by(Submission.team_id)
    count_of: dict[int, int] = dict(iter(session.execute(accepted)))
    query = select(Team).where(Team.challenge_id == challenge.id, Team.kind == "participants")
    query = query.options(joinedload(Team.members).joinedload(Membership.user)).order_by(Team.name_key)
    return [(team, count_of.get(team.id, 0)) for team in session.scalars(query).unique()]


def _checked(standing: str, reason: str) -> tuple[Standing, str]:
    wanted = next((one for one in CHOICES if one == standing), None)
    if wanted is None:
        raise RefusalError(f"Found {standing[:40]!r}, expected disqualified, hidden, or nothing to put it back.")
    why = clean_text(reason, LONGEST_REASON, "reason").replace("\n", " ")
    if wanted and not why:
        raise RefusalError("Give the reason: it is shown to those concerned and logged.")
    return wanted, why


def _change(
    session: Session,
    actor: User,
    challenge: Challenge,
    what: Team | Submission,
    name: str,
    standing: Standing,
    why: str,
) -> None:
    present = session.get_one(Challenge, challenge.id)
    before = {"standing": what.standing, "reason": what.standing_reason}
    what.standing, what.standing_reason = standing, why if standing else ""
    what.standing_at = utc_now() if standing else None
    kind = "team" if isinstance(what, Team) else "submission"
    late = {"after_reveal": True} if present.revealed_at else {}
    details = {"before": before, "standing": standing, "reason": why, **late}
    audit.note(session, actor, f"{kind}.standing", challenge=challenge, subject=name, **details)
