"""The course of a challenge: open, phases, freeze, reveal, rescore."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.challenge.options import (
    MOMENTS,
    WHEN,
    Actor,
    Json,
    Name,
    Number,
    Sure,
    answer,
    as_shown,
    many,
    moment,
    running,
)
from fieldmark.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder


def add_to(group: typer.Typer) -> None:
    """Adds the verbs."""
    example = "Example: `fieldmark challenge "
    group.command("publish", epilog=example + "publish birds`")(publish)
    group.command("phase", epilog=example + "phase birds main --ends 2026-12-31T18:00 --daily 3`")(phase)
    group.command("freeze", epilog=example + "freeze birds`")(freeze)
    group.command("reveal", epilog=example + "reveal birds`, which asks first; `--yes` for scripts")(reveal)
    group.command("rescore", epilog=example + "rescore birds --truth corrected.csv`")(rescore)
    group.command("retry", epilog=example + "retry birds 31`")(retry)
    group.command("refund", epilog=example + "refund birds 31`")(refund)


def publish(
    name: Name,
    undo: Annotated[bool, typer.Option("--undo", help="Show it to its organizers only.")] = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Show a challenge to everybody; its phases say when runs are taken."""
    from fieldmark.challenge.running import phases

    with running(name, actor, folder, database, files) as (platform, challenge, user):
        phases.publish(platform.database, user, challenge, published=not undo)
    who = "its organizers only" if undo else "everybody"
    answer(as_json, {"challenge": name, "published": not undo}, f"{name} is visible to {who}")


def phase(
    name: Name,
    phase: Annotated[str, typer.Argument(help="The name of the phase; a new challenge has one called main.")],
    add: Annotated[bool, typer.Option("--add", help="Add a phase of that name.")] = False,
    starts: Annotated[
        str | None, typer.Option(metavar=WHEN, help=f"When runs are taken from: {MOMENTS}; now for a new one.")
    ] = None,
    ends: Annotated[str | None, typer.Option(metavar=WHEN, help="Until when.")] = None,
    daily: Annotated[int | None, typer.Option(min=1, help="Runs per team and UTC day; 5 for a new one.")] = None,
    total: Annotated[int | None, typer.Option(min=1, help="Runs per team in the phase; 100 for a new one.")] = None,
    rename: Annotated[str | None, typer.Option(help="Another name for it.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove it, if no run was handed in during it.")] = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Add a phase, move it, end it (`--ends now`), change its limits or remove it; what is not given stays."""
    from fieldmark.challenge.records.schema import Challenge
    from fieldmark.challenge.running import phases
    from fieldmark.challenge.submitting.replies import PhaseOut
    from fieldmark.errors import MisuseError, did_you_mean

    begins, over = (None if text is None else moment(text) for text in (starts, ends))
    with running(name, actor, folder, database, files) as (platform, challenge, user):
        with platform.database.read() as session:
            there = {one.name: one for one in session.get_one(Challenge, challenge.id).phases}
        if add:
            if over is None:
                raise MisuseError(f"A new phase needs an end: --ends {WHEN}, {MOMENTS}.")
            made = phases.set_phase(
                platform.database,
                user,
                challenge,
                name=phase,
                starts_at=begins or moment("now"),
                ends_at=over,
                daily_limit=daily or 5,
                total_limit=total or 100,
            )
        elif phase not in there:
            raise MisuseError(f"{name} has no phase {phase!r}; --add makes one. {did_you_mean(phase, there)}")
        elif remove:
            phases.remove_phase(platform.database, user, challenge, there[phase].id)
            answer(as_json, PhaseOut.of(there[phase]).model_dump(mode="json"), f"the phase {phase} is removed")
            return
        else:
            limits = {"daily_limit": daily, "total_limit": total}
            made = phases.change_phase(
                platform.database, user, challenge, there[phase], name=rename, starts_at=begins, ends_at=over, **limits
            )
    span = f"{as_shown(made.starts_at)} to {as_shown(made.ends_at)} UTC"
    sentence = f"{made.name}: {span}, {many(made.daily_limit, 'run')} a day and {made.total_limit} in all per team"
    answer(as_json, PhaseOut.of(made).model_dump(mode="json"), sentence)


def freeze(
    name: Name,
    undo: Annotated[bool, typer.Option("--undo", help="Let the board go on.")] = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Stop the public board where it stands; runs are taken and scored all the same."""
    from fieldmark.challenge.running import phases

    with running(name, actor, folder, database, files) as (platform, challenge, user):
        phases.freeze(platform.database, user, challenge, frozen=not undo)
    sentence = f"the board of {name} {'goes on' if undo else 'is frozen'}"
    answer(as_json, {"challenge": name, "frozen": not undo}, sentence)


def reveal(
    name: Name,
    sure: Sure = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Publish the final results: show the private scores to everybody, for good."""
    from fieldmark.challenge.running import phases

    with running(name, actor, folder, database, files) as (platform, challenge, user):
        phases.check_reveal(platform.database, challenge)
        if not sure:
            _ask_for_reveal(name)
        phases.reveal(platform.database, user, challenge)
    sentence = f"the private scores of {name} are revealed; see them with `fieldmark challenge board {name}`"
    answer(as_json, {"challenge": name, "revealed": True}, sentence)


def _ask_for_reveal(name: str) -> None:
    """Asks before what cannot be undone.

    Raises:
        MisuseError: When nobody is there to answer.
    """
    from fieldmark.errors import MisuseError

    question = f"Reveal the private scores of {name} to everybody? This ends the challenge and cannot be undone."
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        agreed = None
    if agreed is None:
        raise MisuseError("Nothing was revealed: nobody answered. Pass --yes to reveal without being asked.")
    if not agreed:
        print("nothing was revealed")
        raise typer.Exit(1)


def rescore(
    name: Name,
    truth: Annotated[Path | None, typer.Option(help="A corrected truth, about the same items.")] = None,
    classes: Annotated[Path | None, typer.Option(help="With --truth: the classes.")] = None,
    media: Annotated[Path | None, typer.Option(help="With --truth of soundscapes: the recordings.")] = None,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Score all runs again after a fix; acceptance times stay, old scores stand until new ones replace them."""
    from fieldmark.challenge.running import creating
    from fieldmark.challenge.scoring import queue
    from fieldmark.errors import MisuseError

    if truth is None and (classes is not None or media is not None):
        raise MisuseError("A corrected truth comes with --truth; --classes and --media go with it.")
    with running(name, actor, folder, database, files) as (platform, challenge, user):
        if truth is not None:
            corrected = (truth, classes, media)
            count = creating.replace_truth(platform.database, platform.storage, user, challenge, *corrected)
        else:
            count = queue.rescore(platform.database, user, challenge)
    answer(as_json, {"challenge": name, "waiting": count}, f"{many(count, 'run')} of {name} to be scored again")


def retry(
    name: Name,
    submission: Number,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Score one run again, such as one that failed."""
    from fieldmark.challenge.scoring import queue

    with running(name, actor, folder, database, files) as (platform, challenge, user), _submission(name, submission):
        queue.rescore(platform.database, user, challenge, only=submission)
    about = {"challenge": name, "submission": submission, "state": "queued"}
    answer(as_json, about, f"submission {submission} waits to be scored again")


def refund(
    name: Name,
    submission: Number,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Give a team back what a run cost it; the run stays on the board."""
    from fieldmark.challenge.submitting import submissions

    with running(name, actor, folder, database, files) as (platform, challenge, user), _submission(name, submission):
        submissions.refund(platform.database, user, challenge, submission)
    about = {"challenge": name, "submission": submission, "counted": False}
    answer(as_json, about, f"submission {submission} no longer counts against the limits of its team")


@contextmanager
def _submission(name: str, number: int) -> Iterator[None]:
    """Says in words of the shell that a challenge has no such submission."""
    from fieldmark.challenge.refusals import NotThereError
    from fieldmark.errors import MisuseError

    try:
        yield
    except NotThereError as error:
        raise MisuseError(f"{name} has no submission {number}.") from error
