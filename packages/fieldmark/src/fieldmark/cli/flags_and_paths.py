"""Help without noise: a flag takes no value, so that no type stands beside it. And paths that may be addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from fieldmark.cli.panels import assign, in_order
from fieldmark.errors import MisuseError
from fieldmark.storage.addresses import is_address, place_text
from fieldmark.storage.local_inputs import local_input


class PlainFlags(TyperGroup):
    """A group of commands whose flags, and those of all commands below, are shown by their names alone.

    Their paths may be addresses where `cli.addresses` says so. A group within it that is of this class as well prepares
    its own commands when one is asked for.
    """

    path = ""  # the verbs that lead to this group

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _show_plainly(command, ctx)
            if not self.path:
                assign(command, cmd_name)
            _prepare(command, f"{self.path} {cmd_name}".strip())
        return command

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, as help shows them."""
        names: list[str] = super().list_commands(ctx)
        return names if self.path else in_order(names)

    def get_params(self, ctx: Any) -> Any:
        """The options of the group itself."""
        options = super().get_params(ctx)
        _without_type(options)
        return options


def _show_plainly(command: Any, ctx: Any) -> None:
    _without_type([*command.params, command.get_help_option(ctx)])
    for inner in _inner_commands(command).values():
        _show_plainly(inner, ctx)


def _prepare(command: Any, verb: str) -> None:
    take_addresses(command, verb)
    for name, inner in _inner_commands(command).items():
        _prepare(inner, f"{verb} {name}")


def _inner_commands(command: Any) -> dict[str, Any]:
    return {} if isinstance(command, PlainFlags) else getattr(command, "commands", {})


def _without_type(options: list[Any]) -> None:
    for option in options:
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""


# Roots of releases, whatever the verb.
RELEASES = {"data"}


# By verb: what is read where it lies, what is fetched, and files that are sent when they are complete.
READ = {
    "check": {"root"},
    "fit": {"add"},
    "predict": {"model"},
    "report": {"runs"},
    "score": {"runs", "truth", "classes", "media"},
}


FETCHED = {
    "score": {"receipt", "parts"},
    "compare": {"runs", "truth", "classes", "media"},
    "fit": {"split"},
    "predict": {"photos"},
    "species-at": {"model"},
    "tile": {"model", "photos"},
    "export snakeclef-2020": {"model"},
    "export darwin-core": {"run"},
    "submit": {"run"},
}


SENT = {
    "compare": {"markdown", "latex"},
    "export coco": {"out"},
    "export darwin-core": {"out"},
    "export onnx": {"out"},
    "export split": {"out"},
    "foreground": {"out"},
    "predict": {"out"},
    "report": {"out"},
    "split": {"out"},
    "tile": {"out"},
}


# What else is written, which appears all at once on a local disk alone.
OUTPUTS = {"out", "folder", "keep", "html", "overlay", "plot", "root"}


WRITE_HERE = "Write to this machine, and copy it afterwards."


COPY_FIRST = "Copy what lies there to this machine first."


def take_addresses(command: Any, verb: str) -> None:
    """Lets the paths of a command be addresses where that makes sense, and refuses them elsewhere.

    Args:
        command: As click knows it.
        verb: Its name, with that of its group in front of it.
    """
    for option in command.params:
        if option.callback is None:
            option.callback = _Taken(verb)


class _Taken:
    """What becomes of a path that is an address."""

    def __init__(self, verb: str) -> None:
        self.verb = verb

    def __call__(self, context: Any, option: Any, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._one(option, one) for one in value]
        return self._one(option, value)

    def _one(self, option: Any, value: Any) -> Any:
        if not isinstance(value, Path) or not is_address(value):
            return value
        name = option.name
        if name in RELEASES | READ.get(self.verb, set()) | SENT.get(self.verb, set()):
            return value
        if name in FETCHED.get(self.verb, set()):
            return local_input(value)
        longest = max(option.opts, key=len)
        shown = longest if longest.startswith("-") else longest.upper()
        advice = WRITE_HERE if name in OUTPUTS else COPY_FIRST
        raise MisuseError(f"{shown} takes a local path, not {place_text(value)}. {advice}")
