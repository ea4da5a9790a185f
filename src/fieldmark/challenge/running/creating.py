"""Making a challenge: from a release that holds the truth, or from the truth as small tables."""

from __future__ import annotations

import datetime as dt
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Task
from fieldmark.challenge.people.names import clean_filename, clean_slug, clean_text
from fieldmark.challenge.people.rights import note_insider
from fieldmark.challenge.records import audit
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.participation import LaterStage
from fieldmark.challenge.records.schema import Access, AuditEvent, Challenge, DataFile, Phase, User, utc_now
from fieldmark.challenge.records.scratch import scratch
from fieldmark.challenge.records.storage import Storage, digest_folder, new_name
from fieldmark.challenge.refusals import ConflictError, RefusalError
from fieldmark.challenge.running.label_leaks import leaks_of, order_key, secret_order
from fieldmark.challenge.running.organizing import known_access
from fieldmark.challenge.running.stages import checked_entry, stage_before
from fieldmark.challenge.scoring import queue
from fieldmark.challenge.scoring.score_parts import (
    CLASSES_FILE,
    MEDIA_FILE,
    PARTS_FILE,
    PUBLIC,
    draw_parts,
    read_truth,
    refuse_unhosted,
    truth_files,
)
from fieldmark.challenge.submitting.submissions import add_baseline
from fieldmark.challenge.submitting.uploads import Upload
from fieldmark.datasets import release_of
from fieldmark.errors import MisuseError
from fieldmark.foundation.files import sha256_of
from fieldmark.labels import Labels
from fieldmark.verbs.score_run import write_truth

ITEMS_FILE, LABELS_FILE = "items.csv", "labels.csv"
# What is handed in for comparison, by what runs hold: title, method, and a sentence about it.
BASELINES = {
    "labels": ("most frequent", "frequent", "Answers every item with the most frequent labels of the training set."),
    "masks": ("center ellipse", "ellipse", "Draws the same ellipse in the middle of every photo."),
}
# What the log calls a sentence about ids or files that tell labels.
LEAK_WARNING = "challenge.warn"
RULES = """Runs are made without the labels of the test set. What was trained on besides the data of the challenge is
external data, and is declared with each run. One person belongs to one team."""


def secret_seed() -> int:
    """A seed for the draw of the parts: one that somebody could guess would show which items are private."""
    return secrets.randbits(63)


@dataclass(frozen=True)
class NewChallenge:
    """What is decided when a challenge is made; most of it can be changed later."""

    slug: str
    benchmark: str
    title: str = ""
    summary: str = ""
    description: str = ""
    rules: str = RULES
    public_share: float | None = 0.3  # of the independent units; None makes everything public
    seed: int = field(default_factory=secret_seed)  # of the draw of the parts
    starts_at: dt.datetime = field(default_factory=utc_now)
    ends_at: dt.datetime | None = None
    daily_limit: int = 5
    total_limit: int = 100
    needs_run_without_external: bool = False
    ladder: bool = False
    access: str = "open"
    stage_of: str = ""  # the challenge that this one is the next stage of
    stage_entry: str = "all"
    stage_top: int | None = None
    published: bool = True


@dataclass(frozen=True)
class Material:
    """The truth of a challenge in a local folder, and what came with it.

    Args:
        folder: The files that `score_parts.truth_files` names.
        simulated: Whether the truth is that of a world.
        baselines: Run files of the organizers by name, each with a sentence about it.
        downloads: Files for participants, each with a sentence about it.
    """

    folder: Path
    simulated: bool = False
    baselines: tuple[tuple[str, Path, str], ...] = ()
    downloads: tuple[tuple[Path, str], ...] = ()


@contextmanager
def material_of_release(benchmark: str, data: str | Path, *, seed: int = 0) -> Iterator[Material]:
    """Cuts the truth of the test part out of a release, and makes the baseline that needs labels only.

    Raises:
        InputError: When the release does not hold the labels of test.
    """
    refuse_unhosted(benchmark)
    with scratch("challenge") as folder:
        write_truth(benchmark, data, folder / "truth", split="test", seed=seed)
        baselines = _baseline(benchmark, data, folder / "baseline", seed)
        simulated = release_of(BENCHMARKS[benchmark].dataset, data).world is not None
        yield Material(folder / "truth", simulated, baselines)


@contextmanager
def material_of_files(
    benchmark: str,
    truth: Path,
    classes: Path | None = None,
    media: Path | None = None,
    *,
    simulated: bool = False,
) -> Iterator[Material]:
    """Takes the truth as `fieldmark score --truth` does; without classes, those that it names are all there are."""
    refuse_unhosted(benchmark)
    with scratch("challenge") as folder:
        given = {"truth": truth, "classes": classes, "media": media}
        _, labels, *_ = read_truth(benchmark, {what: path for what, path in given.items() if path is not None})
        pl.DataFrame({"label": labels.names}).write_csv(folder / CLASSES_FILE)
        _keep(benchmark, folder, truth, classes, media)
        yield Material(folder, simulated)


def create_challenge(
    database: Database, storage: Storage, owner: User, new: NewChallenge, material: Material
) -> Challenge:
    """Makes a challenge: draws the parts, stores the truth, writes a sample run, and hands in the baselines.

    Raises:
        RefusalError, MisuseError: When something about it will not do.
    """
    slug = clean_slug(new.slug)
    benchmark = BENCHMARKS[new.benchmark]
    ends_at = new.ends_at or new.starts_at + dt.timedelta(days=30)
    if new.starts_at >= ends_at:
        raise RefusalError("The challenge would end before it begins.")
    if min(new.daily_limit, new.total_limit) < 1:
        raise RefusalError("Limits are whole numbers from 1 on.")
    with database.read() as session:
        if session.scalars(select(Challenge.id).where(Challenge.slug == slug)).first():
            raise ConflictError(f"There is a challenge called {slug!r} already.")
        before = stage_before(session, owner, new.stage_of, benchmark.name) if new.stage_of else None
    entry = checked_entry(new.stage_entry, new.stage_top)
    files = truth_files(material.folder)
    truth, labels, *_ = read_truth(benchmark.name, files)
    units = units_public = len(set(truth.units))
    if new.public_share is not None:
        parts = draw_parts(truth.units, public=new.public_share, seed=new.seed)
        parts.write_csv(material.folder / PARTS_FILE)
        units_public = int((parts["part"] == PUBLIC).sum())
    truth_path = _store_folder(storage, material.folder, "truth")
    challenge = Challenge(
        slug=slug,
        title=clean_text(new.title, 200, "title") or slug,
        summary=clean_text(new.summary, 500, "summary"),
        description=clean_text(new.description, 20_000, "description"),
        rules=clean_text(new.rules, 20_000, "rules"),
        benchmark=benchmark.name,
        benchmark_version=benchmark.version,
        metric=benchmark.task.deciding.name,
        simulated=material.simulated,
        owner_id=owner.id,
        published_at=utc_now() if new.published else None,
        truth_path=truth_path,
        truth_sha256=digest_folder(material.folder),
        items=len(truth.items),
        units=units,
        units_public=units_public,
        classes=len(labels),
        needs_run_without_external=new.needs_run_without_external,
        ladder=new.ladder,
        access=_stage_access(before, new.access) if before else known_access(new.access),
    )
    try:
        with database.write() as session:
            session.add(challenge)
            session.flush()
            session.add(
                Phase(
                    challenge_id=challenge.id,
                    name="main",
                    starts_at=new.starts_at,
                    ends_at=ends_at,
                    daily_limit=new.daily_limit,
                    total_limit=new.total_limit,
                )
            )
            note_insider(session, challenge.id, owner.id)
            if before is not None:
                session.add(LaterStage(challenge_id=challenge.id, first_id=before.id, entry=entry[0], top=entry[1]))
                if sentence := _known_items(storage, before, truth.items):
                    audit.note(session, owner, LEAK_WARNING, challenge=challenge, subject=slug, sentence=sentence)
            audit.note(session, owner, "challenge.create", challenge=challenge, subject=slug, benchmark=benchmark.name)
            for sentence in leaks_of(truth, [path for path, _ in material.downloads]):
                audit.note(session, owner, LEAK_WARNING, challenge=challenge, subject=slug, sentence=sentence)
    except IntegrityError as error:
        raise ConflictError(f"There is a challenge called {slug!r} already.") from error
    _write_lists(database, storage, owner, challenge, truth.items, labels)
    for path, sentence in material.downloads:
        add_data_file(database, storage, owner, challenge, path, path.name, sentence)
    for name, path, about in material.baselines:
        upload = Upload(path, clean_filename(path.name), path.stat().st_size, sha256_of(path))
        add_baseline(database, storage, owner, challenge, name, upload, about)
    return challenge


def _stage_access(before: Challenge, wanted: str) -> Access:
    """Who may see a later stage: its teams are those that came through, and a private line of stages stays private."""
    return "private" if "private" in (before.access, known_access(wanted)) else "invitation"


def _known_items(storage: Storage, before: Challenge, items: tuple[str, ...]) -> str:
    """A warning about items that were in the stage before, whose labels may be known by now."""
    with scratch("truth") as folder:
        earlier, *_ = read_truth(before.benchmark, truth_files(storage.fetch_folder(before.truth_path, folder)))
    again = set(items) & set(earlier.items)
    return f"{len(again)} of {len(items)} items are those of {before.slug}, whose labels may be known" if again else ""


def replace_truth(
    database: Database,
    storage: Storage,
    actor: User | None,
    challenge: Challenge,
    truth: Path,
    classes: Path | None = None,
    media: Path | None = None,
) -> int:
    """Puts a corrected truth in the place of the old one, which is kept, and has all runs scored again, in one act.

    Items, units and parts stay what they are; labels may change.

    Returns:
        How many runs will be scored.

    Raises:
        RefusalError: When the new truth is about other items.
    """
    with scratch("truth") as folder:
        storage.fetch_folder(challenge.truth_path, folder)
        files = truth_files(folder)
        old, *_ = read_truth(challenge.benchmark, files)
        _keep(challenge.benchmark, folder, truth, classes, media)
        files = truth_files(folder)
        new, labels, *_ = read_truth(challenge.benchmark, files)
        if dict(zip(new.items, new.units, strict=True)) != dict(zip(old.items, old.units, strict=True)):
            raise RefusalError("The new truth is about other items or units than the old one; only labels may change.")
        path, sha256 = _store_folder(storage, folder, "truth"), digest_folder(folder)
    with database.write() as session:
        mine: Challenge = database.lock(session, Challenge, challenge.id)
        if mine.revealed_at:
            raise ConflictError("The private scores are revealed: results are final, and the truth stays as it is.")
        audit.note(session, actor, "truth.replace", challenge=mine, before=mine.truth_sha256, after=sha256)
        mine.truth_path, mine.truth_sha256, mine.classes = path, sha256, len(labels)
        return queue.rescore_in(session, actor, mine)


def _keep(benchmark: str, folder: Path, truth: Path, classes: Path | None, media: Path | None) -> None:
    """Puts the files of a truth into its folder, over what lies there."""
    task = BENCHMARKS[benchmark].task
    task.answer.keep_truth(task.items, truth, folder)
    for source, target in ((classes, CLASSES_FILE), (media, MEDIA_FILE)):
        if source is not None:
            shutil.copyfile(source, folder / target)


def add_data_file(
    database: Database, storage: Storage, actor: User, challenge: Challenge, source: Path, name: str, about: str = ""
) -> DataFile:
    """Adds something to download, or a newer version of it."""
    shown = clean_filename(name)
    path = f"data/{challenge.id}/{new_name()}"
    storage.put(source, path)
    with database.write() as session:
        database.lock(session, Challenge, challenge.id)  # the same file twice at once is one file
        query = select(DataFile).where(DataFile.challenge_id == challenge.id, DataFile.name == shown)
        row = session.scalars(query).one_or_none() or DataFile(challenge_id=challenge.id, name=shown)
        row.path, row.size, row.sha256 = path, source.stat().st_size, sha256_of(source)
        row.about = clean_text(about, 500, "description")
        session.add(row)
        session.flush()
        audit.note(session, actor, "data.add", challenge=challenge, subject=shown, sha256=row.sha256)
    return row


def sample_file(task: Task) -> str:
    """What the example of a run is called."""
    return f"sample_{task.run.file_name}"


def write_sample(path: Path, task: Task, items: tuple[str, ...], labels: Labels, *, seed: int = 0) -> None:
    """Writes a run with labels drawn at random: an example of the format, and what guessing scores."""
    rng = np.random.default_rng(seed)
    task.run.write(path, task.answer.sample(items, labels, rng, dense=task.run.dense))


def renew_lists(database: Database, storage: Storage, actor: User, challenge: Challenge) -> None:
    """Writes the lists for participants again, in their secret order; for challenges of before there was one."""
    with scratch("truth") as folder:
        files = truth_files(storage.fetch_folder(challenge.truth_path, folder))
        truth, labels, *_ = read_truth(challenge.benchmark, files)
    _write_lists(database, storage, actor, challenge, truth.items, labels)


def warnings_about(database: Database, storage: Storage, challenge: Challenge, file: Path | None = None) -> list[str]:
    """What gives labels of a challenge away: as noted when it was made, or by a file that will be offered."""
    if file is None:
        with database.read() as session:
            noted = (AuditEvent.challenge_id == challenge.id, AuditEvent.action == LEAK_WARNING)
            query = select(AuditEvent).where(*noted).order_by(AuditEvent.id)
            return [event.details["sentence"] for event in session.scalars(query)]
    if challenge.revealed_at is not None:  # everything may be known by now
        return []
    with scratch("truth") as folder:
        files = truth_files(storage.fetch_folder(challenge.truth_path, folder))
        truth, *_ = read_truth(challenge.benchmark, files)
    return [sentence for sentence in leaks_of(truth, [file]) if sentence.startswith(file.name)]


def _write_lists(
    database: Database, storage: Storage, owner: User, challenge: Challenge, items: tuple[str, ...], labels: Labels
) -> None:
    """Items in their secret order, labels by name: neither says anything about the truth."""
    task = BENCHMARKS[challenge.benchmark].task
    shown, named = secret_order(items, order_key(database, challenge.id)), Labels.of(labels.names)
    with scratch("data") as folder:
        sample = sample_file(task)
        write_sample(folder / sample, task, shown, named)
        pl.DataFrame({"label": named.names}).write_csv(folder / LABELS_FILE)
        pl.DataFrame({"id": shown}).write_csv(folder / ITEMS_FILE)
        about = {
            sample: f"A run in the right format with {task.run.holds} drawn at random.",
            ITEMS_FILE: "What has to be answered.",
            LABELS_FILE: "The labels there are.",
        }
        for file, sentence in about.items():
            add_data_file(database, storage, owner, challenge, folder / file, file, sentence)


def _store_folder(storage: Storage, folder: Path, kind: str) -> str:
    path = f"{kind}/{new_name()}"
    for file in truth_files(folder).values():
        storage.put(file, f"{path}/{file.name}")
    return path


def _baseline(benchmark: str, data: str | Path, out: Path, seed: int) -> tuple[tuple[str, Path, str], ...]:
    """The run of a method that never looks at an item, where the harness can make it."""
    from fieldmark.fitting import fit

    run = BENCHMARKS[benchmark].task.run
    title, method, about = BASELINES[run.holds]
    try:
        result = fit(benchmark, data, method, out, seed=seed)
    except MisuseError:
        return ()
    return ((title, result.folder / run.file_name, about),)
