"""The board as a file, for everybody who may see its page: CSV that is safe in a spreadsheet, and JSON."""

from __future__ import annotations

import csv
import io
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from fieldmark.errors import MisuseError
from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.boards import visibility
from fieldmark_challenge.boards.leaderboard import Board
from fieldmark_challenge.boards.pages import MetricWanted, PartWanted, sight_of
from fieldmark_challenge.challenges.exports import safe_cell
from fieldmark_challenge.web.context import ViewerOf
from fieldmark_challenge.web.dependencies import DatabaseOf

router = APIRouter()
COLUMNS = (
    *("place", "rank_low", "rank_high", "team", "title", "accepted", "external_data", "unranked"),
    *("metric", "value", "low", "high", "not_separable_from_best", "behind_best", "p_adjusted"),
    *("external_declared", "external_found"),
)


@router.get("/c/{slug}/board.csv")
def board_csv(
    slug: str, database: DatabaseOf, viewer: ViewerOf, part: PartWanted = None, metric: MetricWanted = None
) -> Response:
    """All entries of the board, one line each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    shown = _board(slug, database, viewer, part, metric)
    writer.writerows(_line(entry, shown["metric"]) for entry in shown["entries"])
    for one in shown["set_apart"]:
        apart = {"team": one["team"], "title": one["title"], "unranked": f"disqualified: {one['reason']}"}
        writer.writerow([safe_cell(apart.get(name)) for name in COLUMNS])
    return _attached(text.getvalue().encode(), f"{slug}-board.csv", "text/csv; charset=utf-8")


@router.get("/c/{slug}/board.json")
def board_json(
    slug: str, database: DatabaseOf, viewer: ViewerOf, part: PartWanted = None, metric: MetricWanted = None
) -> Response:
    """All entries of the board, with the shape that the API gives them."""
    answer = JSONResponse(_board(slug, database, viewer, part, metric))
    answer.headers["content-disposition"] = f'attachment; filename="{slug}-board.json"'
    return answer


def _board(slug: str, database: Any, viewer: Any, part: str | None, metric: str | None) -> dict[str, Any]:
    with database.read() as session:
        sight = sight_of(session, viewer, slug, part)
        try:
            shown: Board = visibility.board_of(session, sight, metric)
        except MisuseError as error:
            raise NotThereError from error
        return shown.to_json()


def _line(entry: dict[str, Any], metric: str) -> list[object]:
    behind = entry.get("behind_best") or {}
    values = {**entry, "metric": metric, "behind_best": behind.get("value"), "p_adjusted": behind.get("p_adjusted")}
    return [safe_cell(values.get(name)) for name in COLUMNS]


def _attached(data: bytes, name: str, kind: str) -> Response:
    return Response(data, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
