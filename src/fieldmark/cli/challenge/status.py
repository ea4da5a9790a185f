"""How a challenge stands: all about it, its queue, its board, its log, and what to take home."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldmark.cli.challenge.options import Actor, Json, Name, answer, as_shown, many, running
from fieldmark.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder

if TYPE_CHECKING:
    from fieldmark.challenge.boards.leaderboard import Board
    from fieldmark.challenge.running.replies import ManagedOut

Where = Annotated[str | None, typer.Argument(help="The short name of a challenge; all of them if not given.")]


def add_to(group: typer.Typer) -> None:
    """Adds the verbs."""
    example = "Example: `fieldmark challenge "
    group.command("show", epilog=example + "show birds`")(show)
    group.command("queue", epilog=example + "queue birds`")(queue)
    group.command("board", epilog=example + "board birds --part private`")(board)
    group.command("audit", epilog=example + "audit birds --last 20`")(audit)
    group.command("export", epilog=example + "export birds --out birds.csv`")(export)
    group.command("truth", epilog=example + "truth birds --out birds-truth`")(truth)


def show(
    name: Name,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Show all about a challenge: phases, limits, baselines, files, organizers, and where its runs stand."""
    from fieldmark.challenge.records.schema import Challenge
    from fieldmark.challenge.running import serving
    from fieldmark.challenge.running.replies import ManagedOut
    from fieldmark.cli.printing import print_json

    with serving.open_platform(folder, database, files) as platform, platform.database.read() as session:
        state = ManagedOut.seen(session, session.get_one(Challenge, platform.challenge(name).id))
    if as_json:
        print_json(state.model_dump(mode="json"))
    else:
        print("\n".join(_described(state)))


def queue(
    name: Where = None,
    everything: Annotated[bool, typer.Option("--all", help="List what is scored or refused as well.")] = False,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Show what is being scored, what waits, and what has failed and why."""
    from fieldmark.challenge.running import serving
    from fieldmark.challenge.running.replies import QueuedOut
    from fieldmark.challenge.scoring import queue as queues
    from fieldmark.cli.printing import print_json, print_table

    with serving.open_platform(folder, database, files) as platform, platform.database.read() as session:
        of = platform.challenge(name) if name is not None else None
        runs = queues.listed(session, of, finished=everything)
        waiting = [QueuedOut.of(run, queues.position(session, run)) for run in runs]
    if as_json:
        print_json([one.model_dump(mode="json") for one in waiting])
    elif waiting:
        columns = ["submission", "challenge", "team", "state", "place", "attempts", "accepted (UTC)", "why"]
        rows = [
            [
                *(str(one.id), one.challenge, one.team, one.state, str(one.position or ""), str(one.attempts)),
                *(
                    as_shown(one.accepted_at),
                    one.detail.strip().rpartition("\n")[2] or one.reason.removeprefix("scored"),
                ),
            ]
            for one in waiting
        ]
        print_table(columns, rows, numbers=False)
    else:
        print("nothing was handed in yet" if everything else "no run waits, is being scored, or has failed")


def board(
    name: Name,
    part: Annotated[
        str | None, typer.Option(help="public or private; once revealed the private one if not given.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Another metric than the one that decides.")] = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Show the board as organizers see it: frozen or not, private scores too."""
    from fieldmark.challenge.boards import visibility
    from fieldmark.challenge.refusals import NotThereError
    from fieldmark.challenge.running import serving
    from fieldmark.cli.printing import print_json
    from fieldmark.errors import MisuseError

    with serving.open_platform(folder, database, files) as platform, platform.database.read() as session:
        challenge = platform.challenge(name)
        try:
            sight = visibility.look(challenge, part, manages=True)
        except NotThereError as error:
            parts = "public" if challenge.units_public == challenge.units else "public and private"
            raise MisuseError(f"{name} has no part {part!r}; expected {parts}.") from error
        shown = visibility.board_of(session, sight, metric)
    if as_json:
        print_json(shown.to_json())
    else:
        _print_board(shown)


def audit(
    name: Where = None,
    last: Annotated[int, typer.Option(min=1, help="How many lines, from the newest on.")] = 50,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Read the audit log: who did what, and when, newest first."""
    from fieldmark.challenge.records import audit as log
    from fieldmark.challenge.running import serving
    from fieldmark.challenge.running.replies import EventOut
    from fieldmark.cli.printing import print_json, print_table

    with serving.open_platform(folder, database, files) as platform, platform.database.read() as session:
        of = platform.challenge(name) if name is not None else None
        lines = log.events(session, of, limit=last)
        events = [EventOut.model_validate(event, from_attributes=True) for event in lines]
    if as_json:
        print_json([one.model_dump(mode="json") for one in events])
    elif events:
        rows = [[as_shown(one.at), one.actor, one.action, one.subject, _in_words(one.details)] for one in events]
        print_table(["when (UTC)", "who", "what", "of", "details"], rows, numbers=False)
    else:
        print("nothing happened yet")


def export(
    name: Name,
    out: Annotated[Path, typer.Option(help="The file to write: .csv, safe in a spreadsheet, or .json.")],
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
) -> None:
    """Write every submission with all its scores."""
    from fieldmark.challenge.running import exports, serving
    from fieldmark.errors import MisuseError
    from fieldmark.foundation.files import appearing_file

    if out.suffix not in (".csv", ".json"):
        raise MisuseError(f"--out {out}: expected a name that ends with .csv or .json.")
    with serving.open_platform(folder, database, files) as platform, platform.database.read() as session:
        rows = exports.export_rows(session, platform.challenge(name))
    # It holds private scores, names and what people wrote: for whoever asked, and nobody else on the machine.
    with appearing_file(out, mode=0o600) as partial:
        if out.suffix == ".json":
            whole = {"challenge": name, "submissions": rows}
            partial.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        else:
            partial.write_text(exports.to_csv(rows), encoding="utf-8", newline="")
    print(f"{many(len(rows), 'submission')} in {out}")


def truth(
    name: Name,
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Write the truth as it is scored against, so that receipts can be verified once you publish it."""
    from fieldmark.challenge.scoring.score_parts import truth_files
    from fieldmark.foundation.files import appearing_folder

    with running(name, actor, folder, database, files) as (platform, challenge, _), appearing_folder(out) as partial:
        kept = truth_files(platform.storage.fetch_folder(challenge.truth_path, partial))
        for path in kept.values():  # until its owner publishes it
            path.chmod(0o600)
        names = sorted(path.name for path in kept.values())
    answer(as_json, {"challenge": name, "folder": str(out), "files": names}, f"{', '.join(names)} in {out}")


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
    from fieldmark.cli.printing import print_cautions, print_table, score_text

    if not board.rows:
        print(f"no run is scored on the {board.part} part yet")
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
