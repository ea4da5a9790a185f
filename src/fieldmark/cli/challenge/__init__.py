"""`fieldmark challenge`: what organizers and admins do from the shell, on the platform itself."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Adds the group, its verbs in the order in which a challenge meets them."""
    from fieldmark.cli.challenge import admin, code, create, lifecycle, people, settings, status

    group = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")
    for verbs in (create, settings, people, lifecycle, status, code, admin):
        verbs.add_to(group)
    epilog = "Example: `fieldmark challenge create fungi-2026 --benchmark fungitastic/closed --data FungiTastic`"
    app.add_typer(group, name="challenge", help="Make and run challenges of the platform.", epilog=epilog)
