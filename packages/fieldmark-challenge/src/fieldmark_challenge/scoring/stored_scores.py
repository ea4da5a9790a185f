"""Scores as the platform keeps them: one scorecard per submission and part, with its pseudo-values."""

from __future__ import annotations

import datetime as dt
import io
from dataclasses import replace

import polars as pl
from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, undefer

from fieldmark.scoring import Scorecard
from fieldmark.scoring.receipts import new_key
from fieldmark.scoring.score_parts import PRIVATE, PUBLIC
from fieldmark.storage.parquet import read_frame
from fieldmark.tables.text_columns import column_of
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, PartScore, Submission

RECEIPT_SALT = "receipt-salt"


def salt_secret(database: Database) -> bytes:
    """The secret of a platform from which the salts of its challenges are made."""
    return database.setting(RECEIPT_SALT, new_key)


def to_row(submission_id: int, part: str, revision: int, card: Scorecard, metric: str) -> PartScore:
    """A scorecard as a row; the primary metric must be a number (checked by the worker)."""
    units = io.BytesIO()
    pl.DataFrame({"unit": column_of(card.unit_ids), **card.pseudo}).write_parquet(units, compression="zstd")
    return PartScore(
        submission_id=submission_id,
        part=part,
        revision=revision,
        value=deciding_value(card, metric),
        card=card.to_json(),
        unit_values=units.getvalue(),
    )


def deciding_value(card: Scorecard, metric: str) -> float:
    """The score that decides on the board."""
    return card.metrics[metric].value


def to_scorecard(row: PartScore) -> Scorecard:
    """The scorecard of a row, pseudo-values included."""
    return Scorecard.from_data(row.card, read_frame(row.unit_values, "stored scores"))


def parts_visible(challenge: Challenge, manages: bool) -> tuple[str, ...]:
    """The parts whose scores may be shown: the private one to organizers, and to all once it is revealed."""
    return (PUBLIC, PRIVATE) if manages or challenge.revealed_at else (PUBLIC,)


def challenge_scores(
    session: Session,
    challenge: Challenge,
    part: str,
    *,
    until: dt.datetime | None = None,
    team_id: int | None = None,
) -> list[tuple[Submission, Scorecard]]:
    """All scores of a part in the order in which the runs were accepted, baselines included.

    Args:
        session: A session.
        challenge: The challenge.
        part: public or private.
        until: Leaves out what was accepted later (`challenge.frozen_at`); baselines always stay.
        team_id: Of one team only.
    """
    query = (
        select(Submission, PartScore)
        .join(PartScore, PartScore.submission_id == Submission.id)
        .where(Submission.challenge_id == challenge.id, PartScore.part == part)
        .where(Submission.state.in_(("scored", "queued", "running")))  # being scored again: the old score stands
        .options(joinedload(Submission.team), undefer(PartScore.unit_values))
        .order_by(Submission.accepted_at, Submission.id)
    )
    if team_id is not None:
        query = query.where(Submission.team_id == team_id)
    rows = [(submission, score) for submission, score in session.execute(query)]
    return [
        (submission, to_scorecard(score))
        for submission, score in rows
        if until is None or submission.accepted_at <= until or submission.team.kind == "baseline"
    ]


def cards_of(session: Session, submission: Submission, parts: tuple[str, ...]) -> dict[str, Scorecard]:
    """The scorecards of one submission, for the parts that may be shown; digests of the truth stay on the server."""
    query = select(PartScore).where(PartScore.submission_id == submission.id, PartScore.part.in_(parts))
    rows = session.scalars(query.options(undefer(PartScore.unit_values)))
    return {row.part: replace(to_scorecard(row), digests={}) for row in rows}
