"""The page about commands, from the command line itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer

from fieldmark.cli.main import application
from handbook.markdown import code, table


def page() -> str:
    """All commands with their options."""
    root: Any = typer.main.get_command(application())
    lines = [
        "# Commands",
        "",
        "Every command has `--help` with an example. Exit codes: 0 for done, 1 for input at fault, 2 for misuse, 130 "
        "for interrupted. `fieldmark --install-completion` lets the tab key complete commands and names.",
        "",
        table(
            ["command", ""],
            ([f"[`{' '.join(path)}`](#{'-'.join(path)})", first_line(command)] for path, command in commands(root)),
        ),
        "",
    ]
    for path, command in commands(root):
        lines += _section(path, command, root)
    return "\n".join(lines)


def commands(root: Any, path: tuple[str, ...] = ("fieldmark",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words to type."""
    for name, command in root.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def first_line(command: Any) -> str:
    """What a command does, in a line."""
    return inspect.cleandoc(command.help or "").partition("\n\n")[0].replace("\n", " ")


def _section(path: tuple[str, ...], command: Any, root: Any) -> list[str]:
    words = " ".join(path)
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    usage = " ".join([words, *(_argument(one) for one in arguments), *(["[OPTIONS]"] if options else [])])
    lines = [f"## {words} {{#{'-'.join(path)}}}", "", inspect.cleandoc(command.help or ""), "", "```", usage, "```", ""]
    if arguments:
        lines += [table(["argument", ""], ([code(_argument(one)), one.help or ""] for one in arguments)), ""]
    if options:
        rows = (
            [code(", ".join([*one.opts, *one.secondary_opts])), _type(one), _default(one), one.help or ""]
            for one in options
        )
        lines += [table(["option", "takes", "default", ""], rows), ""]
    if command.epilog:
        lines += [command.epilog, ""]
    return lines


def _argument(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper().rstrip(".")
    shown = f"{name}..." if argument.nargs != 1 else name
    return shown if argument.required else f"[{shown}]"


def _type(option: Any) -> str:
    if option.is_flag:
        return ""
    if option.metavar:
        return str(option.metavar)
    return str(option.bare_type()).removeprefix("list[").removesuffix("]") + (", repeatable" if option.multiple else "")


def _default(option: Any) -> str:
    if option.required:
        return "required"
    value = option.default
    if option.is_flag or value is None or callable(value) or value in ("", []):
        return ""
    return code(str(value))
