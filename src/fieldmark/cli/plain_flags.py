"""Help without noise: a flag takes no value, so that no type stands beside it. And paths that may be addresses."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from fieldmark.cli.addresses import take_addresses


class PlainFlags(TyperGroup):
    """A group of commands whose flags, and those of all commands below, are shown by their names alone.

    Their paths may be addresses where `cli.addresses` says so.
    """

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _show_plainly(command, ctx)
            _prepare(command, cmd_name)
        return command

    def get_params(self, ctx: Any) -> Any:
        """The options of the group itself."""
        options = super().get_params(ctx)
        _without_type(options)
        return options


def _show_plainly(command: Any, ctx: Any) -> None:
    _without_type([*command.params, command.get_help_option(ctx)])
    for inner in getattr(command, "commands", {}).values():
        _show_plainly(inner, ctx)


def _prepare(command: Any, verb: str) -> None:
    take_addresses(command, verb)
    for name, inner in getattr(command, "commands", {}).items():
        _prepare(inner, f"{verb} {name}")


def _without_type(options: list[Any]) -> None:
    for option in options:
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""
