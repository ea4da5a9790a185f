"""Who takes part in a challenge: who is let in, accounts for a class, and what is taken out of the ranking."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.actions import taking_part
from fieldmark_challenge.actions.declarations import ActingOrganizer, Admin, Told
from fieldmark_challenge.actions.taking_part import AdmissionIn, RosterIn, StandingIn
from fieldmark_challenge.actions.words import as_shown, many
from fieldmark_challenge.cli.verbs import Verbs, account_called

if TYPE_CHECKING:
    from fieldmark_challenge.records.schema import Team

verbs = Verbs(taking_part.actions)


@verbs.add("admissions birds --admit ada")
def admissions(
    by: ActingOrganizer,
    admit: Annotated[str | None, typer.Option(help="The name or address of an account to admit.")] = None,
    refuse: Annotated[str | None, typer.Option(help="The name or address of an account to reject.")] = None,
) -> Told[Any]:
    """List who asked to take part, was let in or kept out; decide about somebody."""
    from fieldmark_challenge.challenges import admissions as entrances
    from fieldmark_challenge.lifecycle.replies import AdmissionOut

    for who, yes in ((admit, True), (refuse, False)):
        if who is not None:
            taking_part.decide(by, AdmissionIn(who=account_called(by, who).name, admit=yes))
    with by.database.read() as session:
        listed = [AdmissionOut.of(row) for row in entrances.admissions_of(session, by.challenge)]
    rows = [[one.name, one.state, as_shown(one.changed_at), one.note] for one in listed]
    table = (["account", "state", "since (UTC)", "note"], rows) if rows else None
    return Told(listed, f"nobody asked to take part in {by.challenge.slug}, was let in or kept out", table=table)


@verbs.add("accounts birds class.csv --out links.csv", links=True)
def make_accounts(
    by: ActingOrganizer,
    given: RosterIn,
    out: Annotated[Path, typer.Option(help="The file to write: name, email and the link that sets the password.")],
) -> Told[Any]:
    """Make accounts for a class from a list, each with a link that sets its password once, and admit them."""
    import csv

    from fieldmark.storage.files import appearing_file
    from fieldmark_challenge.challenges.exports import safe_cell
    from fieldmark_challenge.people import rosters

    made, slug = rosters.make_accounts(*by.place, given.table), by.challenge.slug
    with appearing_file(out, mode=0o600) as partial, partial.open("w", newline="", encoding="utf-8") as sink:
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(["name", "email", "link"])
        for one in made:
            link = f"{by.base}/reset/{one.secret}" if one.secret else "has an account already"
            writer.writerow([safe_cell(one.name), safe_cell(one.email), link])
    new = sum(one.secret is not None for one in made)
    data = {"challenge": slug, "made": new, "let_in": len(made), "file": str(out)}
    return Told(made, f"{many(new, 'account')} made, {len(made)} let into {slug}; the links are in {out}", data)


@verbs.add("classroom 203.0.113.7 --hours 4")
def classroom(
    by: Admin,
    network: Annotated[str, typer.Argument(help="The address of the class, or its network such as 203.0.113.0/24.")],
    hours: Annotated[int, typer.Option(min=1, help="The number of hours.")] = 4,
    note: Annotated[str, typer.Option(help="What for.")] = "",
) -> Told[Any]:
    """Let many people behind one address sign in and register: limits per address are lifted for some hours."""
    from fieldmark_challenge.people import classrooms

    room = classrooms.open_room(by.database, by.user, network, hours=hours, note=note)
    data = {"network": room.network, "ends_at": room.ends_at.isoformat()}
    return Told(room, f"{room.network} is a class room until {as_shown(room.ends_at)} UTC", data)


@verbs.add("disqualify birds --team Owls --reason 'two accounts'")
def disqualify(
    by: ActingOrganizer,
    team: Annotated[str | None, typer.Option(help="The name of a team, with all its runs.")] = None,
    run: Annotated[int | None, typer.Option(min=1, help="Or the number of a single run.")] = None,
    reason: Annotated[str, typer.Option(help="The reason, shown to the team and on the leaderboard.")] = "",
    hide: Annotated[bool, typer.Option("--hide", help="Hide it from the leaderboard completely.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Put it back into the ranking.")] = False,
) -> Told[Any]:
    """Take a team or a single run out of the ranking, with a reason, or put it back."""
    if (team is None) == (run is None):
        raise MisuseError("Say what is meant: either --team NAME or --run NUMBER.")
    if undo and hide:
        raise MisuseError("--undo puts back what was disqualified or hidden: leave --hide out.")
    standing: Literal["", "hidden", "disqualified"] = "" if undo else "hidden" if hide else "disqualified"
    wanted, slug = StandingIn.checked({"standing": standing, "reason": reason}), by.challenge.slug
    if team is not None:
        done = taking_part.team_standing(by, wanted, team_called(by, team).id)
    elif run is not None:
        try:
            done = taking_part.run_standing(by, wanted, run)
        except NotThereError as error:
            raise MisuseError(f"{slug} has no submission {run}.") from error
    what = team if team is not None else f"run {run}"
    data = {"challenge": slug, "team": team, "submission": run, "standing": standing, "reason": reason}
    return Told(done.reply, f"{what} is {'in the ranking again' if undo else standing}", data)


def team_called(by: ActingOrganizer, name: str) -> Team:
    """A team of a challenge by its name.

    Raises:
        MisuseError: When there is none.
    """
    from fieldmark_challenge.lifecycle import standings

    with by.database.read() as session:
        there = {team.name: team for team, _ in standings.teams_of(session, by.challenge)}
    if name not in there:
        raise MisuseError(f"{by.challenge.slug} has no team {name!r}. {did_you_mean(name, there)}")
    return there[name]
