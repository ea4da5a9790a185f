"""The leaderboard: who is ahead, by how much, how sure that is, and who cannot be told apart from the best.

Entries are ranked by their scores and compared unit by unit through their pseudo-values, with the same functions as
`fieldmark compare`. An undefined score is never ranked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldmark.benchmarks.declarations import Metric
from fieldmark.scoring import Score, Scorecard, cautions
from fieldmark.scoring.scorecard import units_rested_on
from fieldmark.stats import comparison
from fieldmark.stats.comparison import Difference
from fieldmark.stats.pair_table import PairRanks
from fieldmark_challenge.boards.standing_tables import APART, StandingTable
from fieldmark_challenge.challenges.metrics import board_metric

if TYPE_CHECKING:
    pass

BASELINE = "baseline"


@dataclass(frozen=True)
class ExternalData:
    """Data beyond those of the challenge: whether they were used, which ones, and what the run or program shows."""

    used: bool = False
    note: str = ""
    found: str = ""

    @property
    def undeclared(self) -> str:
        """What was found and is not part of the declaration."""
        return "" if self.found in self.note else self.found


@dataclass(frozen=True)
class Entrant:
    """What stands on a board.

    Args:
        id: Of the submission.
        team: Who made it.
        title: What the team calls it.
        card: Its scorecard on the part that the board shows, with pseudo-values.
        accepted: When it was submitted.
        external: What was declared, and found, of data beyond those of the challenge.
        unranked: Why it is shown without a rank ("baseline", "no run without external data"); empty if it has one.
        version: Another one after the run was scored again.
    """

    id: str
    team: str
    title: str
    card: Scorecard
    accepted: datetime
    external: ExternalData = ExternalData()
    unranked: str = ""
    version: str = ""

    @property
    def external_data(self) -> bool:
        """Whether data beyond those of the challenge were used, as its team says."""
        return self.external.used

    @property
    def name(self) -> str:
        """How it is called beside others: by team and title, a baseline by its title."""
        if self.unranked == BASELINE:
            return self.title.removeprefix(f"{BASELINE}: ")
        return f"{self.team}: {self.title}"

    @property
    def by(self) -> str:
        """Who it stands for on a board: its team, or the baseline itself."""
        return self.name if self.unranked == BASELINE else self.team

    def score(self, metric: str) -> Score:
        """Its score by a metric; undefined where the scorecard has none."""
        return self.card.metrics.get(metric, Score(math.nan, None, None, "none", "not computed"))


@dataclass(frozen=True)
class BoardRow:
    """One entry on the board; without a place it is shown but not ranked.

    Args:
        entrant: The entry.
        score: By the metric of the board.
        place: By score alone, equal scores share it.
        rank_low, rank_high: The ranks it may really have, for all entries at once; None where that cannot be said.
        among_best: Whether no other entry is better at the 95 % level, for all entries at once.
        behind: The first entry minus this one; None for the first itself and where that cannot be said.
    """

    entrant: Entrant
    score: Score
    place: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    among_best: bool = False
    behind: Difference | None = None


@dataclass(frozen=True)
class SetApart:
    """A disqualified team, or a disqualified run of a team that is not: named below the ranking, without a score.

    Args:
        team: The team.
        title: Of the run; empty where the whole team is meant.
        reason: Why.
        since: Since when.
        late: Whether the results were out by then.
    """

    team: str
    title: str
    reason: str
    since: datetime
    late: bool

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        about = {"team": self.team, "title": self.title, "standing": "disqualified", "reason": self.reason}
        return {**about, "since": self.since.isoformat(), "after_reveal": self.late}


@dataclass(frozen=True)
class Board:
    """Entries by one metric, best first; and who was disqualified."""

    benchmark: str
    part: str
    metric: Metric
    units: int
    rows: tuple[BoardRow, ...]
    reason: str = ""
    set_apart: tuple[SetApart, ...] = ()

    @property
    def ranked(self) -> tuple[BoardRow, ...]:
        """The rows that have a place."""
        return tuple(row for row in self.rows if row.place is not None)

    @property
    def cautions(self) -> list[str]:
        """Why to be careful with the scores, each reason once."""
        return list(cautions({self.metric.name: row.score} for row in self.rows))

    @property
    def tied(self) -> int:
        """How many entries cannot be told apart from the best, itself included."""
        return sum(row.among_best for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """The board as plain data."""
        return {
            "benchmark": self.benchmark,
            "part": self.part,
            "metric": self.metric.name,
            "higher_is_better": self.metric.higher_is_better,
            "units": self.units,
            "entries": [_row_json(row) for row in self.rows],
            "set_apart": [one.to_json() for one in self.set_apart],
        }


@dataclass(frozen=True)
class Duel:
    """Two entries compared.

    Args:
        first, second: The entries.
        metric: What they are compared by.
        difference: First minus second, with its paired interval; None with the reason where that cannot be said.
        ahead: On how many units the first is better, on how many the second, on how many they are equal; it says
            something of shares of items, where a unit speaks for itself.
        others: The same difference by every other metric that both have.
    """

    first: Entrant
    second: Entrant
    metric: Metric
    difference: Difference | None
    ahead: tuple[int, int, int]
    others: dict[str, Difference]
    reason: str = ""

    @property
    def separable(self) -> bool:
        """Whether one of them is better at the 95 % level, for this pair alone."""
        return self.difference is not None and self.difference.p_value < 0.05

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        both = {"first": self.first, "second": self.second}
        return {
            "metric": self.metric.name,
            **{
                side: {"id": one.id, "team": one.team, "title": one.title, **_score_json(one.score(self.metric.name))}
                for side, one in both.items()
            },
            "difference": None if self.difference is None else self.difference.to_json(),
            "separable": self.separable,
            "units": dict(zip(("first_better", "second_better", "equal"), self.ahead, strict=True)),
            "others": {name: difference.to_json() for name, difference in self.others.items()},
            **({"reason": self.reason} if self.reason else {}),
        }


def best_of_teams(entrants: Iterable[Entrant], metric: Metric) -> list[Entrant]:
    """The best entry of each team, of equal ones the earlier; what is shown unranked is kept as it is.

    Entries whose score is undefined give way to any other.
    """
    kept: dict[str, Entrant] = {}
    apart: list[Entrant] = []
    for entrant in sorted(entrants, key=lambda one: one.accepted):
        if entrant.unranked == BASELINE:
            apart.append(entrant)
            continue
        held = kept.get(entrant.team)
        if held is None or upward(entrant, metric) > upward(held, metric):
            kept[entrant.team] = entrant
    return [*kept.values(), *apart]


def make_board(
    benchmark: str,
    part: str,
    entrants: Sequence[Entrant],
    *,
    metric: str | None = None,
    table: StandingTable | None = None,
    read_units: Callable[[list[Entrant]], list[Entrant]] = list,
) -> Board:
    """Ranks entries.

    Args:
        benchmark: What they answer.
        part: The part of the truth their scorecards are about.
        entrants: The entries, one per team as a rule (`best_of_teams`).
        metric: By which metric; the one that decides if not given.
        table: What is known of the pairs of an earlier board.
        read_units: Gives entries their pseudo-values, where they have none yet.
    """
    chosen = board_metric(benchmark, metric)
    order = sorted(entrants, key=lambda one: (-upward(one, chosen), one.accepted))
    competing = [one for one in order if not one.unranked and not math.isnan(one.score(chosen.name).value)]
    rows = {one.id: BoardRow(one, one.score(chosen.name)) for one in order}
    ranked = (table or StandingTable.empty(chosen)).rank(competing, read_units) if competing else ""
    if isinstance(ranked, str):
        places: dict[float, int] = {}
        for place, one in enumerate(competing, 1):
            value = one.score(chosen.name).value
            rows[one.id] = BoardRow(one, one.score(chosen.name), place=places.setdefault(value, place))
    else:
        rows |= {row.entrant.id: row for row in _standings(competing, ranked, chosen)}
    units = order[0].card.units if order else 0
    reason = ranked if isinstance(ranked, str) else ""
    return Board(benchmark.partition("@")[0], part, chosen, units, tuple(rows[one.id] for one in order), reason)


def duel(benchmark: str, first: Entrant, second: Entrant, *, metric: str | None = None) -> Duel:
    """Compares two entries on the units they share, paired."""
    chosen = board_metric(benchmark, metric)
    reason = _incomparable([first, second], chosen.name)
    if reason:
        return Duel(first, second, chosen, None, (0, 0, 0), {}, reason)
    apart = first.card.pseudo[chosen.name] - second.card.pseudo[chosen.name]
    gain = apart if chosen.higher_is_better else -apart
    slack = 1e-9 * float(np.abs(apart).max(initial=0.0))
    ahead = int((gain > slack).sum()), int((gain < -slack).sum())
    both = set(first.card.pseudo) & set(second.card.pseudo) - {chosen.name}
    others = [board_metric(benchmark, name) for name in first.card.metrics if name in both]
    return Duel(
        first,
        second,
        chosen,
        _pair(first, second, chosen),
        (*ahead, len(apart) - sum(ahead)),
        {other.name: _pair(first, second, other) for other in others if not _incomparable([first, second], other.name)},
    )


def upward(entrant: Entrant, metric: Metric) -> float:
    """The score of an entry turned so that more is better; an undefined one is worst of all."""
    value = entrant.score(metric.name).value
    if math.isnan(value):
        return -math.inf
    return value if metric.higher_is_better else -value


def _incomparable(entrants: Sequence[Entrant], metric: str) -> str:
    """Why entries cannot be compared unit by unit; empty if they can."""
    if any(metric not in one.card.pseudo for one in entrants):
        return f"{metric} has no value per unit, so that entries cannot be compared in pairs"
    if len({one.card.unit_ids for one in entrants}) > 1:
        return APART
    return ""


def _standings(competing: Sequence[Entrant], ranked: PairRanks, metric: Metric) -> list[BoardRow]:
    behind: list[Difference | None] = [None, *ranked.behind]
    best = ranked.best_group
    return [
        BoardRow(one, one.score(metric.name), now.place, now.rank_low, now.rank_high, now.run in best, apart)
        for one, now, apart in zip(competing, ranked.standings, behind, strict=True)
    ]


def _pair(first: Entrant, second: Entrant, metric: Metric) -> Difference:
    values = np.array([one.score(metric.name).value for one in (first, second)])
    pseudo = np.stack([one.card.pseudo[metric.name] for one in (first, second)])
    rests_on = units_rested_on(one.score(metric.name) for one in (first, second))
    up = metric.higher_is_better
    return comparison.compare(values, pseudo, higher_is_better=up, rests_on=rests_on).differences[0]


def _row_json(row: BoardRow) -> dict[str, Any]:
    one = row.entrant
    return {
        "id": one.id,
        "team": one.team,
        "title": one.title,
        "accepted": one.accepted.isoformat(),
        "external_data": one.external.used,
        "external_declared": one.external.note,
        "external_found": one.external.found,
        **({"unranked": one.unranked} if one.unranked else {}),
        **_score_json(row.score),
        "place": row.place,
        "rank_low": row.rank_low,
        "rank_high": row.rank_high,
        "not_separable_from_best": row.among_best,
        "behind_best": None if row.behind is None else row.behind.to_json(),
    }


def _score_json(score: Score) -> dict[str, float | None]:
    return {"value": None if math.isnan(score.value) else score.value, "low": score.low, "high": score.high}
