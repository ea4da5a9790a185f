"""The runs that boards draw on, read from the database: each scorecard once, and pseudo-values where they are compared.

A run that is scored again has another time of scoring, and is another entry for all that is kept here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark.benchmarks.declarations import Metric
from fieldmark.scoring import Scorecard, scores_of
from fieldmark.scoring.score_parts import PUBLIC
from fieldmark.storage.parquet import read_frame, read_frames
from fieldmark_challenge.boards.ladder import released_entrants
from fieldmark_challenge.boards.leaderboard import BASELINE, Entrant, ExternalData, SetApart
from fieldmark_challenge.boards.single_flight import Kept
from fieldmark_challenge.records.schema import Challenge, PartScore, Submission, Team

AT_ONCE = 500
FEW = 8  # runs that are read one by one
_CARDS: Kept[Scorecard] = Kept(20_000)
_RELEASED: Kept[Entrant | None] = Kept(20_000)


@dataclass(frozen=True)
class BoardRun:
    """A scored run as the board needs to know it, without its scores."""

    id: int
    accepted: dt.datetime
    title: str
    external: ExternalData
    team: str
    kind: str
    scored: dt.datetime


def scored_runs(session: Session, challenge_id: int, part: str, until: dt.datetime | None) -> list[BoardRun]:
    """The scored runs of a challenge in the order of acceptance.

    Args:
        session: The database.
        challenge_id: Which challenge.
        part: public or private.
        until: Leaves out what was accepted later; baselines always stay.
    """
    query = (
        select(
            Submission.id,
            Submission.accepted_at,
            Submission.title,
            Submission.filename,
            Submission.external_data,
            Submission.external_note,
            Submission.external_found,
            Team.name,
            Team.kind,
            PartScore.scored_at,
        )
        .join(PartScore, PartScore.submission_id == Submission.id)
        .join(Team, Team.id == Submission.team_id)
        .where(Submission.challenge_id == challenge_id, PartScore.part == part)
        .where(Submission.state.in_(("scored", "queued", "running")))  # being scored again: the old score stands
        .where(Submission.standing == "", Team.standing == "")
        .order_by(Submission.accepted_at, Submission.id)
    )
    return [
        BoardRun(number, accepted, title or filename, ExternalData(used, note, found), team, kind, scored)
        for number, accepted, title, filename, used, note, found, team, kind, scored in session.execute(query)
        if until is None or accepted <= until or kind == "baseline"
    ]


def set_apart_of(session: Session, challenge: Challenge) -> tuple[SetApart, ...]:
    """The disqualified teams and runs that would otherwise stand on the board, by the time at which they were.

    They come without scores: those of a run that was not the best of its team were never shown.
    """
    query = (
        select(Submission, Team)
        .join(Team, Team.id == Submission.team_id)
        .join(PartScore, (PartScore.submission_id == Submission.id) & (PartScore.part == PUBLIC))
        .where(Submission.challenge_id == challenge.id)
        .where((Team.standing == "disqualified") | ((Team.standing == "") & (Submission.standing == "disqualified")))
        .order_by(Submission.accepted_at, Submission.id)
    )
    listed: dict[tuple[str, int], SetApart] = {}
    revealed = challenge.revealed_at
    for run, team in session.execute(query):
        one, key = (team, ("team", team.id)) if team.standing else (run, ("run", run.id))
        title = "" if one is team else run.title or run.filename
        since = one.standing_at or run.accepted_at
        late = revealed is not None and since > revealed
        listed[key] = SetApart(team.name, title, one.standing_reason, since, late)
    return tuple(sorted(listed.values(), key=lambda one: one.since))


def entrants_of(session: Session, part: str, runs: Sequence[BoardRun]) -> list[Entrant]:
    """Runs as entries with their scores, without pseudo-values."""
    cards = {run.id: _CARDS.peek((run.id, part, run.scored)) for run in runs}
    scored = {run.id: run.scored for run in runs}
    for numbers in _blocks([number for number, card in cards.items() if card is None]):
        query = select(PartScore.submission_id, PartScore.card)
        for number, data in session.execute(query.where(PartScore.part == part, PartScore.submission_id.in_(numbers))):
            cards[number] = light = _light(data)
            _CARDS.put((number, part, scored[number]), light)
    return [
        Entrant(
            id=str(run.id),
            team=run.team,
            title=run.title,
            card=card,
            accepted=run.accepted,
            external=run.external,
            unranked=BASELINE if run.kind == "baseline" else "",
            version=run.scored.isoformat(),
        )
        for run in runs
        if (card := cards[run.id]) is not None
    ]


def with_units(session: Session, part: str, entrants: Sequence[Entrant], metric: str | None = None) -> list[Entrant]:
    """The same entries with their pseudo-values, of one metric or of all.

    Entries that were scored on the same units share the list of them: it is the largest part of a scorecard.
    """
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    values_of: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {}
    for numbers in _blocks([int(one.id) for one in entrants]):
        query = select(PartScore.submission_id, PartScore.unit_values)
        rows = session.execute(query.where(PartScore.part == part, PartScore.submission_id.in_(numbers))).all()
        together = _read_together([values for _, values in rows], metric) if metric and len(rows) > FEW else None
        if metric and together is not None:
            units = shared.setdefault(together[0], together[0])
            for (number, _), row in zip(rows, together[1], strict=True):
                values_of[str(number)] = ({metric: row}, units)
            continue
        for number, values in rows:
            table = read_frame(values, "stored scores")
            units = tuple(table["unit"])
            kept = [name for name in table.columns if name != "unit" and metric in (None, name)]
            pseudo = {name: table[name].to_numpy() for name in kept}
            values_of[str(number)] = (pseudo, shared.setdefault(units, units))
    return [
        replace(one, card=replace(one.card, pseudo=values_of[one.id][0], unit_ids=values_of[one.id][1]))
        for one in entrants
    ]


def _read_together(files: Sequence[bytes], metric: str) -> tuple[tuple[str, ...], NDArray[np.float64]] | None:
    """The pseudo-values of many runs at once, one row each, where all are about the same units; None otherwise."""
    table, first = read_frames(files, ("unit", metric)), read_frames(files[:1], ("unit",))
    if table is None or first is None:
        return None
    units = first["unit"]
    if table.height != len(units) * len(files) or not (table["unit"] == pl.concat([units] * len(files))).all():
        return None
    return tuple(units), table[metric].to_numpy().reshape(len(files), len(units))


def released_by_ladder(session: Session, part: str, entrants: Sequence[Entrant], metric: Metric) -> list[Entrant]:
    """What the Ladder lets onto the board; teams that submitted nothing new are not asked again."""
    by_team: dict[str, list[Entrant]] = {}
    for one in entrants:
        by_team.setdefault(one.by if one.unranked == BASELINE else f"team {one.team}", []).append(one)
    shown: list[Entrant] = []
    for own in by_team.values():
        key = (part, metric.name, tuple((one.id, one.version, one.title, one.team, one.unranked) for one in own))

        def release(own: list[Entrant] = own) -> Entrant | None:
            return next(iter(released_entrants(with_units(session, part, own, metric.name), metric)), None)

        if (released := _RELEASED.get(key, release)) is not None:
            shown.append(released)
    return shown


def _light(data: dict[str, Any]) -> Scorecard:
    """A scorecard with its scores and counts, without what only its own page shows."""
    counts = {name: data[name] for name in ("benchmark", "version", "split", "items", "units", "classes")}
    return Scorecard(**counts, metrics=scores_of(data["metrics"]), conventions={})


def _blocks(numbers: Sequence[int]) -> Iterable[Sequence[int]]:
    """So many at once as a database takes in one question."""
    return (numbers[start : start + AT_ONCE] for start in range(0, len(numbers), AT_ONCE))
