"""The runs that count in the end: those a team chose, or else its best public ones."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from fieldmark.scoring.score_parts import PUBLIC
from fieldmark_challenge.challenges.metrics import deciding_metric
from fieldmark_challenge.records.schema import Challenge, PartScore, Submission, Team

NO_RUN_WITHOUT = "the rules ask for at least one run without external data"


@dataclass(frozen=True)
class Final:
    """A run of the final ranking.

    Args:
        submission: The run.
        chosen: Whether its team chose it, or it was taken as one of its best public ones.
        eligible: Whether the team keeps to the rules, so that the run has a place.
        reason: Why not.
    """

    submission: Submission
    chosen: bool
    eligible: bool
    reason: str = ""


def final_submissions(session: Session, challenge: Challenge) -> list[Final]:
    """The final runs of all teams (baselines are in no ranking), by team and acceptance."""
    query = (
        select(Submission, PartScore.value)
        .join(PartScore, PartScore.submission_id == Submission.id)
        .join(Team, Team.id == Submission.team_id)
        .where(Submission.challenge_id == challenge.id, PartScore.part == PUBLIC, Team.kind == "participants")
        .where(Submission.state.in_(("scored", "queued", "running")))
        .options(joinedload(Submission.team))
        .order_by(Submission.team_id, Submission.accepted_at, Submission.id)
    )
    by_team: dict[int, list[tuple[Submission, float]]] = {}
    for submission, value in session.execute(query):
        by_team.setdefault(submission.team_id, []).append((submission, value))
    better = deciding_metric(challenge).higher_is_better
    finals: list[Final] = []
    for everything in by_team.values():
        # What was taken out before the results are as if it had never been submitted; what is taken out afterwards
        # leaves its place empty: no other run, which was in no ranking, moves up.
        rows = [row for row in everything if not _taken_out(row[0], challenge, before_reveal=True)]
        chosen = [submission for submission, _ in rows if submission.selected]
        # Of equal runs the earlier one; `sorted` keeps the order of acceptance.
        best = sorted(rows, key=lambda row: -row[1] if better else row[1])[: challenge.max_final]
        taken = chosen or sorted((submission for submission, _ in best), key=lambda s: (s.accepted_at, s.id))
        without = any(not submission.external_data for submission, _ in rows)
        eligible = without or not challenge.needs_run_without_external
        reason = "" if eligible else NO_RUN_WITHOUT
        left = [submission for submission in taken if not _taken_out(submission, challenge)]
        finals += [Final(submission, bool(chosen), eligible, reason) for submission in left]
    return finals


def _taken_out(submission: Submission, challenge: Challenge, *, before_reveal: bool = False) -> bool:
    """Whether a run, or its team, is out of the ranking (and was before the results were out)."""
    revealed = challenge.revealed_at
    for one in (submission, submission.team):
        late = before_reveal and revealed is not None and one.standing_at is not None and one.standing_at > revealed
        if one.standing and not late:
            return True
    return False
