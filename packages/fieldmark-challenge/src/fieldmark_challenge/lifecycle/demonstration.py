"""The demo challenge: invented mushrooms, told apart by their measured traits, so that everybody can take part at once.

A simulated nature is grown and observed, but not painted: what would be photos are rows of traits. Three simulated
teams submit what the exact posterior says of traits that they measure more or less well, so that the board has
something to show. All of it is marked as simulated.
"""

from __future__ import annotations

import datetime as dt
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from sqlalchemy import select

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.runs.label_scores import LabelScores
from fieldmark.storage.files import sha256_of
from fieldmark.tables.labels import Labels
from fieldmark.web.refusals import ConflictError
from fieldmark_challenge.lifecycle.creation import Material, NewChallenge, create_challenge
from fieldmark_challenge.people import accounts, teams
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, Submission, User, utc_now
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring.queue import RESCORE_PRIORITY
from fieldmark_challenge.submissions.submissions import Entry, hand_in
from fieldmark_challenge.submissions.uploads import Upload
from fieldmark_worlds.layouts.folder import SPLIT_YEARS, nature_of
from fieldmark_worlds.layouts.release_files import finding_rng, prior_over
from fieldmark_worlds.nature.kingdom import Traits
from fieldmark_worlds.nature.nature import Nature
from fieldmark_worlds.nature.observations import Sightings, observe
from fieldmark_worlds.nature.posterior import log_posterior

SLUG, BENCHMARK = "demo", "folder"
FINDS = {"train": 900, "test": 500}
DESCRIPTION = """The species of this challenge do not exist: a simulated nature made them up. What would be photos are
rows of measured traits, so that a first run takes minutes.

## What to do
- Download train.csv (traits and labels) and test.csv (traits).
- Answer every id of test.csv with up to ten labels, best first, as in sample_run.csv.
- Submit the file here, or with `fieldmark submit`."""


@dataclass(frozen=True)
class SimulatedTeam:
    """A team of the demo: how badly it measures, from run to run."""

    name: str
    noise: tuple[float, ...]
    external_data: bool = False


TEAMS = (
    SimulatedTeam("Careful calipers (simulated)", (6.0, 3.0)),
    SimulatedTeam("Sharp eyes (simulated)", (4.0, 3.5), external_data=True),
    SimulatedTeam("Rough guesses (simulated)", (12.0,)),
)


def make_demo(database: Database, storage: Storage, owner: User, *, seed: int = 0) -> Challenge:
    """Makes the demo challenge with its baseline and its simulated teams; all their runs wait to be scored."""
    nature = nature_of("tiny", seed)
    seen = _observe(nature, seed)
    labels = Labels.of(seen["train"].table["label"])
    known = np.array([name in labels.code_of for name in seen["test"].table["label"]])
    test = seen["test"].take(np.flatnonzero(known))
    with scratch("demo") as folder:
        material = _material(folder, nature, seen["train"], test, labels)
        new = NewChallenge(
            slug=SLUG,
            benchmark=BENCHMARK,
            title="Invented mushrooms",
            summary="Tell simulated species apart by their measured traits. Made to try the platform out.",
            description=DESCRIPTION,
            public_share=0.4,
            seed=seed,
            ends_at=utc_now() + dt.timedelta(days=365),
            daily_limit=20,
            total_limit=1000,
        )
        challenge = create_challenge(database, storage, owner, new, material)
        for number, team in enumerate(TEAMS):
            _take_part(database, storage, challenge, team, nature, test, labels, folder, seed=seed + number)
    return challenge


def make_demo_once(database: Database, storage: Storage, owner: User) -> None:
    """Makes the demo on a platform without challenges; where another server makes it just now, leaves it to that."""
    with database.read() as session:
        if session.scalars(select(Challenge.id).limit(1)).first() is not None:
            return
    with suppress(ConflictError):
        make_demo(database, storage, owner)


def _observe(nature: Nature, seed: int) -> dict[str, Sightings]:
    rng = finding_rng(seed)
    seen: dict[str, Sightings] = {}
    first_id = 1
    for split, count in FINDS.items():
        seen[split] = observe(nature, SPLIT_YEARS[split], count, rng, first_id=first_id)
        first_id += count
    return seen


def _material(folder: Path, nature: Nature, train: Sightings, test: Sightings, labels: Labels) -> Material:
    truth = folder / "truth"
    truth.mkdir()
    table = test.table.select(
        pl.col("observation_id").cast(pl.String).alias("id"),
        "label",
        pl.col("observation_id").cast(pl.String).alias("unit"),
        pl.col("date").cast(pl.String),
    )
    table.write_csv(truth / "truth.csv")
    pl.DataFrame({"label": labels.names}).write_csv(truth / "classes.csv")
    for name, seen in (("train", train), ("test", test)):
        traits = pl.DataFrame([seen.traits.specimen(row) for row in range(len(seen))])
        ids = seen.table.select(pl.col("observation_id").cast(pl.String).alias("id"), "label")
        shown = ids if name == "train" else ids.drop("label")
        pl.concat([shown, traits], how="horizontal").write_csv(folder / f"{name}.csv")
    counts = np.bincount(labels.encode(train.table["label"]), minlength=len(labels)) + 1.0
    frequent = np.tile(np.log(counts / counts.sum()).astype(np.float32), (len(test), 1))
    _write(folder / "most_frequent.csv", test, labels, frequent)
    about = "Answers every item with the most frequent labels of the training set."
    return Material(
        truth,
        simulated=True,
        baselines=(("most frequent", folder / "most_frequent.csv", about),),
        downloads=(
            (folder / "train.csv", "Traits and labels to learn from."),
            (folder / "test.csv", "Traits to answer."),
        ),
    )


def _take_part(
    database: Database,
    storage: Storage,
    challenge: Challenge,
    team: SimulatedTeam,
    nature: Nature,
    test: Sightings,
    labels: Labels,
    folder: Path,
    *,
    seed: int,
) -> None:
    """Submits the posterior of traits that were measured with errors."""
    key = team.name.split(" (")[0].replace(" ", "-").lower()
    user = accounts.register(database, team.name, f"{key}@demo.invalid", secrets.token_urlsafe(24))
    teams.accept_rules(database, user, challenge)
    teams.make_team(database, user, challenge, team.name)
    taught = np.isin(nature.taxa["label"].to_numpy(), labels.names)
    prior = prior_over(nature, SPLIT_YEARS["train"], taught)
    columns = labels.encode(nature.taxa["label"])
    for number, noise in enumerate(team.noise):
        measured = _measured(test.traits, nature, noise, np.random.default_rng((seed, number)))
        posterior = log_posterior(nature, measured, prior=prior)
        scores = np.full((len(test), len(labels)), -np.inf, dtype=np.float32)
        scores[:, columns[columns >= 0]] = posterior[:, columns >= 0]
        path = folder / f"{key}-{number}.csv"
        _write(path, test, labels, scores)
        upload = Upload(path, path.name, path.stat().st_size, sha256_of(path))
        entry = Entry(
            title=f"measured with {noise:g} times the spread of a species",
            method="The exact posterior of the simulated nature, given traits with measuring errors.",
            external_data=team.external_data,
            external_note="the nature itself, which is simulated" if team.external_data else "",
        )
        row = hand_in(database, storage, user, challenge, upload, entry, arrived=utc_now())
        with database.write() as session:
            # The visitor's runs are scored before those of the demo.
            session.get_one(Submission, row.id).priority = RESCORE_PRIORITY


def _measured(traits: Traits, nature: Nature, noise: float, rng: np.random.Generator) -> Traits:
    spread = nature.sds.mean(axis=0)
    return replace(traits, latents=traits.latents + noise * spread * rng.normal(size=traits.latents.shape))


def _write(path: Path, test: Sightings, labels: Labels, scores: np.ndarray) -> None:
    items = tuple(test.table["observation_id"].cast(pl.String))
    BENCHMARKS[BENCHMARK].task.run.write(path, LabelScores(items, labels, scores, "log_probability"))
