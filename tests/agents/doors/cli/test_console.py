"""The tables of commands, on terminals of different widths."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from agents.doors.cli.console import table_of

ID = "01m8h5n4xk5hd1735xvaapgtwx"
ROW = (ID, "waiting (approval)", "a-long-name-of-an-agent", "Count the words of each file")


def shown(width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, markup=False, emoji=False)
    table = table_of(("RUN", "STATUS", "AGENT", "TASK"), [ROW], width=width, shorten=("AGENT",))
    console.print(table, crop=False)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("width", "agent", "task"),
    [
        (101, "a-long-name-of-an-agent", "Count the words of each file"),
        (90, "a-long-name-of-an-agent", "Count the words …"),
        (80, "a-long-name-of-an…", "Count the w…"),
    ],
)
def test_the_last_column_is_shortened_first(width: int, agent: str, task: str) -> None:
    line = shown(width)[1]
    assert line == f"{ID}  waiting (approval)  {agent}  {task}"
    assert len(line) <= width


def test_ids_stay_whole_if_the_table_is_wider_than_the_terminal() -> None:
    line = shown(30)[1]
    assert line.startswith(f"{ID}  waiting (approval)  ")
    assert line.endswith("…")
