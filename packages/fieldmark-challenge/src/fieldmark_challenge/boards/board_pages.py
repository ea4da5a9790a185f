"""A board in pages of a hundred rows."""

from __future__ import annotations

from dataclasses import dataclass

from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.boards.leaderboard import Board, BoardRow

ROWS = 100


@dataclass(frozen=True)
class BoardPage:
    """Some rows of a board.

    Args:
        rows: The rows.
        number: Which page, from 1.
        last: How many pages there are.
        total: How many rows there are in all.
        own: The page on which one's own team stands; None where it stands on none.
    """

    rows: tuple[BoardRow, ...]
    number: int
    last: int
    total: int
    own: int | None = None

    @classmethod
    def cut(cls, board: Board, number: int, team: str | None) -> BoardPage:
        """A page of a board.

        Raises:
            NotThereError: When it has fewer pages.
        """
        last = max(1, -(-len(board.rows) // ROWS))
        if not 1 <= number <= last:
            raise NotThereError
        own = next((place for place, row in enumerate(board.rows) if team and row.entrant.team == team), None)
        rows = board.rows[(number - 1) * ROWS : number * ROWS]
        return cls(rows, number, last, len(board.rows), None if own is None else own // ROWS + 1)

    @property
    def near(self) -> list[int | None]:
        """The pages to link to: the first, the last, those around this one; None where some are left out.

        >>> BoardPage((), 5, 9, 850).near
        [1, None, 3, 4, 5, 6, 7, None, 9]
        """
        wanted = sorted({1, self.last, *range(max(1, self.number - 2), min(self.last, self.number + 2) + 1)})
        linked: list[int | None] = []
        for before, number in zip([0, *wanted], wanted, strict=False):
            linked += [None, number] if number > before + 1 else [number]
        return linked

    def first_of(self, number: int) -> int:
        """The first row of a page, counted from 1."""
        return (number - 1) * ROWS + 1

    def last_of(self, number: int) -> int:
        """The last row of a page."""
        return min(number * ROWS, self.total)
