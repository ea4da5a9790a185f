"""What organizers take home: every submission with its scores, as CSV that is safe in a spreadsheet, and as JSON."""

from __future__ import annotations

import csv
import io
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from fieldmark_challenge.challenges.finals import final_submissions
from fieldmark_challenge.records.schema import Challenge, PartScore, Submission

# What makes a spreadsheet take text for a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


def safe_cell(value: object) -> object:
    """A cell that no spreadsheet runs: text that could be a formula gets an apostrophe in front, numbers stay.

    >>> safe_cell("=HYPERLINK(...)"), safe_cell(" @SUM(A1)"), safe_cell(-0.5), safe_cell("plain")
    ("'=HYPERLINK(...)", "' @SUM(A1)", -0.5, 'plain')
    """
    if not isinstance(value, str):
        return value
    return f"'{value}" if value.startswith(FORMULA_STARTS) or value.lstrip().startswith(FORMULA_STARTS) else value


def export_rows(session: Session, challenge: Challenge) -> list[dict[str, Any]]:
    """Every submission of a challenge with all its scores, in the order of acceptance."""
    query = (
        select(Submission)
        .where(Submission.challenge_id == challenge.id)
        .options(joinedload(Submission.team), joinedload(Submission.user), joinedload(Submission.phase))
        .order_by(Submission.accepted_at, Submission.id)
    )
    scores: dict[int, dict[str, PartScore]] = {}
    for row in session.scalars(select(PartScore).join(Submission).where(Submission.challenge_id == challenge.id)):
        scores.setdefault(row.submission_id, {})[row.part] = row
    finals = {final.submission.id: final for final in final_submissions(session, challenge)}
    rows = []
    for submission in session.scalars(query):
        final = finals.get(submission.id)
        rows.append(
            {
                "submission": submission.id,
                "team": submission.team.name,
                "kind": submission.team.kind,
                "handed_in_by": submission.user.name,
                "phase": submission.phase.name if submission.phase else "",
                "accepted_at": submission.accepted_at.isoformat(),
                "state": submission.state,
                "reason": submission.reason,
                "counted": submission.counted,
                "final": final is not None,
                "eligible": final.eligible if final else None,
                "standing": submission.standing or submission.team.standing,
                "standing_reason": submission.standing_reason or submission.team.standing_reason,
                "title": submission.title,
                "method": submission.method,
                "external_data": submission.external_data,
                "external_note": submission.external_note,
                "external_found": submission.external_found,
                "filename": submission.filename,
                "sha256": submission.sha256,
                "scores": {part: row.card["metrics"] for part, row in sorted(scores.get(submission.id, {}).items())},
            }
        )
    return rows


def to_csv(rows: list[dict[str, Any]]) -> str:
    """The rows as CSV, one column per part, metric and bound."""
    flat = []
    for row in rows:
        cells = {key: value for key, value in row.items() if key != "scores"}
        for part, metrics in row["scores"].items():
            for name, score in metrics.items():
                cells |= {f"{part}_{name}": score["value"]}
                cells |= {f"{part}_{name}_{bound}": score[bound] for bound in ("low", "high")}
        flat.append(cells)
    columns = list(dict.fromkeys(column for cells in flat for column in cells))
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\r\n")
    writer.writerow(columns)
    for cells in flat:
        writer.writerow([safe_cell(cells.get(column)) for column in columns])
    return sink.getvalue()
