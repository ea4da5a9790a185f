"""Boards of a challenge as somebody may see them.

What is shown depends on who asks: private scores are for organizers until they are revealed, a frozen board stands
still for participants, a Ladder lets only clear improvements through, and runs that are not on the board belong to
their team. All of that is decided here, for the pages and for the API.

What was made is kept under the stamp of the challenge (`records.stamps`), which is another one after each change: many
visitors cost one computation, and nobody sees an old board.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark.benchmarks.declarations import Metric
from fieldmark.scoring import Scorecard
from fieldmark.scoring.score_parts import PRIVATE, PUBLIC
from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.boards.entries import entrants_of, released_by_ladder, scored_runs, set_apart_of, with_units
from fieldmark_challenge.boards.leaderboard import BASELINE, Board, Entrant, best_of_teams, make_board, upward
from fieldmark_challenge.boards.single_flight import Kept
from fieldmark_challenge.boards.standing_tables import TABLES
from fieldmark_challenge.challenges.finals import final_submissions
from fieldmark_challenge.challenges.metrics import board_metric, deciding_metric
from fieldmark_challenge.records.schema import Challenge, Submission, Team
from fieldmark_challenge.records.stamps import stamp_of
from fieldmark_challenge.scoring.stored_scores import cards_of, parts_visible

KEPT = 96
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
    chosen = deciding_metric(sight.challenge)
    if metric is not None and not sight.by_ladder:
        chosen = board_metric(sight.challenge.versioned_benchmark, metric)
    return _kept(session, sight, ("board", chosen.name), lambda: _make_board(session, sight, chosen))


def entries_of(session: Session, sight: Sight) -> list[Entrant]:
    """The entries somebody may look at one by one: those on the board, their own, and in the end all of them.

    They come without pseudo-values, best first.
    """
    own = sight.team.name if sight.team is not None else None

    def make() -> list[Entrant]:
        metric = deciding_metric(sight.challenge)
        board = [row.entrant for row in board_of(session, sight).rows]
        if sight.by_ladder:
            return board
        shown = {one.id for one in board}
        visible = [one for one in _entered(session, sight) if sight.whole or one.id in shown or one.team == own]
        return sorted(visible, key=lambda one: (-upward(one, metric), one.accepted))

    return _kept(session, sight, ("entries", own), make)


def entry_of(session: Session, sight: Sight, entry_id: str) -> Entrant:
    """One entry with its whole scorecard.

    Raises:
        NotThereError: When there is none that they may see.
    """
    entrant = next((one for one in entries_of(session, sight) if one.id == entry_id), None)
    if entrant is None:
        raise NotThereError
    if sight.by_ladder:
        return entrant
    return replace(entrant, card=cards_of(session, submission_of(session, entrant), (sight.part,))[sight.part])


def state_of(session: Session, sight: Sight) -> tuple[Hashable, ...] | None:
    """All that a board depends on, by which what is made of it may be kept; None where nothing may."""
    stamp = stamp_of(session, sight.challenge.id)
    return None if stamp is None else (stamp, sight.part, sight.by_ladder, sight.manages, sight.until, sight.whole)


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
        .where(Team.standing == "", Submission.standing == "")
    )
    cards = [cards_of(session, submission, (part,)).get(part) for submission in session.scalars(query)]
    metric = deciding_metric(challenge)
    scored = [card for card in cards if card is not None and not math.isnan(card.metrics[metric.name].value)]
    return sorted(scored, key=lambda card: card.metrics[metric.name].value, reverse=metric.higher_is_better)[:2]


def _kept(session: Session, sight: Sight, what: tuple[Hashable, ...], make: Callable[[], T]) -> T:
    state = state_of(session, sight)
    return make() if state is None else _MADE.get((what, state), make)


def _entered(session: Session, sight: Sight) -> list[Entrant]:
    """Every scored run that the board may draw on, in the order of acceptance, without pseudo-values."""

    def make() -> list[Entrant]:
        runs = scored_runs(session, sight.challenge.id, sight.part, sight.until)
        return entrants_of(session, sight.part, runs)

    return _kept(session, sight, ("entered",), make)


def _make_board(session: Session, sight: Sight, metric: Metric) -> Board:
    entered = _entered(session, sight)
    if sight.part == PRIVATE:
        finals = {str(final.submission.id): final.reason for final in final_submissions(session, sight.challenge)}
        competing = [replace(one, unranked=finals[one.id]) for one in entered if one.id in finals]
        entered = [*competing, *(one for one in entered if one.unranked == BASELINE)]
    if sight.by_ladder:
        shown = released_by_ladder(session, sight.part, entered, metric)
    else:
        shown = best_of_teams(entered, metric)

    def read_units(wanted: list[Entrant]) -> list[Entrant]:
        return with_units(session, sight.part, wanted, metric.name)

    table = TABLES.of((sight.challenge.id, sight.part, sight.by_ladder, sight.until, metric.name), metric)
    board = make_board(
        sight.challenge.versioned_benchmark, sight.part, shown, metric=metric.name, table=table, read_units=read_units
    )
    return replace(board, set_apart=set_apart_of(session, sight.challenge))


_MADE: Kept[Any] = Kept(KEPT)
