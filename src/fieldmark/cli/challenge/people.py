"""Who takes part in a challenge: teams and runs that are taken out of the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fieldmark.cli.challenge.options import Actor, Json, Name, answer, running
from fieldmark.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder

if TYPE_CHECKING:
    from fieldmark.challenge.records.schema import Challenge, Team
    from fieldmark.challenge.running.serving import Platform


def add_to(group: typer.Typer) -> None:
    """Adds the verbs."""
    example = "Example: `fieldmark challenge "
    group.command("disqualify", epilog=example + "disqualify birds --team Owls --reason 'two accounts'`")(disqualify)


def disqualify(
    name: Name,
    team: Annotated[str | None, typer.Option(help="The name of a team, with all its runs.")] = None,
    run: Annotated[int | None, typer.Option(min=1, help="Or the number of a single run.")] = None,
    reason: Annotated[str, typer.Option(help="Why; those concerned read it, and the board shows it.")] = "",
    hide: Annotated[bool, typer.Option("--hide", help="Do not name it on the board at all.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Put it back into the ranking.")] = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Take a team or a single run out of the ranking, with a reason, or put it back."""
    from fieldmark.challenge.refusals import NotThereError
    from fieldmark.challenge.running import standings
    from fieldmark.errors import MisuseError

    if (team is None) == (run is None):
        raise MisuseError("Say what is meant: either --team NAME or --run NUMBER.")
    if undo and hide:
        raise MisuseError("--undo puts back what was disqualified or hidden: leave --hide out.")
    standing = "" if undo else "hidden" if hide else "disqualified"
    with running(name, actor, folder, database, files) as (platform, challenge, user):
        place = (platform.database, user, challenge)
        if team is not None:
            standings.set_team_standing(*place, team_called(platform, challenge, team).id, standing, reason)
        elif run is not None:
            try:
                standings.set_run_standing(*place, run, standing, reason)
            except NotThereError as error:
                raise MisuseError(f"{name} has no submission {run}.") from error
    what = team if team is not None else f"run {run}"
    about = {"challenge": name, "team": team, "submission": run, "standing": standing, "reason": reason}
    answer(as_json, about, f"{what} is {'in the ranking again' if undo else standing}")


def team_called(platform: Platform, challenge: Challenge, name: str) -> Team:
    """A team of a challenge by its name.

    Raises:
        MisuseError: When there is none.
    """
    from fieldmark.challenge.running import standings
    from fieldmark.errors import MisuseError, did_you_mean

    with platform.database.read() as session:
        there = {team.name: team for team, _ in standings.teams_of(session, challenge)}
    if name not in there:
        raise MisuseError(f"{challenge.slug} has no team {name!r}. {did_you_mean(name, there)}")
    return there[name]
