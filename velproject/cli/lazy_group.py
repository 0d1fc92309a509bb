"""A group of commands whose files are imported when they are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

Table = Mapping[str, Mapping[str, str]]
"""By the name of a module: names of commands with their help in one line. The module has these
commands as `COMMANDS`."""


class LazyGroup(click.Group):
    """Shows its commands from tables, and imports the module of a command when it is called.

    `later` returns more tables. It is called only for what the others do not have.
    """

    def __init__(
        self,
        *arguments: Any,
        tables: Iterable[Table],
        later: Callable[[], Iterable[Table]] = tuple,
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **more)
        self._modules: dict[str, str] = {}
        self._help: dict[str, str] = {}
        self._later: Callable[[], Iterable[Table]] | None = later
        self._add_tables(tables)

    def has(self, name: str) -> bool:
        """Whether there is a command `name`."""
        return name in self._modules or name in self.list_commands()

    def _add_tables(self, tables: Iterable[Table]) -> None:
        for table in tables:
            for module, commands in table.items():
                for name, text in commands.items():
                    self._add_lazy(name, text, module)

    def _add_lazy(self, name: str, text: str, module: str) -> None:
        taken = self._modules.setdefault(name, module)
        if taken != module:
            raise ValueError(f"Two modules define the command {name!r}: {taken} and {module}.")
        self._help[name] = text

    def list_commands(self, ctx: click.Context | None = None) -> list[str]:
        if self._later is not None:
            tables, self._later = self._later(), None
            self._add_tables(tables)
        return sorted(self._modules)

    def load(self, name: str) -> click.Command:
        """Import the command `name` of the tables."""
        commands: Iterable[click.Command] = import_module(self._modules[name]).COMMANDS
        return next(command for command in commands if command.name == name)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        return self.load(cmd_name) if self.has(cmd_name) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._help[name]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [
            *(
                CompletionItem(name, help=self._help[name])
                for name in self.list_commands(ctx)
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]
