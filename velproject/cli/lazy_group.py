"""A group of commands whose files are imported when they are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

Table = Mapping[str, Mapping[str, str]]
"""By the name of a module: names of commands with their help in one line. The module has these
commands as `COMMANDS`.
"""


class LazyGroup(click.Group):
    """Shows its commands from tables, and imports the module of a command when it is called.

    `later` is a module whose function `table` makes another table. It is imported when the commands
    are listed, or when a name is not in the other tables.
    """

    def __init__(
        self,
        *arguments: Any,
        tables: Iterable[Table],
        later: str = "",
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **more)
        self._modules: dict[str, str] = {}
        self._help: dict[str, str] = {}
        self._later = later
        for table in tables:
            self._add_table(table)

    def _add_table(self, table: Table) -> None:
        for module, commands in table.items():
            for name, text in commands.items():
                self._add_lazy(name, text, module)

    def _complete(self) -> None:
        if self._later:
            module, self._later = import_module(self._later), ""
            self._add_table(module.table())

    def _add_lazy(self, name: str, text: str, module: str) -> None:
        taken = self._modules.setdefault(name, module)
        if taken != module:
            raise ValueError(f"Two modules define the command {name!r}: {taken} and {module}.")
        self._help[name] = text

    def list_commands(self, ctx: click.Context | None = None) -> list[str]:
        self._complete()
        return sorted(self._modules)

    def load(self, name: str) -> click.Command:
        """Import the command `name` of the tables."""
        commands: Iterable[click.Command] = import_module(self._modules[name]).COMMANDS
        return next(command for command in commands if command.name == name)

    def get_command(self, ctx: click.Context | None, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._modules:
            self._complete()
        return self.load(cmd_name) if cmd_name in self._modules else None

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
