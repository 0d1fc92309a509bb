"""The entry point of `vel`: finds the command, or takes the first argument as the task."""

from __future__ import annotations

import errno
import gc
import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, TextIO

import click
from click.shell_completion import CompletionItem

from agents.doors.cli.errors import FAILED, INTERRUPTED, USAGE, Signalled, explain
from agents.doors.cli.terminal import use_tolerant_streams, visible
from agents.kernel.lazy_modules import lazy_modules
from velproject.cli.commands import TABLE
from velproject.cli.lazy_group import LazyGroup

with lazy_modules:
    from importlib import metadata  # takes 50 ms, and only --version needs it


_NOBODY_READS = (errno.EPIPE, errno.EIO)
"""Errors of a write after a pipe's reader or the terminal has gone."""


def show_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    try:
        click.echo(f"vel {metadata.version('vel')}")
    except metadata.PackageNotFoundError:
        click.echo("vel (not installed as a package)")
    ctx.exit()


class TaskOrCommand(LazyGroup):
    """Group of `vel`, which accepts a task or a command.

    Its help also shows the options of a task.
    """

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Return the context. For completion in a shell, options alone belong to a task."""
        if extra.get("resilient_parsing") and args and args[0].startswith("-"):
            args = ["run", *args]
        return super().make_context(info_name, args, parent, **extra)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return found
        run = self.load("run")
        with click.Context(run, info_name="run", parent=ctx) as run_ctx:
            own = {item.value for item in found}
            more = run.shell_complete(run_ctx, incomplete)
            return [*found, *(item for item in more if item.value not in own)]

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("vel", "[OPTIONS] [TASK | -]", prefix="Usage: ")
        formatter.write_usage("vel", "COMMAND …", prefix="       ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        run = self.load("run")
        with click.Context(run, info_name="run", parent=ctx) as run_ctx:
            run.format_options(run_ctx, formatter)
        super().format_options(ctx, formatter)


@click.group(
    cls=TaskOrCommand,
    tables=[TABLE],
    later="velproject.cli.lazy_group",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    callback=show_version,
    expose_value=False,
    is_eager=True,
    help="Show the version.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def vel(debug: bool) -> None:
    """Give an agent a task, for example `vel "write a haiku into haiku.txt"`.

    Without a task, vel asks for tasks in one session (`exit` ends it, `clear` starts a new
    session). `-` reads the task from standard input.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the `vel` command and exit."""
    # Imported objects are never freed, so garbage collection would only slow down the start.
    # `boot.database` turns garbage collection on again.
    gc.disable()
    code = run_command_line(list(sys.argv[1:] if arguments is None else arguments))
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            if error.errno not in _NOBODY_READS:
                raise
            _forget(stream)
    gc.freeze()
    sys.exit(code)


def run_command_line(arguments: list[str]) -> int:
    """Run one command and return its exit code. Every error becomes one line on stderr."""
    use_tolerant_streams()
    debug, arguments = _take_debug(arguments)
    try:
        result = vel.main(args=_routed(arguments), prog_name="vel", standalone_mode=False)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "vel"
        _say(f"{error.format_message()} See {command} --help.")
        return USAGE
    except click.ClickException as error:
        _say(error.format_message())
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Signalled as signal:
        return signal.exit_code
    except BrokenPipeError:
        _forget(sys.stdout)
        return FAILED
    except Exception as error:  # noqa: BLE001  # the last door: a person sees a line, not a stack
        if debug:
            traceback.print_exc()
        message, code = explain(error)
        _say(message)
        return code
    return result if isinstance(result, int) else 0


def _take_debug(arguments: list[str]) -> tuple[bool, list[str]]:
    """Return whether `--debug` occurs before `--`, and the arguments without it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [argument for argument in arguments[:end] if argument != "--debug"]
    return len(kept) < end, kept + arguments[end:]


def _routed(arguments: list[str]) -> list[str]:
    """Return `arguments` with `run` in front, unless they start with a command.

    A `--persist PATH` in front of a command is moved behind the command's name.
    """
    persist, rest = _split_persist(arguments)
    if persist and rest and rest[0] in vel.list_commands():
        depth = _depth(rest)
        return [*rest[:depth], *persist, *rest[depth:]] if depth else rest
    first = arguments[0] if arguments else ""
    commands = vel.list_commands()
    if first in commands or first in ("-h", "--help", "--version"):
        return arguments
    word = " " not in first and not first.startswith("-")
    if word and (near := get_close_matches(first, commands, cutoff=0.75)):
        raise click.UsageError(
            f"There is no command {first!r}. Did you mean `vel {near[0]}`? "
            f"To use it as a task, run `vel run {first}`."
        )
    return ["run", *arguments]


def _split_persist(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the option `--persist` if `arguments` start with it, and the rest."""
    first = arguments[0] if arguments else ""
    count = 2 if first == "--persist" else int(first.startswith("--persist="))
    return arguments[:count], arguments[count:]


def _depth(arguments: list[str]) -> int:
    """Return how many words name the command: 2 for `approvals list --json`, 0 for a group."""
    group: click.Command | None = vel
    for depth, word in enumerate(arguments):
        if not isinstance(group, click.Group):
            return depth
        group = group.get_command(click.Context(group), word)
        if group is None:
            return 0
    return 0 if isinstance(group, click.Group) else len(arguments)


def _say(message: str) -> None:
    print(f"vel: {visible(message)}", file=sys.stderr)


def _forget(stream: TextIO) -> None:
    """Discard further output: nobody reads it any more (`vel runs list | head`)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
