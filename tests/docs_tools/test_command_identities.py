"""The page about the command line says whom each command acts as. Its help shows its arguments."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from velproject.cli.main import vel

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/command-line.md"
OF_A_USER = re.compile(r"\b(local_user|library_user|skill_named)\(")
"""Functions that return the caller's user, or read with this user's permissions."""


def commands(context: click.Context, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from commands(inner, command)
        else:
            yield inner.command_path.removeprefix("vel "), command


def listed() -> dict[str, str]:
    """Return whom each command or group in the table acts as."""
    table = PAGE.read_text("utf-8").partition("## User and operator")[2].partition("\n\nThe")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if "`" in line]
    return {name: who.strip() for who, names in rows for name in re.findall(r"`([^`]+)`", names)}


def who_of(command: str, rows: dict[str, str]) -> str:
    """Return whom a command acts as. A row with its whole name is more exact than its group's."""
    return rows.get(command) or rows[command.split()[0]]


def test_each_command_is_in_the_table() -> None:
    rows = listed()
    found = dict(commands(click.Context(vel, info_name="vel"), vel))
    who = {name: who_of(name, rows) for name in found}
    assert set(who.values()) == {"your user", "the operator", "nobody"}
    known = {*found, *(name.split()[0] for name in found), "vel TASK", "runs list --all"}
    assert set(rows) <= known, "the table names commands that do not exist"


def test_only_commands_of_a_user_read_with_the_permissions_of_a_user() -> None:
    rows = listed()
    for name, command in commands(click.Context(vel, info_name="vel"), vel):
        assert command.callback is not None
        if name == "databases list":
            continue  # it also lists the user's own databases
        code = inspect.unwrap(command.callback)
        source = code if name.startswith("agents ") else sys.modules[code.__module__]
        acts_as_user = OF_A_USER.search(inspect.getsource(source)) is not None
        wanted = who_of(name, rows) == "your user"
        assert acts_as_user == wanted, name


def test_the_help_shows_brackets_around_each_argument_that_is_optional() -> None:
    for name, command in commands(click.Context(vel, info_name="vel"), vel):
        context = click.Context(command, info_name=name)
        for argument in command.params:
            if isinstance(argument, click.Argument) and not argument.required:
                [usage] = argument.get_usage_pieces(context)
                assert usage.startswith("["), name
