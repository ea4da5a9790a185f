"""The course of a challenge: phases, and the reveal, which asks first; the rest are actions as they stand."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import typer

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark_challenge.actions import course
from fieldmark_challenge.actions.course import NewPhaseIn, PhaseIn
from fieldmark_challenge.actions.declarations import ActingOrganizer, Told
from fieldmark_challenge.actions.words import MOMENTS
from fieldmark_challenge.cli.options import WHEN, Sure
from fieldmark_challenge.cli.verbs import Verbs

verbs = Verbs(course.actions)


@verbs.add("phase birds main --ends 2026-12-31T18:00 --daily 3")
def phase(
    by: ActingOrganizer,
    given: PhaseIn,
    phase: Annotated[str, typer.Argument(help="The name of the phase; a new challenge has one called main.")],
    add: Annotated[bool, typer.Option("--add", help="Add a phase of that name.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove it, if no run was submitted during it.")] = False,
) -> Told[Any]:
    """Add a phase, move it, end it (`--ends now`), change its limits or remove it; what is not given stays."""
    if add:
        if given.ends_at is None:
            raise MisuseError(f"A new phase needs an end: --ends {WHEN}, {MOMENTS}.")
        usual = {"name": phase, "starts_at": dt.datetime.now(dt.UTC)}
        return course.add_phase(by, NewPhaseIn.checked(usual | given.changes()))
    there = {one.name: one for one in by.challenge.phases}
    if phase not in there:
        raise MisuseError(f"{by.challenge.slug} has no phase {phase!r}; --add makes one. {did_you_mean(phase, there)}")
    if not remove:
        return course.change_phase(by, given, there[phase].id)
    from fieldmark_challenge.submissions.replies import PhaseOut

    course.remove_phase(by, there[phase].id)
    return Told(PhaseOut.of(there[phase]), f"the phase {phase} is removed")


@verbs.add("reveal birds`, which asks first; `--yes` for scripts")
def reveal(by: ActingOrganizer, sure: Sure = False) -> Told[Any]:
    """Publish the final results: reveal the private scores, permanently."""
    from fieldmark_challenge.challenges import phases

    phases.check_reveal(by.database, by.challenge)
    if not sure:
        _ask_for_reveal(by.challenge.slug)
    return course.reveal(by)


def _ask_for_reveal(name: str) -> None:
    """Asks before what cannot be undone.

    Raises:
        MisuseError: When nobody is there to answer.
    """
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
