"""What the platform keeps about a person, for that person: as one JSON document, or as an archive with the run files.

Never in it: hashes and secrets (an export must not open an account), scores that the person may not see yet, and what
is noted for organizers. Of programs their archives are in it, and of what they wrote as much as anybody is shown
(`challenges.visible_output`).
"""

from __future__ import annotations

import datetime as dt
import json
import zipfile
from pathlib import Path
from typing import Any

from sqlalchemy import Table, select
from sqlalchemy.orm import Session, joinedload

from fieldmark_challenge.boards.own_scores import own_metrics
from fieldmark_challenge.challenges.visible_output import programs_of
from fieldmark_challenge.people.rights import manages
from fieldmark_challenge.records.schema import Base, Challenge, Membership, Submission, Team, User, utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.submissions.replies import ProgramOut, SubmissionOut

LARGEST_FILES = 256 << 20
ACCOUNT = ("id", "name", "name_look", "email", "email_verified_at", "role", "created_at", "disabled_at")
# By table: the column that names the person, and what of its rows they get.
TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "acceptances": ("user_id", ("challenge_id", "rules_version", "accepted_at")),
    "admissions": ("user_id", ("challenge_id", "state", "note", "changed_at")),
    "announcements": ("author_id", ("challenge_id", "title", "text", "created_at")),
    "api_tokens": ("user_id", ("name", "shown", "scopes", "created_at", "expires_at", "used_at", "revoked_at")),
    "audit_events": ("actor_id", ("at", "action", "challenge_id", "subject", "details")),
    "challenges": ("owner_id", ("id", "slug", "title", "created_at")),
    "classrooms": ("created_by", ("network", "note", "created_at", "ends_at")),
    "entry_codes": ("created_by", ("challenge_id", "shown", "note", "uses", "used", "created_at", "expires_at")),
    "insiders": ("user_id", ("challenge_id", "since")),
    "invitations": ("created_by", ("team_id", "note", "created_at", "expires_at", "used_at", "revoked_at")),
    "linked_identities": ("user_id", ("issuer", "subject", "shown", "created_at", "used_at")),
    "merge_offers": ("made_by", ("team_id", "into_id", "made_at", "settled_at", "accepted")),
    "muted_topics": ("user_id", ("topic",)),
    "organizers": ("user_id", ("challenge_id",)),
    "outgoing_mails": ("user_id", ("address", "kind", "state", "created_at", "settled_at")),
    "partial_uploads": ("user_id", ("challenge_id", "filename", "size", "received", "created_at", "expires_at")),
    "programs": ("user_id", ("id", "challenge_id", "team_id", "filename", "size", "sha256", "accepted_at", "state")),
    "sessions": ("user_id", ("created_at", "seen_at", "expires_at")),
}
# Told in another way (teams, runs), or nothing but secrets and their times.
LEFT_OUT = ("email_tokens", "memberships", "reset_tokens", "sign_on_attempts", "submissions", "teams")
README = """What this platform keeps about {name}, as of {at} (UTC).

data.json    the account, what it accepted, made and did, its teams, and its runs with the scores that it may see
runs/        the run files and programs that this account submitted{rest}

Times are UTC. Challenges are named by their number in the tables and by their short name elsewhere.
"""


def own_data(session: Session, user: User) -> dict[str, Any]:
    """Everything about a person as plain data."""
    present = session.get_one(User, user.id)
    return {
        "exported_at": utc_now().isoformat(),
        "account": {name: _plain(getattr(present, name)) for name in ACCOUNT if hasattr(present, name)},
        "teams": _teams(session, present),
        "runs": _runs(session, user),
        "records": {
            name: _rows(session, Base.metadata.tables[name], column, shown, present.id)
            for name, (column, shown) in TABLES.items()
        },
    }


def write_archive(session: Session, storage: Storage, user: User, path: Path) -> None:
    """Writes the archive; run files beyond a size in all are left out and named."""
    data = own_data(session, user)
    query = select(Submission).where(Submission.user_id == user.id).order_by(Submission.id)
    runs = list(session.scalars(query))
    programs = programs_of(session, runs)
    left, left_out = LARGEST_FILES, []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.json", json.dumps(data, indent=2, ensure_ascii=False))
        for run in runs:
            file = programs.get(run.id, run)  # what they submitted: of a run that a program wrote nothing is told
            if not file.path:
                continue
            if file.size > left or not storage.exists(file.path):
                left_out.append(run.id)
                continue
            left -= file.size
            with archive.open(f"runs/{run.id}-{file.filename}", "w", force_zip64=True) as sink:
                for piece in storage.chunks(file.path):
                    sink.write(piece)
        numbers = ", ".join(map(str, left_out))
        rest = f"; too large for this archive, available from their pages: {numbers}" if left_out else ""
        archive.writestr("README.txt", README.format(name=user.name, at=data["exported_at"][:16], rest=rest))


def _teams(session: Session, user: User) -> list[dict[str, Any]]:
    query = select(Membership).where(Membership.user_id == user.id).order_by(Membership.joined_at)
    query = query.options(joinedload(Membership.team).joinedload(Team.challenge))
    return [
        {
            "challenge": one.team.challenge.slug,
            "id": one.team_id,
            "name": one.team.name,
            "captain": one.team.captain_id == user.id,
            "joined_at": _plain(one.joined_at),
            "left_at": _plain(one.left_at),
            "standing": one.team.standing,
            "standing_reason": one.team.standing_reason,
        }
        for one in session.scalars(query)
    ]


def _runs(session: Session, user: User) -> list[dict[str, Any]]:
    """The runs that a person submitted, each with the scores that its team may see."""
    query = select(Submission).where(Submission.user_id == user.id).order_by(Submission.id)
    by_challenge: dict[int, list[Submission]] = {}
    for run in session.scalars(query.options(joinedload(Submission.team))):
        by_challenge.setdefault(run.challenge_id, []).append(run)
    told: list[dict[str, Any]] = []
    for number, runs in by_challenge.items():
        challenge = session.get_one(Challenge, number)
        scores = own_metrics(session, challenge, runs, manages=manages(session, user, challenge))
        programs = programs_of(session, runs)
        for run in runs:
            # As somebody of the team sees it, whatever they run besides.
            program = ProgramOut.of(session, programs[run.id], manages=False) if run.id in programs else None
            about = SubmissionOut.of(run, scores[run.id], None, program).model_dump(mode="json", exclude={"position"})
            told.append({"challenge": challenge.slug, **about, "method": run.method})
    return told


def _rows(session: Session, table: Table, column: str, shown: tuple[str, ...], user_id: int) -> list[dict[str, Any]]:
    query = select(*(table.c[name] for name in shown)).where(table.c[column] == user_id)
    rows = session.execute(query.order_by(*table.primary_key.columns)).mappings()
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.datetime) else value
