"""The scores of a submission as its own team may see them: with a ladder, only what it releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark.benchmarks.declarations import Metric
from fieldmark.scoring import Score, Scorecard, scores_of
from fieldmark.scoring.score_parts import PUBLIC
from fieldmark_challenge.boards.ladder import Released, release
from fieldmark_challenge.challenges.metrics import deciding_metric
from fieldmark_challenge.records.schema import Challenge, PartScore, Submission
from fieldmark_challenge.scoring.stored_scores import cards_of, challenge_scores, parts_visible

AT_ONCE = 500


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
    """The public scorecard with the primary metric as the ladder releases it, and nothing more."""
    metrics = _released_metrics(metric, shown)
    return replace(card, metrics=metrics, groups={}, confusion=None, pseudo={}, unit_ids=())


def _released_metrics(metric: Metric, shown: Released) -> dict[str, Score]:
    value = math.nan if shown.value is None else shown.value
    score = Score(value, None, None, "none", "by the ladder: only clear improvements show")
    return {metric.name: score}
