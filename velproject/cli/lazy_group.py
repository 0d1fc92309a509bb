"""Click group that imports the module of a command only when the command is called.

It includes the commands of the installed features, as their `apps.py` declare them. These files are
read as text: importing them imports Django, for which `vel --help` would wait.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from agents.features import FEATURES

Table = Mapping[str, Mapping[str, str]]
"""Maps the name of a module to its commands, each with one line of help. The module has these
commands as `COMMANDS`.
"""


class LazyGroup(click.Group):
    """Shows its commands from tables, and imports the module of a command when it is called.

    `later` is a module with a function `table` that returns another table. It is imported to list
    all commands, or to find a name that is not in the other tables.
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
        """Return the command `name` of the tables, after importing its module."""
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


def table() -> Table:
    """Return the table of the features' commands.

    Prints the name of a feature that cannot be read on standard error.
    """
    found: dict[str, dict[str, str]] = {}
    for path in _installed():
        try:
            found |= {f"{path}.cli": commands for commands in _commands_of(path)}
        except (ImportError, OSError, SyntaxError, ValueError) as error:
            print(f"vel: the commands of {path} are unavailable: {error}.", file=sys.stderr)
    return found


def _installed() -> list[str]:
    """Return the names of the installed features.

    `agents.features.installed` does the same, and also reports wrong names.
    """
    disabled = _names("VEL_DISABLED_FEATURES")
    own = [path for path in FEATURES if path.rpartition(".")[2] not in disabled]
    return [*own, *_names("VEL_APPS")]


def _names(variable: str) -> list[str]:
    return [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]


def _commands_of(path: str) -> Iterator[dict[str, str]]:
    """Yield the value of `commands` in each class of a feature's `apps.py`."""
    spec = find_spec(f"{path}.apps")
    if spec is None or spec.origin is None:
        raise ImportError(f"{path}.apps does not exist")
    for node in ast.walk(ast.parse(Path(spec.origin).read_bytes())):
        for name, value in _assigned(node):
            if name == "commands":
                yield dict(ast.literal_eval(value))


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for item in node.body if isinstance(node, ast.ClassDef) else ():
        match item:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
