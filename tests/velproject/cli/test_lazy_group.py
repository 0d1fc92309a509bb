"""A group whose commands are in tables of several packages."""

from __future__ import annotations

import sys
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from velproject.cli.lazy_group import LazyGroup

BOTH = [{"some.files": {"copy": "Copy files."}}, {"other.budgets": {"limit": "Limit tokens."}}]


@click.command(short_help="Copy files.")
@click.option("--force", is_flag=True)
def copy(force: bool) -> int:
    """Copy every file."""
    return 7 if force else 1


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> LazyGroup:
    """Return a group with one command that can be imported, and one whose module is broken."""
    module = ModuleType("some.files")
    module.COMMANDS = (copy,)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "some", ModuleType("some"))
    monkeypatch.setitem(sys.modules, "some.files", module)
    return LazyGroup("tool", tables=BOTH)


def test_help_shows_the_commands_of_all_tables_without_imports(group: LazyGroup) -> None:
    done = CliRunner().invoke(group, ["--help"])
    assert done.exit_code == 0, done.output
    lines = done.output.partition("Commands:\n")[2].splitlines()
    assert lines == ["  copy   Copy files.", "  limit  Limit tokens."]


def test_a_command_is_imported_when_it_is_called(group: LazyGroup) -> None:
    assert group.main(["copy", "--force"], standalone_mode=False) == 7
    with pytest.raises(ModuleNotFoundError, match="other"):
        group.main(["limit"], standalone_mode=False)
    with pytest.raises(click.UsageError, match="No such command 'move'"):
        group.main(["move"], standalone_mode=False)


def test_names_are_completed_without_an_import(group: LazyGroup) -> None:
    context = click.Context(group)
    found = group.shell_complete(context, "l")
    assert [(item.value, item.help) for item in found] == [("limit", "Limit tokens.")]
    assert [item.value for item in group.shell_complete(context, "")] == ["copy", "limit"]
    assert "--help" in [item.value for item in group.shell_complete(context, "--")]


def test_two_modules_cannot_define_one_command() -> None:
    tables = [*BOTH, {"more.files": {"copy": "Copy more."}}]
    with pytest.raises(ValueError, match=r"'copy': some\.files and more\.files"):
        LazyGroup("tool", tables=tables)
