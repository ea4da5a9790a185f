"""How a challenge stands: all about it, its queue, its board, its log, and what to take home."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldmark.errors import MisuseError
from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.actions.declarations import ActingOrganizer, Told
from fieldmark_challenge.actions.words import as_shown, many
from fieldmark_challenge.cli.options import Name
from fieldmark_challenge.cli.verbs import Shell, Verbs

if TYPE_CHECKING:
    from fieldmark_challenge.boards.leaderboard import Board
    from fieldmark_challenge.lifecycle.replies import ManagedOut, QueuedOut

verbs = Verbs()
Where = Annotated[str | None, typer.Argument(help="The short name of a challenge; all of them if not given.")]


@verbs.add("show birds")
def show(at: Shell, name: Name) -> Told[Any]:
    """Show all about a challenge: phases, limits, baselines, files, organizers, and where its runs stand."""
    from fieldmark_challenge.lifecycle.replies import ManagedOut
    from fieldmark_challenge.records.schema import Challenge

    with at.platform.database.read() as session:
        state = ManagedOut.seen(session, session.get_one(Challenge, at.platform.challenge(name).id))
    return Told(state, "\n".join(_described(state)))


@verbs.add("queue birds")
def queue(
    at: Shell,
    name: Where = None,
    everything: Annotated[bool, typer.Option("--all", help="Include scored and refused runs.")] = False,
) -> Told[Any]:
    """Show what is being scored, what waits, and what has failed and why."""
    from fieldmark_challenge.lifecycle.replies import QueuedOut
    from fieldmark_challenge.scoring import queue as queues

    with at.platform.database.read() as session:
        of = at.platform.challenge(name) if name is not None else None
        runs = queues.listed(session, of, finished=everything)
        waiting = [QueuedOut.of(run, queues.position(session, run)) for run in runs]
    columns = ["submission", "challenge", "team", "state", "place", "attempts", "accepted (UTC)", "why"]
    nothing = "no submissions yet" if everything else "no runs are queued, being scored or failed"
    return Told(waiting, nothing, table=(columns, [_queued(one) for one in waiting]) if waiting else None)


def _queued(one: QueuedOut) -> list[str]:
    why = one.detail.strip().rpartition("\n")[2] or one.reason.removeprefix("scored")
    place, since = str(one.position or ""), as_shown(one.accepted_at)
    return [str(one.id), one.challenge, one.team, one.state, place, str(one.attempts), since, why]


@verbs.add("board birds --part private")
def board(
    at: Shell,
    name: Name,
    part: Annotated[
        str | None, typer.Option(help="public or private; once revealed the private one if not given.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Another metric than the primary one.")] = None,
) -> Told[Any] | None:
    """Show the board as organizers see it: frozen or not, private scores too."""
    from fieldmark_challenge.boards import visibility

    with at.platform.database.read() as session:
        challenge = at.platform.challenge(name)
        try:
            sight = visibility.look(challenge, part, manages=True)
        except NotThereError as error:
            parts = "public" if challenge.units_public == challenge.units else "public and private"
            raise MisuseError(f"{name} has no part {part!r}; expected {parts}.") from error
        shown = visibility.board_of(session, sight, metric)
    if at.as_json:
        return Told(shown, data=shown.to_json())
    _print_board(shown)
    return None


@verbs.add("audit birds --last 20")
def audit(
    at: Shell,
    name: Where = None,
    last: Annotated[int, typer.Option(min=1, help="The number of lines, newest first.")] = 50,
) -> Told[Any]:
    """Read the audit log: who did what, and when, newest first."""
    from fieldmark_challenge.lifecycle.replies import EventOut
    from fieldmark_challenge.records import audit as log

    with at.platform.database.read() as session:
        of = at.platform.challenge(name) if name is not None else None
        lines = log.events(session, of, limit=last)
        events = [EventOut.model_validate(event, from_attributes=True) for event in lines]
    rows = [[as_shown(one.at), one.actor, one.action, one.subject, _in_words(one.details)] for one in events]
    table = (["when (UTC)", "who", "what", "of", "details"], rows) if rows else None
    return Told(events, "nothing happened yet", table=table)


@verbs.add("export birds --out birds.csv", as_json=False)
def export(
    at: Shell,
    name: Name,
    out: Annotated[Path, typer.Option(help="The file to write: .csv, safe in a spreadsheet, or .json.")],
) -> Told[Any]:
    """Write every submission with all its scores."""
    from fieldmark.storage.files import appearing_file
    from fieldmark_challenge.challenges import exports

    if out.suffix not in (".csv", ".json"):
        raise MisuseError(f"--out {out}: expected a name that ends with .csv or .json.")
    with at.platform.database.read() as session:
        rows = exports.export_rows(session, at.platform.challenge(name))
    # It holds private scores, names and what people wrote: for whoever asked, and nobody else on the machine.
    with appearing_file(out, mode=0o600) as partial:
        if out.suffix == ".json":
            whole = {"challenge": name, "submissions": rows}
            partial.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        else:
            partial.write_text(exports.to_csv(rows), encoding="utf-8", newline="")
    return Told(rows, f"{many(len(rows), 'submission')} in {out}")


@verbs.add("truth birds --out birds-truth")
def truth(by: ActingOrganizer, out: Annotated[Path, typer.Option(help="The folder to write.")]) -> Told[Any]:
    """Write the truth as it is scored against, so that receipts can be verified once you publish it."""
    from fieldmark.scoring.score_parts import truth_files
    from fieldmark.storage.files import appearing_folder

    with appearing_folder(out) as partial:
        kept = truth_files(by.storage.fetch_folder(by.challenge.truth_path, partial))
        for path in kept.values():  # until its owner publishes it
            path.chmod(0o600)
        names = sorted(path.name for path in kept.values())
    data = {"challenge": by.challenge.slug, "folder": str(out), "files": names}
    return Told(names, f"{', '.join(names)} in {out}", data)


def _in_words(details: Mapping[str, object]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in details.items())


def _described(challenge: ManagedOut) -> list[str]:
    """The challenge in lines."""
    marks = ["published" if challenge.published_at else "a draft, visible to its organizers only"]
    marks += ["simulated data"] if challenge.simulated else []
    marks += ["board frozen"] if challenge.frozen_at and not challenge.revealed_at else []
    marks += ["private scores revealed" if challenge.revealed_at else "private scores hidden"]
    counts = ", ".join(f"{count} {state}" for state, count in challenge.submissions.items())
    lines = [
        f"{challenge.slug}: {challenge.title}",
        f"benchmark    {challenge.benchmark}, version {challenge.benchmark_version}",
        f"state        {', '.join(marks)}",
        f"decided by   {challenge.metric}",
        f"access       {challenge.access}{', teams may merge' if challenge.merging else ''}",
        f"test set     {challenge.items} items, {challenge.units} independent units ({challenge.units_public} public), "
        f"{challenge.classes} classes; revision {challenge.revision}",
        f"limits       run files up to {challenge.max_upload_mb} MiB, teams of up to {challenge.max_team_size}, "
        f"{challenge.max_final} final runs",
        f"submissions  {counts}",
    ]
    if challenge.stage_of:
        who = f"the first {challenge.stage_top}" if challenge.stage_entry == "top" else challenge.stage_entry
        lines.append(f"stage        after {challenge.stage_of}, for {who} of its teams")
    for one in challenge.phases:
        span = f"{as_shown(one.starts_at)} to {as_shown(one.ends_at)} UTC"
        limits = f"{many(one.daily_limit, 'run')} a day and {one.total_limit} in all per team"
        lines.append(f"phase        {one.name}: {span}, {limits}")
    lines += [f"baseline     {one.name}: submission {one.submission}, {one.state}" for one in challenge.baselines]
    lines += [f"file         {one.name}: {one.about or 'no description'}" for one in challenge.files]
    return [*lines, f"run by       {', '.join(one.name for one in challenge.organizers)}"]


def _print_board(board: Board) -> None:
    from fieldmark.cli.output import print_cautions, print_table, score_text

    if not board.rows:
        print(f"no scored runs on the {board.part} part yet")
        _print_set_apart(board)
        return
    rows = []
    for row in board.rows:
        is_range = row.rank_low is not None and row.rank_low != row.rank_high
        ranks = f"{row.rank_low} to {row.rank_high}" if is_range else str(row.place or "")
        score = score_text(row.score, percent=board.metric.is_share)
        mark = row.entrant.unranked or ("*" if row.among_best else "")
        title = "" if row.entrant.by == row.entrant.title else row.entrant.title
        rows.append([str(row.place or ""), ranks, row.entrant.by, title, score, mark])
    print_table(["place", "rank", "team", "run", board.metric.name, ""], rows, numbers=False)
    unit = "percent [95 % interval]" if board.metric.is_share else "[95 % interval]"
    reason = f"; {board.reason}" if board.reason else ""
    tied = "; * not separable from the best" if board.tied else ""
    print(f"{unit} on the {board.part} part: {many(board.units, 'independent unit')}{tied}{reason}")
    print_cautions([{board.metric.name: row.score} for row in board.rows])
    _print_set_apart(board)


def _print_set_apart(board: Board) -> None:
    for one in board.set_apart:
        late = ", after the results were out" if one.late else ""
        run = f", the run {one.title!r}" if one.title else ""
        print(f"disqualified: {one.team}{run} ({as_shown(one.since)} UTC{late}): {one.reason}")
