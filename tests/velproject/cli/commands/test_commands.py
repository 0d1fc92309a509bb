"""The table of commands has the help texts of the commands, without an import of Django."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from tests.velproject.command import DEADLINE, Vel
from velproject.cli import lazy_group
from velproject.cli.commands import TABLE as BUILT_IN
from velproject.cli.main import vel

TABLE = {**BUILT_IN, **lazy_group.table()}

IMPORT_ALL = """
import sys
from importlib import import_module
from agents.doors.cli import late_imports
from velproject.cli import lazy_group
from velproject.cli.commands import TABLE

for module in (*TABLE, *lazy_group.table()):
    import_module(module)
print(*sys.modules)
waiting = {name: dict(late_imports._unfinished[name]) for name in late_imports._unfinished}
import_module("django").setup()
for name in waiting:
    late_imports.finish_imports(name)
for name in waiting:
    for key, value in vars(sys.modules[name]).items():
        if isinstance(value, late_imports._Placeholder):
            print("not imported:", name, key, file=sys.stderr)
print(*waiting)
"""


@pytest.mark.parametrize("module", TABLE)
def test_the_table_has_the_commands_of_a_module_with_their_own_help(module: str) -> None:
    commands = import_module(module).COMMANDS
    assert {command.name: command.short_help for command in commands} == TABLE[module]


def test_every_command_of_the_table_is_found() -> None:
    names = [name for commands in TABLE.values() for name in commands]
    assert vel.list_commands() == sorted(names)
    assert [vel.load(name).name for name in names] == names


@pytest.mark.slow
def test_no_file_of_a_command_imports_django_before_it_is_set_up(vel: Vel) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", IMPORT_ALL],
        env=vel.env(DJANGO_SETTINGS_MODULE="velproject.cli.settings"),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    imported, waiting = (set(line.split()) for line in done.stdout.splitlines())
    assert not imported & {"django", "rich", "pydantic", "yaml", "agents.models"}
    assert {"agents.doors.cli.boot", "velproject.cli.commands.runs.run"} <= waiting


@pytest.mark.parametrize(
    ("words", "file"), [(["--help"], "runs"), (["workspaces", "list", "--help"], "workspaces")]
)
def test_help_imports_the_files_of_one_feature(vel: Vel, words: list[str], file: str) -> None:
    program = (
        "import sys\n"
        "from velproject.cli.main import run_command_line\n"
        "run_command_line(sys.argv[1:])\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, *words],
        env=vel.env(),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    start = "velproject.cli.commands."
    files = {name.split(".")[3] for name in done.stderr.split() if name.startswith(start)}
    assert files == {file}
