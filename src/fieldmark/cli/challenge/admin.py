"""Accounts and backups: what an admin does for the whole platform."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldmark.cli.challenge.options import Actor, Address, Json, Sure, answer, link_base, many
from fieldmark.cli.serve import DEFAULT_FOLDER, DatabaseUrl, FilesUrl, Folder

Who = Annotated[str, typer.Argument(help="The name or address of the account.")]


def add_to(group: typer.Typer) -> None:
    """Adds the verbs."""
    example = "Example: `fieldmark challenge "
    group.command("people", epilog=example + "people --json`")(people)
    group.command("role", epilog=example + "role ada organizer`")(role)
    group.command("disable", epilog=example + "disable mallory`")(disable)
    group.command("reset-link", epilog=example + "reset-link ada --url https://challenge.example.org`")(reset_link)
    group.command("registration", epilog=example + "registration closed`")(set_registration)
    group.command("export-account", epilog=example + "export-account ada --out ada.zip`")(export_account)
    group.command("delete-account", epilog=example + "delete-account ada --yes`")(delete_account)
    group.command("backup", epilog=example + "backup monday.zip`")(backup)
    group.command("restore", epilog=example + "restore monday.zip --folder restored`")(restore)


def people(
    folder: Folder = DEFAULT_FOLDER, database: DatabaseUrl = None, files: FilesUrl = None, as_json: Json = False
) -> None:
    """List the accounts."""
    from sqlalchemy import select

    from fieldmark.challenge.records.schema import User
    from fieldmark.challenge.running import serving
    from fieldmark.cli.printing import print_json, print_table

    with serving.open_platform(folder, database, files) as platform, platform.database.read() as session:
        listed = [
            {"name": user.name, "email": user.email, "role": user.role, "open": user.disabled_at is None}
            for user in session.scalars(select(User).order_by(User.id))
        ]
    if as_json:
        print_json(listed)
    else:
        rows = [
            [str(one["name"]), str(one["email"]), str(one["role"]), "" if one["open"] else "closed"] for one in listed
        ]
        print_table(["name", "e-mail", "role", ""], rows, numbers=False)


def role(
    who: Who,
    new: Annotated[str, typer.Argument(help="participant, organizer or admin.")],
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Give an account another role."""
    from fieldmark.challenge.people import accounts
    from fieldmark.challenge.running import serving

    with serving.open_platform(folder, database, files) as platform:
        user = platform.account(who)
        accounts.set_role(platform.database, None, user.id, new)
    answer(as_json, {"name": user.name, "before": user.role, "role": new}, f"{user.name}: {user.role} -> {new}")


def disable(
    who: Who,
    undo: Annotated[bool, typer.Option("--undo", help="Open the account again.")] = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Close an account to its owner; its runs stay."""
    from fieldmark.challenge.people import accounts
    from fieldmark.challenge.running import serving
    from fieldmark.errors import MisuseError

    with serving.open_platform(folder, database, files) as platform:
        acting, user = platform.account(actor), platform.account(who)
        if acting.role != "admin":
            raise MisuseError(f"{acting.name} is no admin, and only an admin closes accounts.")
        accounts.set_disabled(platform.database, acting, user.id, not undo)
    answer(as_json, {"name": user.name, "open": undo}, f"{user.name}: {'open again' if undo else 'closed'}")


def reset_link(
    who: Who,
    url: Address = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Print a link that sets a new password, once, within a day."""
    from fieldmark.challenge.people import accounts
    from fieldmark.challenge.running import serving
    from fieldmark.errors import MisuseError

    with serving.open_platform(folder, database, files) as platform:
        secret = accounts.make_reset(platform.database, who)
        place = link_base(platform, url)
    if secret is None:
        raise MisuseError(f"There is no open account called {who!r}.")
    link = f"{place}/reset/{secret}"
    answer(as_json, {"name": who, "link": link}, link)


def set_registration(
    state: Annotated[str, typer.Argument(help="open, or closed: only those who have a code for a challenge.")],
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Say whether everybody may make an account, or only those who have a code."""
    from fieldmark.challenge.people import registration
    from fieldmark.challenge.running import serving
    from fieldmark.errors import MisuseError

    if state not in ("open", "closed"):
        raise MisuseError(f"Found {state!r}, expected open or closed.")
    with serving.open_platform(folder, database, files) as platform:
        registration.set_closed(platform.database, platform.account(actor), state == "closed")
    answer(as_json, {"registration": state}, f"registration is {state}")


def export_account(
    who: Who,
    out: Annotated[Path, typer.Option(help="The archive to write.")],
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Write what the platform keeps about a person, for that person, with the runs they handed in."""
    from fieldmark.challenge.people import own_data
    from fieldmark.challenge.running import serving
    from fieldmark.foundation.files import appearing_file

    with serving.open_platform(folder, database, files) as platform, appearing_file(out, mode=0o600) as partial:
        user = platform.account(who)
        with platform.database.read() as session:
            own_data.write_archive(session, platform.storage, user, partial)
    answer(as_json, {"account": user.name, "file": str(out)}, f"what is kept about {user.name} is in {out}")


def delete_account(
    who: Who,
    rename_teams: Annotated[
        bool, typer.Option("--rename-teams", help="Replace names of teams in which nobody else was.")
    ] = False,
    sure: Sure = False,
    actor: Actor = None,
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Delete an account by its owner's wish: name and address go, runs and results stay under a number."""
    from fieldmark.challenge.people import deleting
    from fieldmark.challenge.running import serving
    from fieldmark.errors import MisuseError

    with serving.open_platform(folder, database, files) as platform:
        user, admin = platform.account(who), platform.account(actor)
        if not sure and not typer.confirm(f"Delete the account {user.name!r}? It does not come back.", err=True):
            raise MisuseError("Nothing was deleted. Pass --yes to delete without being asked.")
        deleting.delete_account(platform.database, admin, user.id, rename_teams=rename_teams)
    stays = f"what it handed in stays under 'deleted account {user.id}'"
    answer(as_json, {"deleted": user.id}, f"the account is deleted; {stays}")


def backup(
    out: Annotated[Path, typer.Argument(help="The zip file to write.")],
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Write the whole platform, files included, into one zip file."""
    from fieldmark.challenge.records import backup as backups
    from fieldmark.challenge.running import serving

    with serving.open_platform(folder, database, files) as platform:
        counts = backups.backup(platform.database, platform.storage, out)
    answer(as_json, {"file": str(out), **counts}, f"{_counted(counts)} in {out}")


def restore(
    source: Annotated[Path, typer.Argument(help="The zip file of a backup.")],
    folder: Folder = DEFAULT_FOLDER,
    database: DatabaseUrl = None,
    files: FilesUrl = None,
    as_json: Json = False,
) -> None:
    """Put a backup back into an empty platform, on either database."""
    from fieldmark.challenge.records import backup as backups
    from fieldmark.challenge.running import serving

    with serving.open_platform(folder, database, files, new=True) as platform:
        counts = backups.restore(platform.database, platform.storage, source)
    answer(as_json, {"file": str(source), **counts}, f"{_counted(counts)} restored")


def _counted(counts: dict[str, int]) -> str:
    runs, people, kept = (
        many(counts[key], noun)
        for key, noun in (("submissions", "submission"), ("users", "account"), ("files", "file"))
    )
    return f"{runs}, {people} and {kept}"
