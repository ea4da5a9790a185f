"""Scores as the platform keeps them: one scorecard per submission and part, with its pseudo-values."""

from __future__ import annotations

import datetime as dt
import io
import math
from collections.abc import Sequence
from dataclasses import replace

import polars as pl
from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, undefer

from fieldmark.benchmarks.declarations import Metric
from fieldmark.challenge.boards.ladder import Released, release
from fieldmark.challenge.boards.leaderboard import deciding_metric
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.schema import Challenge, PartScore, Submission
from fieldmark.challenge.scoring.score_parts import PRIVATE, PUBLIC
from fieldmark.challenge.scoring.score_receipts import new_key
from fieldmark.foundation.names import column_of
from fieldmark.foundation.parquet import read_frame
from fieldmark.scoring import Score, Scorecard, scores_of

AT_ONCE = 500
RECEIPT_SALT = "receipt-salt"


def salt_secret(database: Database) -> bytes:
    """The secret of a platform from which the salts of its challenges are made."""
    return database.setting(RECEIPT_SALT, new_key)


def to_row(submission_id: int, part: str, revision: int, card: Scorecard, metric: str) -> PartScore:
    """A scorecard as a row; the metric that decides must be a number (checked by the worker)."""
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


def own_cards(session: Session, challenge: Challenge, submission: Submission, *, manages: bool) -> dict[str, Scorecard]:
    """The scorecards of a submission that its team (or somebody who runs the challenge) may see.

    In a challenge with a ladder a team sees on the public part what the ladder releases, and nothing else, until the
    private scores are revealed.
    """
    cards = cards_of(session, submission, parts_visible(challenge, manages))
    if challenge.ladder and not manages and not challenge.revealed_at and PUBLIC in cards:
        cards[PUBLIC] = _as_released(
            cards[PUBLIC], deciding_metric(challenge), released(session, challenge, submission)
        )
    return cards


def own_metrics(
    session: Session, challenge: Challenge, runs: Sequence[Submission], *, manages: bool
) -> dict[int, dict[str, dict[str, Score]]]:
    """The scores of many submissions by their number, part and metric, under the rules of `own_cards`.

    Pseudo-values stay in the database.
    """
    scores_by_run: dict[int, dict[str, dict[str, Score]]] = {run.id: {} for run in runs}
    parts = parts_visible(challenge, manages)
    numbers = list(scores_by_run)
    for start in range(0, len(numbers), AT_ONCE):
        own = PartScore.submission_id.in_(numbers[start : start + AT_ONCE])
        for row in session.scalars(select(PartScore).where(own, PartScore.part.in_(parts))):
            scores_by_run[row.submission_id][row.part] = scores_of(row.card["metrics"])
    if challenge.ladder and not manages and not challenge.revealed_at:
        for team_id in {run.team_id for run in runs}:
            for run, shown in released_to(session, challenge, team_id):
                if PUBLIC in scores_by_run.get(run.id, {}):
                    scores_by_run[run.id][PUBLIC] = _released_metrics(deciding_metric(challenge), shown)
    return scores_by_run


def released(session: Session, challenge: Challenge, submission: Submission) -> Released:
    """What the ladder tells the team of a submission about it."""
    told = released_to(session, challenge, submission.team_id)
    return next(shown for run, shown in told if run.id == submission.id)


def released_to(session: Session, challenge: Challenge, team_id: int) -> list[tuple[Submission, Released]]:
    """What the ladder tells a team about each of its scored runs, in the order of acceptance."""
    of_team = challenge_scores(session, challenge, PUBLIC, team_id=team_id)
    told = release([card for _, card in of_team], deciding_metric(challenge))
    return [(run, shown) for (run, _), shown in zip(of_team, told, strict=True)]


def _as_released(card: Scorecard, metric: Metric, shown: Released) -> Scorecard:
    """The public scorecard with the metric that decides as the ladder releases it, and nothing more."""
    metrics = _released_metrics(metric, shown)
    return replace(card, metrics=metrics, groups={}, confusion=None, pseudo={}, unit_ids=())


def _released_metrics(metric: Metric, shown: Released) -> dict[str, Score]:
    value = math.nan if shown.value is None else shown.value
    score = Score(value, None, None, "none", "as the ladder releases it: only clear improvements show")
    return {metric.name: score}
