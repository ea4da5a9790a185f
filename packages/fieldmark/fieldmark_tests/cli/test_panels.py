"""Help is grouped: every command is in a panel, those that most people need on top."""

from __future__ import annotations

import click
import pytest
import typer

from fieldmark.cli.main import EXTRA_VERBS, OWN_VERBS, application
from fieldmark.cli.panels import COMMANDS, OPTIONS, ORDER, in_order


def test_every_command_is_in_one_panel():
    assert sorted(ORDER) == sorted({*OWN_VERBS, *EXTRA_VERBS}) and len(set(ORDER)) == len(ORDER)


def test_the_five_that_most_people_need_come_first_and_unknown_ones_last():
    assert in_order(["later", "score", "list", "fit"]) == ["fit", "list", "score", "later"]
    assert len(COMMANDS["Start here"]) == 5 and next(iter(COMMANDS)) == "Start here"


@pytest.mark.parametrize("verb", OPTIONS)
def test_panels_of_options_name_options_that_exist(verb):
    group = typer.main.get_command(application(verb))
    command = group.get_command(click.Context(group), verb)
    named = {name: panel for panel, names in OPTIONS[verb].items() for name in names}
    assert {one.name: one.rich_help_panel for one in command.params if one.name in named} == named
