"""Boards of a challenge as somebody may see them.

What is shown depends on who asks: private scores are for organizers until they are revealed, a frozen board stands
still for participants, a Ladder lets only clear improvements through, and runs that are not on the board belong to
their team. All of that is decided here, for the pages and for the API.

Scorecards are read without their pseudo-values until it is known which of them are compared; boards and entries are
kept in memory under everything they depend on: many visitors cost one computation, and nobody sees an old board.
"""

from __future__ import annotations

import datetime as dt
import io
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import polars as pl
from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark.challenge.boards.finals import final_submissions
from fieldmark.challenge.boards.ladder import released_entrants
from fieldmark.challenge.boards.leaderboard import (
    BASELINE,
    Board,
    Entrant,
    best_of_teams,
    board_metric,
    make_board,
    upward,
)
from fieldmark.challenge.records.schema import Challenge, PartScore, Submission, Team
from fieldmark.challenge.refusals import NotThereError
from fieldmark.challenge.scoring.score_parts import PRIVATE, PUBLIC
from fieldmark.challenge.scoring.stored_scores import cards_of, parts_visible
from fieldmark.scoring import Scorecard

KEPT_BOARDS, KEPT_LISTS = 64, 8
NO_UNITS = pl.DataFrame({"unit": []}, schema={"unit": pl.String})
T = TypeVar("T")


@dataclass(frozen=True)
class Sight:
    """Who looks at which part of a challenge.

    Args:
        challenge: The challenge.
        part: public or private.
        manages: Whether they run it.
        team: Their team, if they have one.
    """

    challenge: Challenge
    part: str
    manages: bool
    team: Team | None = None

    @property
    def until(self) -> dt.datetime | None:
        """What was accepted later is not on the board; organizers see it move on."""
        return None if self.manages else self.challenge.frozen_at

    @property
    def by_ladder(self) -> bool:
        """Whether only what the Ladder releases may be shown."""
        hidden = not self.challenge.revealed_at and not self.manages
        return self.challenge.ladder and self.part == PUBLIC and hidden

    @property
    def whole(self) -> bool:
        """Whether every scored run may be shown, not only those on the board."""
        return self.manages or self.challenge.revealed_at is not None


def look(challenge: Challenge, part: str | None, *, manages: bool, team: Team | None = None) -> Sight:
    """The part somebody asked for, if they may see it; without a wish, the one that counts now.

    Raises:
        NotThereError: When the part is not for them, or does not exist.
    """
    there = (PUBLIC,) if challenge.units_public == challenge.units else (PUBLIC, PRIVATE)
    visible = [one for one in parts_visible(challenge, manages) if one in there]
    if part is None:
        part = PRIVATE if challenge.revealed_at and PRIVATE in visible else PUBLIC
    if part not in visible:
        raise NotThereError
    return Sight(challenge, part, manages, team)


def board_of(session: Session, sight: Sight, metric: str | None = None) -> Board:
    """The board: one entry per team, and the baselines.

    The public board takes a team's best run; the private one the best of those that count in the end.
    """
    challenge = sight.challenge
    chosen = board_metric(challenge.benchmark, None if sight.by_ladder else metric)
    finals = None
    if sight.part == PRIVATE:
        finals = {str(final.submission.id): final.reason for final in final_submissions(session, challenge)}
    state = _state(session, sight)
    key = (challenge.id, sight.part, sight.by_ladder, chosen.name, state, tuple(sorted((finals or {}).items())))

    def make() -> Board:
        entered = _entered(session, sight, state)
        if finals is not None:
            competing = [replace(one, unranked=finals[one.id]) for one in entered if one.id in finals]
            entered = [*competing, *(one for one in entered if one.unranked == BASELINE)]
        if sight.by_ladder:
            shown = released_entrants(_with_units(session, sight, entered, chosen.name), chosen)
        else:
            shown = _with_units(session, sight, best_of_teams(entered, chosen), chosen.name)
        return make_board(challenge.benchmark, sight.part, shown, metric=chosen.name)

    return _BOARDS.get(key, make)


def entries_of(session: Session, sight: Sight) -> list[Entrant]:
    """The entries somebody may look at one by one: those on the board, their own, and in the end all of them.

    They come without pseudo-values, best first.
    """
    metric = board_metric(sight.challenge.benchmark)
    board = [row.entrant for row in board_of(session, sight).rows]
    if sight.by_ladder:
        return board
    shown = {one.id for one in board}
    own = sight.team.name if sight.team is not None else None
    entered = _entered(session, sight, _state(session, sight))
    visible = [one for one in entered if sight.whole or one.id in shown or one.team == own]
    return sorted(visible, key=lambda one: (-upward(one, metric), one.accepted))


def entry_of(session: Session, sight: Sight, entry_id: str) -> Entrant:
    """One entry with its pseudo-values.

    Raises:
        NotThereError: When there is none that they may see.
    """
    entrant = next((one for one in entries_of(session, sight) if one.id == entry_id), None)
    if entrant is None:
        raise NotThereError
    return entrant if sight.by_ladder else _with_units(session, sight, [entrant])[0]


def submission_of(session: Session, entrant: Entrant) -> Submission:
    """The submission behind an entry."""
    return session.get_one(Submission, int(entrant.id))


def baseline_cards(session: Session, challenge: Challenge) -> list[Scorecard]:
    """The scorecards of the two best baselines on the part with the most units: entries will be nearer to those."""
    part = PRIVATE if challenge.units - challenge.units_public > challenge.units_public else PUBLIC
    query = (
        select(Submission)
        .join(Team, Team.id == Submission.team_id)
        .where(Submission.challenge_id == challenge.id, Team.kind == "baseline", Submission.state == "scored")
    )
    cards = [cards_of(session, submission, (part,)).get(part) for submission in session.scalars(query)]
    metric = board_metric(challenge.benchmark)
    scored = [card for card in cards if card is not None and not math.isnan(card.metrics[metric.name].value)]
    return sorted(scored, key=lambda card: card.metrics[metric.name].value, reverse=metric.higher_is_better)[:2]


def _state(session: Session, sight: Sight) -> tuple[Hashable, ...]:
    """All that a board depends on: which runs, of whom, under which names, scored when. Read without the scores."""
    query = (
        select(
            Submission.id,
            Submission.accepted_at,
            Submission.title,
            Submission.filename,
            Submission.external_data,
            Team.name,
            Team.kind,
            PartScore.scored_at,
        )
        .join(PartScore, PartScore.submission_id == Submission.id)
        .join(Team, Team.id == Submission.team_id)
        .where(Submission.challenge_id == sight.challenge.id, PartScore.part == sight.part)
        .where(Submission.state.in_(("scored", "queued", "running")))  # being scored again: the old score stands
        .order_by(Submission.accepted_at, Submission.id)
    )
    until = sight.until
    return tuple(
        tuple(row)
        for row in session.execute(query)
        if until is None or row.accepted_at <= until or row.kind == "baseline"
    )


def _entered(session: Session, sight: Sight, state: tuple[Any, ...]) -> list[Entrant]:
    """Every scored run that the board may draw on, in the order of acceptance, without pseudo-values."""

    def make() -> list[Entrant]:
        query = select(PartScore.submission_id, PartScore.card).where(
            PartScore.part == sight.part, PartScore.submission_id.in_([row[0] for row in state])
        )
        cards = {row.submission_id: row.card for row in session.execute(query)}
        return [
            Entrant(
                id=str(number),
                team=team,
                title=title or filename,
                card=Scorecard.from_data(cards[number], NO_UNITS),
                accepted=accepted,
                external_data=external,
                unranked=BASELINE if kind == "baseline" else "",
            )
            for number, accepted, title, filename, external, team, kind, _ in state
        ]

    return _LISTS.get((sight.part, state), make)


def _with_units(
    session: Session, sight: Sight, entrants: Sequence[Entrant], metric: str | None = None
) -> list[Entrant]:
    """The same entries with their pseudo-values, of one metric or of all.

    Entries that were scored on the same units share the list of them: it is the largest part of a scorecard.
    """
    query = select(PartScore.submission_id, PartScore.unit_values).where(
        PartScore.part == sight.part, PartScore.submission_id.in_([int(one.id) for one in entrants])
    )
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    values_of: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {}
    for number, values in session.execute(query):
        table = pl.read_parquet(io.BytesIO(values))
        units = tuple(table["unit"])
        kept = [name for name in table.columns if name != "unit" and metric in (None, name)]
        pseudo = {name: table[name].to_numpy() for name in kept}
        values_of[str(number)] = (pseudo, shared.setdefault(units, units))
    return [
        replace(one, card=replace(one.card, pseudo=values_of[one.id][0], unit_ids=values_of[one.id][1]))
        for one in entrants
    ]


class _Kept:
    """What was asked for last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                kept: T = self._made[key]
                return kept
        made = make()
        with self._lock:
            self._made[key] = made
            while len(self._made) > self._most:
                self._made.popitem(last=False)
        return made


_BOARDS, _LISTS = _Kept(KEPT_BOARDS), _Kept(KEPT_LISTS)
