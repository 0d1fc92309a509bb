"""docs/reference/cli.md: every command of `vel`, with its arguments and options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from docs_tools.markdown import cell, plain
from velproject.cli.main import vel

_INTRO = """\
<!-- Generated from the commands by `make reference`: do not edit. -->

# Commands of `vel`

This page lists every command with its arguments and options. `vel COMMAND --help` shows the same
text. [The command line](../guides/command-line.md) explains how to use `vel`, and its
[exit codes](../guides/command-line.md#exit-codes).

Without a command, `vel` is `vel run`. `vel --version` shows the version. You can use these options
with every command:

| option | meaning |
|---|---|
| `--debug` | Show the traceback of an error. |
| `--help`, `-h` | Show the help. |

A thread is a conversation; a session is a thread that you use from the command line. See the
[glossary](../glossary.md) for all terms, and [protected files](../guides/own-directory.md).
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_INTRO, *_commands(click.Context(vel, info_name="vel"), vel, 2)])


def _commands(parent: click.Context, group: click.Group, level: int) -> Iterator[str]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        if command is None or command.hidden:
            continue
        context = click.Context(command, info_name=name, parent=parent)
        path = context.command_path
        yield f"{'#' * level} `{path}`\n"
        yield from _text(command)
        if isinstance(command, click.Group):
            yield from _commands(context, command, level + 1)
        else:
            yield f"```text\n{' '.join([path, *_usage(command)])}\n```\n"
            yield from _options(command)


def _text(command: click.Command) -> Iterator[str]:
    for paragraph in inspect.cleandoc(command.help or "").replace("\b\n", "").split("\n\n"):
        yield f"{plain(paragraph)}\n"


def _usage(command: click.Command) -> Iterator[str]:
    if any(isinstance(parameter, click.Option) for parameter in command.params):
        yield "[OPTIONS]"
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            value = _value(parameter)
            yield value if parameter.required or value.startswith("[") else f"[{value}]"


def _options(command: click.Command) -> Iterator[str]:
    rows = [
        f"| {cell(_names(option))} | {cell(_meaning(option))} |"
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
    ]
    if rows:
        yield "\n".join(["| option | meaning |", "|---|---|", *rows, ""])


def _names(option: click.Option) -> str:
    value = "" if option.is_flag else f" {_value(option)}"
    names = ", ".join(f"`{name}{value}`" for name in option.opts)
    return "/".join([names, *(f"`{name}`" for name in option.secondary_opts)])


def _value(parameter: click.Parameter) -> str:
    """Return the name of the value in the usage, such as `DIR`."""
    if parameter.metavar:
        return parameter.metavar
    if isinstance(parameter, click.Argument) or isinstance(parameter.type, click.Choice):
        return max(parameter.opts, key=len).lstrip("-").upper()
    if isinstance(parameter.type, click.Path):
        return "PATH"
    return "N" if "integer" in parameter.type.name else parameter.type.name.upper()


def _meaning(option: click.Option) -> str:
    parts = [plain(option.help or "")]
    if option.required:
        parts.append("Required.")
    if option.multiple and not re.search("repeat|several times", parts[0]):
        parts.append("You can repeat this option.")
    if isinstance(option.type, click.Choice):
        parts.append(f"One of {', '.join(f'`{choice}`' for choice in option.type.choices)}.")
    # Other defaults depend on the machine or say nothing, such as an empty text.
    if option.show_default and isinstance(option.default, str | int | float):
        parts.append(f"Default: `{option.default}`.")
    elif option.show_default and isinstance(option.default, list | tuple) and option.default:
        parts.append(f"Default: {', '.join(f'`{value}`' for value in option.default)}.")
    if isinstance(option.type, click.IntRange | click.FloatRange):
        parts.append(f"{_range(option.type)}.")
    return " ".join(filter(None, parts))


def _range(limits: click.IntRange | click.FloatRange) -> str:
    if limits.max is None:
        return f"At least {limits.min:,}"
    return f"{limits.min or 0:,} to {limits.max:,}"
