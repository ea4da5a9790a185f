"""Accounts and backups: what an admin does for the whole platform."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fieldmark.errors import MisuseError
from fieldmark_challenge.actions.declarations import Admin, Told
from fieldmark_challenge.actions.words import many
from fieldmark_challenge.cli.options import Address, Sure, link_base
from fieldmark_challenge.cli.verbs import Shell, Verbs, Who, account_called

verbs = Verbs()


@verbs.add("people --json")
def people(at: Shell) -> Told[Any]:
    """List the accounts."""
    from sqlalchemy import select

    from fieldmark_challenge.records.schema import User

    with at.platform.database.read() as session:
        listed = [
            {"name": user.name, "email": user.email, "role": user.role, "open": user.disabled_at is None}
            for user in session.scalars(select(User).order_by(User.id))
        ]
    rows = [[str(one["name"]), str(one["email"]), str(one["role"]), "" if one["open"] else "closed"] for one in listed]
    return Told(None, data=listed, table=(["name", "e-mail", "role", ""], rows))


@verbs.add("role ada organizer")
def role(
    at: Shell, who: Who, new: Annotated[str, typer.Argument(help="participant, organizer or admin.")]
) -> Told[Any]:
    """Give an account another role."""
    from fieldmark_challenge.people import accounts

    user = at.platform.account(who)
    accounts.set_role(at.platform.database, None, user.id, new)
    data = {"name": user.name, "before": user.role, "role": new}
    return Told(None, f"{user.name}: {user.role} -> {new}", data)


@verbs.add("disable mallory")
def disable(
    by: Admin, who: Who, undo: Annotated[bool, typer.Option("--undo", help="Open the account again.")] = False
) -> Told[Any]:
    """Close an account to its owner; its runs stay."""
    from fieldmark_challenge.people import accounts

    user = account_called(by, who)
    accounts.set_disabled(by.database, by.user, user.id, not undo)
    state = "open again" if undo else "closed"
    return Told(None, f"{user.name}: {state}", {"name": user.name, "open": undo})


@verbs.add("reset-link ada --url https://challenge.example.org")
def reset_link(at: Shell, who: Who, url: Address = None) -> Told[Any]:
    """Print a link that sets a new password, once, within a day."""
    from fieldmark_challenge.people import accounts

    secret = accounts.make_reset(at.platform.database, who)
    if secret is None:
        raise MisuseError(f"There is no open account called {who!r}.")
    link = f"{link_base(at.platform, url)}/reset/{secret}"
    return Told(None, link, {"name": who, "link": link})


@verbs.add("registration closed")
def set_registration(
    by: Admin,
    state: Annotated[str, typer.Argument(help="open, or closed: only those who have a code for a challenge.")],
) -> Told[Any]:
    """Say whether everybody may make an account, or only those who have a code."""
    from fieldmark_challenge.challenges import registration

    if state not in ("open", "closed"):
        raise MisuseError(f"Found {state!r}, expected open or closed.")
    registration.set_closed(by.database, by.user, state == "closed")
    return Told(None, f"registration is {state}", {"registration": state})


@verbs.add("export-account ada --out ada.zip")
def export_account(at: Shell, who: Who, out: Annotated[Path, typer.Option(help="The archive to write.")]) -> Told[Any]:
    """Write what the platform keeps about a person, for that person, with the runs they submitted."""
    from fieldmark.storage.files import appearing_file
    from fieldmark_challenge.site import own_data

    user = at.platform.account(who)
    with appearing_file(out, mode=0o600) as partial, at.platform.database.read() as session:
        own_data.write_archive(session, at.platform.storage, user, partial)
    return Told(None, f"what is kept about {user.name} is in {out}", {"account": user.name, "file": str(out)})


@verbs.add("delete-account ada --yes")
def delete_account(
    by: Admin,
    who: Who,
    rename_teams: Annotated[
        bool, typer.Option("--rename-teams", help="Replace names of teams in which nobody else was.")
    ] = False,
    sure: Sure = False,
) -> Told[Any]:
    """Delete an account by its owner's wish: name and address go, runs and results stay under a number."""
    from fieldmark_challenge.people import deletion

    user = account_called(by, who)
    if not sure and not typer.confirm(f"Delete the account {user.name!r}? This cannot be undone.", err=True):
        raise MisuseError("Nothing was deleted. Pass --yes to delete without being asked.")
    deletion.delete_account(by.database, by.user, user.id, rename_teams=rename_teams)
    stays = f"what it submitted stays under 'deleted account {user.id}'"
    return Told(None, f"the account is deleted; {stays}", {"deleted": user.id})


@verbs.add("backup monday.zip")
def backup(at: Shell, out: Annotated[Path, typer.Argument(help="The zip file to write.")]) -> Told[Any]:
    """Write the whole platform, files included, into one zip file."""
    from fieldmark_challenge.records import backup as backups

    counts = backups.backup(at.platform.database, at.platform.storage, out)
    return Told(None, f"{_counted(counts)} in {out}", {"file": str(out), **counts})


@verbs.add("restore monday.zip --folder restored", new=True)
def restore(at: Shell, source: Annotated[Path, typer.Argument(help="The zip file of a backup.")]) -> Told[Any]:
    """Put a backup back into an empty platform, on either database."""
    from fieldmark_challenge.records import backup as backups

    counts = backups.restore(at.platform.database, at.platform.storage, source)
    return Told(None, f"{_counted(counts)} restored", {"file": str(source), **counts})


def _counted(counts: dict[str, int]) -> str:
    runs, people, kept = (
        many(counts[key], noun)
        for key, noun in (("submissions", "submission"), ("users", "account"), ("files", "file"))
    )
    return f"{runs}, {people} and {kept}"
