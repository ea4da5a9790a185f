"""`fieldmark challenge`: what organizers and admins do from the shell, on the platform itself."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import typer

from fieldmark.cli.flags_and_paths import PlainFlags


class ChallengeVerbs(PlainFlags):
    """The verbs of the group, imported when they are asked for: the help of `fieldmark` itself needs none of them."""

    path = "challenge"
    _commands: MutableMapping[str, Any]

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """The verbs by name, in the order in which a challenge meets them."""
        if not self._commands:
            self._commands = typer.main.get_group(_all_verbs()).commands
        return self._commands

    @commands.setter
    def commands(self, none_yet: MutableMapping[str, Any]) -> None:
        self._commands = none_yet


def add_to(app: typer.Typer) -> None:
    """Adds the group."""
    group = typer.Typer(cls=ChallengeVerbs, no_args_is_help=True, rich_markup_mode="markdown")
    epilog = "Example: `fieldmark challenge create fungi-2026 --benchmark fungitastic/closed --data FungiTastic`"
    app.add_typer(group, name="challenge", help="Create and manage challenges.", epilog=epilog)


def _all_verbs() -> typer.Typer:
    from fieldmark_challenge.cli import admin, code, create, lifecycle, people, settings, status

    group = typer.Typer(rich_markup_mode="markdown")
    for module in (create, settings, people, lifecycle, status, code, admin):
        module.verbs.add_to(group)
    return group
