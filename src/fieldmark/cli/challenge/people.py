"""Who takes part in a challenge: who is let in, accounts for a class, and what is taken out of the ranking."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldmark.cli.challenge.options import (
    Actor,
    Address,
    Json,
    Name,
    answer,
    as_shown,
    link_base,
    many,
    running,
    text_in,
)
from fieldmark.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder

if TYPE_CHECKING:
    from fieldmark.challenge.records.schema import Challenge, Team
    from fieldmark.challenge.running.serving import Platform


def add_to(group: typer.Typer) -> None:
    """Adds the verbs."""
    example = "Example: `fieldmark challenge "
    group.command("invite", epilog=example + "invite birds --uses 30 --days 7 --note 'course in May'`")(invite)
    group.command("admissions", epilog=example + "admissions birds --admit ada`")(admissions)
    group.command("accounts", epilog=example + "accounts birds class.csv --out links.csv`")(make_accounts)
    group.command("classroom", epilog=example + "classroom 203.0.113.7 --hours 4`")(classroom)
    group.command("advance", epilog=example + "advance birds-final`")(advance)
    group.command("disqualify", epilog=example + "disqualify birds --team Owls --reason 'two accounts'`")(disqualify)


def invite(
    name: Name,
    uses: Annotated[int, typer.Option(min=1, help="How many people it lets in.")] = 1,
    days: Annotated[int, typer.Option(min=1, help="How long it works.")] = 14,
    note: Annotated[str, typer.Option(help="For whom, for your own memory.")] = "",
    address: Address = None,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Make a code that lets people into a challenge; they type it at `/enter`, or open `/enter/CODE`."""
    from fieldmark.challenge.people import admissions as entrances

    with running(name, actor, folder, database, files) as (platform, challenge, user):
        made = entrances.make_code(platform.database, user, challenge, uses=uses, days=days, note=note)
        link = f"{link_base(platform, address)}/enter/{made}"
    about = {"challenge": name, "code": made, "link": link, "uses": uses, "days": days}
    people = "one person" if uses == 1 else f"{uses} people"
    within = f"lets {people} into {name} within {many(days, 'day')}; it is shown this once"
    answer(as_json, about, f"{made} {within}\n{link}")


def admissions(
    name: Name,
    admit: Annotated[str | None, typer.Option(help="The name or address of an account to let in.")] = None,
    refuse: Annotated[str | None, typer.Option(help="One to keep out.")] = None,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """List who asked to take part, was let in or kept out; decide about somebody."""
    from fieldmark.challenge.people import admissions as entrances
    from fieldmark.challenge.running.people_api import AdmissionOut
    from fieldmark.cli.printing import print_json, print_table

    with running(name, actor, folder, database, files) as (platform, challenge, user):
        for who, yes in ((admit, True), (refuse, False)):
            if who is not None:
                entrances.decide(platform.database, user, challenge, platform.account(who).name, admit=yes)
        with platform.database.read() as session:
            listed = [AdmissionOut.of(row) for row in entrances.admissions_of(session, challenge)]
    if as_json:
        print_json([one.model_dump(mode="json") for one in listed])
    elif listed:
        rows = [[one.name, one.state, as_shown(one.changed_at), one.note] for one in listed]
        print_table(["account", "state", "since (UTC)", "note"], rows, numbers=False)
    else:
        print(f"nobody asked to take part in {name}, was let in or kept out")


def make_accounts(
    name: Name,
    table: Annotated[Path, typer.Argument(help="CSV with the columns name and email; an address may be missing.")],
    out: Annotated[Path, typer.Option(help="The file to write: name, email and the link that sets the password.")],
    address: Address = None,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Make accounts for a class from a list, each with a link that sets its password once, and let them in."""
    import csv

    from fieldmark.challenge.people import rosters
    from fieldmark.challenge.running.exports import safe_cell
    from fieldmark.foundation.files import appearing_file

    listed = text_in(table, "a list of people")
    with running(name, actor, folder, database, files) as (platform, challenge, user):
        made = rosters.make_accounts(platform.database, user, challenge, listed)
        place = link_base(platform, address)
    with appearing_file(out, mode=0o600) as partial, partial.open("w", newline="", encoding="utf-8") as sink:
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(["name", "email", "link"])
        for one in made:
            link = f"{place}/reset/{one.secret}" if one.secret else "has an account already"
            writer.writerow([safe_cell(one.name), safe_cell(one.email), link])
    new = sum(one.secret is not None for one in made)
    about = {"challenge": name, "made": new, "let_in": len(made), "file": str(out)}
    answer(as_json, about, f"{many(new, 'account')} made, {len(made)} let into {name}; the links are in {out}")


def classroom(
    network: Annotated[str, typer.Argument(help="The address of the class, or its network such as 203.0.113.0/24.")],
    hours: Annotated[int, typer.Option(min=1, help="For how many hours.")] = 4,
    note: Annotated[str, typer.Option(help="What for.")] = "",
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Let many people behind one address sign in and register: limits per address are lifted for some hours."""
    from fieldmark.challenge.people import classrooms
    from fieldmark.challenge.running import serving
    from fieldmark.errors import MisuseError

    with serving.open_platform(folder, database, files) as platform:
        user = platform.account(actor)
        if user.role != "admin":
            raise MisuseError(f"{user.name} is no admin: class rooms are for those who run the server.")
        room = classrooms.open_room(platform.database, user, network, hours=hours, note=note)
    about = {"network": room.network, "ends_at": room.ends_at.isoformat()}
    answer(as_json, about, f"{room.network} is a class room until {as_shown(room.ends_at)} UTC")


def advance(
    name: Name,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Carry over to a later stage the teams that came through the stage before."""
    from fieldmark.challenge.running import stages

    with running(name, actor, folder, database, files) as (platform, challenge, user):
        came = stages.advance(platform.database, user, challenge)
    answer(
        as_json,
        {"challenge": name, "teams": came},
        f"{many(len(came), 'team')} came to {name}: {', '.join(came) or 'none'}",
    )


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
