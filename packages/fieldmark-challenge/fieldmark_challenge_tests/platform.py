"""A platform with people in it."""

from __future__ import annotations

import datetime as dt
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fieldmark_challenge.lifecycle.creation import NewChallenge, create_challenge, material_of_files
from fieldmark_challenge.people import accounts, teams
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, Phase, Role, Submission, Team, User, utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.submissions import submissions
from fieldmark_challenge.submissions.submissions import Entry
from fieldmark_challenge.submissions.uploads import received

PASSWORD = "correct horse battery"
ITEMS = tuple(f"i{number}" for number in range(60))
LABELS = ("a", "b", "c")


def label_of(number: int) -> str:
    return LABELS[number % 3]


def truth_text(*, swapped: bool = False) -> str:
    """Sixty items in thirty units; swapped, with the labels a and b exchanged."""
    other = {"a": "b", "b": "a", "c": "c"} if swapped else {label: label for label in LABELS}
    rows = [f"{item},{other[label_of(number)]},u{number // 2}" for number, item in enumerate(ITEMS)]
    return "\n".join(["id,label,unit", *rows]) + "\n"


def run_text(*, right: int = 60) -> str:
    """A run with the first so many items answered right, the others wrong."""
    answers = [label_of(number if number < right else number + 1) for number in range(len(ITEMS))]
    return "id,predicted\n" + "".join(f"{item},{label}\n" for item, label in zip(ITEMS, answers, strict=True))


@dataclass
class Platform:
    """A running platform for the tests: its database and files, an admin, one challenge, and people who join."""

    database: Database
    storage: Storage
    folder: Path
    admin: User
    challenge: Challenge
    people: dict[str, User] = field(default_factory=dict)

    def person(self, name: str, role: Role = "participant") -> User:
        if name not in self.people:
            address = f"{name.replace(' ', '.')}@example.org"
            self.people[name] = accounts.register(self.database, name, address, PASSWORD, role=role)
        return self.people[name]

    def captain(self, name: str, challenge: Challenge | None = None) -> User:
        """Somebody with a team of their own, called after them."""
        user, where = self.person(name), challenge or self.challenge
        teams.accept_rules(self.database, user, where)
        teams.make_team(self.database, user, where, f"team {name}")
        return user

    def make(self, slug: str, **settings: Any) -> Challenge:
        truth = self.folder / f"{slug}-truth.csv"
        truth.write_text(truth_text())
        owner = settings.pop("owner", self.admin)
        with material_of_files("folder", truth) as material:
            new = NewChallenge(slug, "folder", **{"public_share": 0.5, "seed": 0} | settings)
            return create_challenge(self.database, self.storage, owner, new, material)

    def hand_in(
        self,
        user: User,
        content: str | bytes | None = None,
        *,
        challenge: Challenge | None = None,
        arrived: dt.datetime | None = None,
        filename: str = "run.csv",
        **entry: Any,
    ) -> Submission:
        body = run_text() if content is None else content
        raw = io.BytesIO(body.encode() if isinstance(body, str) else body)
        where = challenge or self.challenge
        with received(raw, filename, limit_mb=where.max_upload_mb) as upload:
            return submissions.hand_in(
                self.database, self.storage, user, where, upload, Entry(**entry), arrived=arrived or utc_now()
            )

    def submission(self, submission_id: int) -> Submission:
        with self.database.read() as session:
            found = session.get_one(Submission, submission_id)
            found.scores  # noqa: B018  (loaded while there is a session)
            return found

    def set_phase(self, **values: Any) -> None:
        with self.database.write() as session:
            phase = session.get_one(Challenge, self.challenge.id).phases[0]
            for name, value in values.items():
                setattr(phase, name, value)

    def phase(self) -> Phase:
        with self.database.read() as session:
            return session.get_one(Challenge, self.challenge.id).phases[0]

    def quota(self, user: User, moment: dt.datetime | None = None) -> submissions.Quota:
        with self.database.read() as session:
            team = session.get_one(Team, self.team(user).id)
            return submissions.quota(session, team, self.phase(), moment or utc_now())

    def team(self, user: User) -> Team:
        from fieldmark_challenge.people.rights import team_of

        with self.database.read() as session:
            found = team_of(session, user, session.get_one(Challenge, self.challenge.id))
            assert found is not None
            return found


def open_platform(database: Database, storage: Storage, folder: Path) -> Platform:
    admin = accounts.register(database, "admin", "admin@example.org", PASSWORD, role="admin")
    platform = Platform(database, storage, folder, admin, challenge=None)  # type: ignore[arg-type]
    platform.challenge = platform.make("tiny")
    platform.people["admin"] = admin
    return platform
