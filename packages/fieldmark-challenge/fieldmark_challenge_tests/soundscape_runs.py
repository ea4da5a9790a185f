"""A simulated challenge on soundscapes with its teams and weeks of runs, scored by the real scorer.

Runs are put into the database as a worker would have left them, so that boards have a past.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
from sqlalchemy import select

from fieldmark.runs.segments import clock
from fieldmark.scoring.score_parts import score_parts, truth_files
from fieldmark_challenge.lifecycle.creation import NewChallenge, create_challenge, material_of_files
from fieldmark_challenge.people import accounts, teams
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, Submission, Team, User
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring.stored_scores import to_row

SITES = ("Sierra Nevada", "Ithaca", "Severn", "Tambopata")
BIRDS = ("amerob", "blujay", "bkcchi", "comyel", "evegro", "foxspa", "hamfly", "mouchi", "norfli", "rebnut", "stejay")
PASSWORD = "correct horse battery"
METHOD = (
    "EfficientNet-B3 on log-mel spectrograms, five folds.\n- mixup and pitch shifts\n- mean over neighboring windows"
)


def write_soundscapes(folder: Path, *, per_site: int, segments: int = 12, seed: int = 5) -> None:
    """Recordings of a minute at four sites, with events; the last site is the hardest."""
    rng = np.random.default_rng(seed)
    media, events = ["MediaId,seconds,site"], []
    for site in SITES:
        for number in range(per_site):
            name = f"{site[:3].upper()}{number:03}"
            media.append(f"{name},{segments * 5},{site}")
            heard = rng.choice(BIRDS, size=rng.integers(1, 5), replace=False)
            for bird in heard:
                for start in rng.choice(segments, size=rng.integers(1, 4), replace=False):
                    events.append(f"{name};{bird};{clock(5 * start)}-{clock(5 * start + 5)}")
    (folder / "media.csv").write_text("\n".join(media) + "\n")
    (folder / "truth.csv").write_text("\n".join(events) + "\n")
    (folder / "classes.csv").write_text("label\n" + "\n".join(BIRDS) + "\n")


def write_run(path: Path, folder: Path, *, skill: float, seed: int) -> Path:
    """Scores that rise with the truth as much as the skill says; less so at the last site."""
    rng = np.random.default_rng(seed)
    there = {tuple(line.split(";")) for line in (folder / "truth.csv").read_text().splitlines()}
    lines = []
    for row in (folder / "media.csv").read_text().splitlines()[1:]:
        name, seconds, site = row.split(",")
        heard = skill * (0.45 if site == SITES[-1] else 1.0)
        for start in range(0, int(seconds), 5):
            interval = f"{clock(start)}-{clock(start + 5)}"
            for bird in rng.choice(BIRDS, size=7, replace=False):
                signal = 3 * heard * ((name, bird, interval) in there)
                chance = 1 / (1 + np.exp(-(signal - 2 + rng.normal(0, 1))))
                lines.append(f"{name};{interval};{bird};{chance:.5f}")
    path.write_text("\n".join(lines) + "\n")
    return path


def host(
    database: Database,
    storage: Storage,
    owner: User,
    folder: Path,
    skills: dict[str, list[float]],
    *,
    per_site: int,
    start: dt.datetime,
    slug: str = "dawn-chorus",
    **settings: object,
) -> Challenge:
    """Makes the challenge and its past: one run every couple of days per team."""
    write_soundscapes(folder, per_site=per_site)
    truth, classes, media = (folder / f"{name}.csv" for name in ("truth", "classes", "media"))
    new = NewChallenge(
        slug,
        "birdclef-2020",
        title="Dawn chorus",
        summary="Which birds sing in each five seconds of a soundscape, at four sites.",
        description="Recordings of a minute, made before sunrise.\n\n## What to submit\n- one line for each bird that "
        "you hear in a segment, with a score, as in `sample_run.csv`",
        public_share=0.4,
        seed=0,
        starts_at=start,
        ends_at=start + dt.timedelta(days=80),
        **settings,  # type: ignore[arg-type]
    )
    with material_of_files("birdclef-2020", truth, classes, media) as material:
        object.__setattr__(material, "simulated", True)
        challenge = create_challenge(database, storage, owner, new, material)
        files = truth_files(material.folder)
        for place, (name, levels) in enumerate(skills.items()):
            team, person = _team(database, challenge, owner, name)
            for number, skill in enumerate(levels):
                run = write_run(folder / "run.csv", folder, skill=skill, seed=100 * place + number)
                at = start + dt.timedelta(days=2.3 * place + 9.1 * number + 1, hours=5 * number)
                _score(database, challenge, team, person, run, files, at, number)
    return challenge


def _team(database: Database, challenge: Challenge, owner: User, name: str) -> tuple[Team, User]:
    if name.startswith("baseline"):
        with database.write() as session:
            team = Team(challenge_id=challenge.id, name=name, name_key=name.lower(), kind="baseline")
            session.add(team)
        return team, owner
    first = name.split()[0]
    with database.read() as session:
        found = session.scalars(select(User).where(User.name == first)).one_or_none()
    person = found or accounts.register(database, first, f"{first.lower()}@example.org", PASSWORD)
    teams.accept_rules(database, person, challenge)
    return teams.make_team(database, person, challenge, name), person


def _score(
    database: Database,
    challenge: Challenge,
    team: Team,
    person: User,
    run: Path,
    files: dict[str, Path],
    at: dt.datetime,
    number: int,
) -> None:
    cards = score_parts(challenge.benchmark, run, files)
    content = run.read_bytes()
    with database.write() as session:
        submission = Submission(
            challenge_id=challenge.id,
            team_id=team.id,
            user_id=person.id,
            title=team.name if team.kind == "baseline" else f"run {number + 1}",
            method=METHOD,
            external_data=number % 2 == 1,
            filename="run.csv",
            path="",
            size=len(content),
            sha256=cards["public"].provenance["scored"]["run"]["sha256"],
            accepted_at=at,
            quota_day=at.date().isoformat(),
            state="scored",
            finished_at=at,
        )
        session.add(submission)
        session.flush()
        for part, card in cards.items():
            session.add(to_row(submission.id, part, challenge.revision, card, challenge.metric))
