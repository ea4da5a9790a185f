"""What participants download: the lists of items and labels, an example of a run, and further files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from sqlalchemy import select

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Task
from fieldmark.scoring.score_parts import read_truth, truth_files
from fieldmark.storage.files import sha256_of
from fieldmark.tables.labels import Labels
from fieldmark_challenge.challenges.label_leaks import order_key, secret_order
from fieldmark_challenge.people.names import clean_filename, clean_text
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, DataFile, User
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import Storage, new_name

ITEMS_FILE, LABELS_FILE = "items.csv", "labels.csv"


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


def write_lists(
    database: Database, storage: Storage, owner: User, challenge: Challenge, items: Sequence[str], labels: Labels
) -> None:
    """Items in their secret order, labels by name: neither says anything about the truth."""
    task = BENCHMARKS[challenge.versioned_benchmark].task
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
        truth, labels, *_ = read_truth(challenge.versioned_benchmark, files)
    write_lists(database, storage, actor, challenge, truth.items, labels)
