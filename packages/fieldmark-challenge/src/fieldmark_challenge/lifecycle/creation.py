"""Making a challenge: from a release that holds the truth, or from the truth as small tables."""

from __future__ import annotations

import datetime as dt
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.questions.truth import Truth
from fieldmark.releases import release_of
from fieldmark.scoring.score_parts import (
    CLASSES_FILE,
    MEDIA_FILE,
    PARTS_FILE,
    PUBLIC,
    draw_parts,
    read_truth,
    refuse_unhosted,
    truth_files,
)
from fieldmark.storage.files import sha256_of
from fieldmark.views.score_run import write_truth
from fieldmark.web.refusals import ConflictError, RefusalError
from fieldmark_challenge.challenges.label_leaks import leaks_of
from fieldmark_challenge.challenges.metrics import board_metric
from fieldmark_challenge.challenges.offered_files import add_data_file, write_lists
from fieldmark_challenge.challenges.stages import checked_entry, stage_before
from fieldmark_challenge.lifecycle.challenge_settings import known_access
from fieldmark_challenge.people.names import clean_filename, clean_slug, clean_text
from fieldmark_challenge.people.rights import note_insider
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.clock_guard import confirm_phase
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.participation import LaterStage
from fieldmark_challenge.records.schema import Access, AuditEvent, Challenge, Phase, User, utc_now
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import Storage, digest_folder, new_name
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.submissions.submissions import add_baseline
from fieldmark_challenge.submissions.uploads import Upload

# What is submitted for comparison, by what runs hold: title, method, and a sentence about it.
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
    metric: str = ""  # the one that decides; empty for the one that the benchmark names
    published: bool = True

    @property
    def end(self) -> dt.datetime:
        """When its phase ends: 30 days after it starts unless that is said."""
        return self.ends_at or self.starts_at + dt.timedelta(days=30)


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
    """Takes the truth as `fieldmark score --truth` does; without classes, those that it names are all there are.

    What `fieldmark truth` wrote of a world says so itself; `simulated` says it of other tables.
    """
    refuse_unhosted(benchmark)
    with scratch("challenge") as folder:
        given = {"truth": truth, "classes": classes, "media": media}
        known, labels, *_ = read_truth(benchmark, {what: path for what, path in given.items() if path is not None})
        pl.DataFrame({"label": labels.names}).write_csv(folder / CLASSES_FILE)
        _keep(benchmark, folder, truth, classes, media)
        yield Material(folder, simulated or bool(known.simulated))


def create_challenge(
    database: Database, storage: Storage, owner: User, new: NewChallenge, material: Material
) -> Challenge:
    """Makes a challenge: draws the parts, stores the truth, writes a sample run, and submits the baselines.

    Raises:
        RefusalError, MisuseError: When something about it will not do.
    """
    slug = clean_slug(new.slug)
    benchmark = BENCHMARKS[new.benchmark]
    _refuse_impossible(new)
    with database.read() as session:
        if session.scalars(select(Challenge.id).where(Challenge.slug == slug)).first():
            raise _taken(slug)
        before = stage_before(session, owner, new.stage_of, benchmark.name) if new.stage_of else None
    entry, top = checked_entry(new.stage_entry, new.stage_top)
    truth, labels, *_ = read_truth(benchmark.name, truth_files(material.folder))
    units_public = _draw_parts(new, truth, material.folder)
    challenge = Challenge(
        slug=slug,
        title=clean_text(new.title, 200, "title") or slug,
        summary=clean_text(new.summary, 500, "summary"),
        description=clean_text(new.description, 20_000, "description"),
        rules=clean_text(new.rules, 20_000, "rules"),
        benchmark=benchmark.name,
        benchmark_version=benchmark.version,
        metric=board_metric(benchmark.name, new.metric or None).name,
        simulated=material.simulated,
        owner_id=owner.id,
        published_at=utc_now() if new.published else None,
        truth_path=_store_folder(storage, material.folder, "truth"),
        truth_sha256=digest_folder(material.folder),
        items=len(truth.items),
        units=len(set(truth.units)),
        units_public=units_public,
        classes=len(labels),
        needs_run_without_external=new.needs_run_without_external,
        ladder=new.ladder,
        access=_stage_access(before, new.access) if before else known_access(new.access),
    )
    warnings = [] if before is None else _known_items(storage, before, truth.items)
    warnings += leaks_of(truth, [path for path, _ in material.downloads])
    try:
        with database.write() as session:
            _add(session, owner, challenge, new, warnings)
            if before is not None:
                session.add(LaterStage(challenge_id=challenge.id, first_id=before.id, entry=entry, top=top))
    except IntegrityError as error:
        raise _taken(slug) from error
    write_lists(database, storage, owner, challenge, truth.items, labels)
    for path, sentence in material.downloads:
        add_data_file(database, storage, owner, challenge, path, path.name, sentence)
    for name, path, about in material.baselines:
        upload = Upload(path, clean_filename(path.name), path.stat().st_size, sha256_of(path))
        add_baseline(database, storage, owner, challenge, name, upload, about)
    return challenge


def _refuse_impossible(new: NewChallenge) -> None:
    if new.starts_at >= new.end:
        raise RefusalError("The challenge would end before it begins.")
    if min(new.daily_limit, new.total_limit) < 1:
        raise RefusalError("Limits are whole numbers from 1 on.")


def _taken(slug: str) -> ConflictError:
    return ConflictError(f"There is a challenge called {slug!r} already.")


def _draw_parts(new: NewChallenge, truth: Truth, folder: Path) -> int:
    """Draws which units are public and notes it beside the truth; returns how many are: all of them without a share."""
    if new.public_share is None:
        return len(set(truth.units))
    parts = draw_parts(truth.units, public=new.public_share, seed=new.seed)
    parts.write_csv(folder / PARTS_FILE)
    return int((parts["part"] == PUBLIC).sum())


def _add(session: Session, owner: User, challenge: Challenge, new: NewChallenge, warnings: Sequence[str]) -> None:
    """Adds the challenge with its phase, and notes who made it and what gives labels away."""
    session.add(challenge)
    session.flush()
    phase = Phase(
        challenge_id=challenge.id,
        name="main",
        starts_at=new.starts_at,
        ends_at=new.end,
        daily_limit=new.daily_limit,
        total_limit=new.total_limit,
    )
    session.add(phase)
    session.flush()
    confirm_phase(session, phase, utc_now())
    note_insider(session, challenge.id, owner.id)
    slug, benchmark = challenge.slug, challenge.benchmark
    audit.note(session, owner, "challenge.create", challenge=challenge, subject=slug, benchmark=benchmark)
    for sentence in warnings:
        audit.note(session, owner, LEAK_WARNING, challenge=challenge, subject=slug, sentence=sentence)


def _stage_access(before: Challenge, wanted: str) -> Access:
    """Who may see a later stage: its teams are those that came through, and a private line of stages stays private."""
    return "private" if "private" in (before.access, known_access(wanted)) else "invitation"


def _known_items(storage: Storage, before: Challenge, items: Sequence[str]) -> list[str]:
    """A warning about items that were in the stage before, whose labels may be known by now; none without them."""
    with scratch("truth") as folder:
        earlier, *_ = read_truth(
            before.versioned_benchmark, truth_files(storage.fetch_folder(before.truth_path, folder))
        )
    again = set(items) & set(earlier.items)
    if not again:
        return []
    return [f"{len(again)} of {len(items)} items are those of {before.slug}, whose labels may be known"]


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
        old, *_ = read_truth(challenge.versioned_benchmark, files)
        _keep(challenge.versioned_benchmark, folder, truth, classes, media)
        files = truth_files(folder)
        new, labels, *_ = read_truth(challenge.versioned_benchmark, files)
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
        truth, *_ = read_truth(challenge.versioned_benchmark, files)
    return [sentence for sentence in leaks_of(truth, [file]) if sentence.startswith(file.name)]


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
