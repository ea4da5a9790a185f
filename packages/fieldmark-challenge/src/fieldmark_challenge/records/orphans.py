"""Stored files that nothing refers to: a server that is ended between storing a file and noting it leaves one."""

from __future__ import annotations

import datetime as dt
import logging

from sqlalchemy import select

from fieldmark_challenge.records.code_schema import CodeTask, Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import DataFile, Submission, utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.records.upload_schema import UploadPart

log = logging.getLogger(__name__)

# What is younger may be on its way into the database.
YOUNG = dt.timedelta(hours=6)
COLLECTED = ("runs/", "data/", "code/", "inputs/", "parts/")  # old truths are kept on purpose


def collect_orphans(database: Database, storage: Storage, *, young: dt.timedelta = YOUNG) -> list[str]:
    """Removes stored runs, programs, inputs and downloads that no row refers to.

    Args:
        database: What refers to files.
        storage: Where they are.
        young: How old a file must be.

    Returns:
        The paths that were removed.
    """
    stored = storage.ages(COLLECTED)
    with database.read() as session:
        columns = [
            Submission.path,
            UploadPart.path,
            DataFile.path,
            Program.path,
            CodeTask.inputs_path,
            CodeTask.sample_path,
        ]
        used = {path for column in columns for path in session.scalars(select(column))}
    old = utc_now() - young
    orphans = sorted(path for path, changed in stored.items() if path not in used and changed < old)
    for path in orphans:
        storage.delete(path)
    if orphans:
        log.info("removed %d stored files that nothing refers to", len(orphans))
    return orphans
