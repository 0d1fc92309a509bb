"""Texts, tables and reviews on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console

from agents.kernel.lazy_modules import lazy_modules
from agents.review import Review, as_text

with lazy_modules:
    from rich import table  # takes 4 ms, which most commands do not need


def new_console(*, stderr: bool = False) -> Console:
    """Return a console that prints text unchanged: no markup, no emoji names, no wrapping."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print `table_of` on standard output. Without a terminal, nothing is shortened."""
    console = new_console()
    if not console.is_terminal:
        console.width = 1000
    console.print(table_of(heads, rows), soft_wrap=False, crop=False)


def table_of(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> table.Table:
    """Return a table without lines. Only the last column is shortened to the terminal's width."""
    shown = table.Table(box=None, header_style="dim", pad_edge=False)
    for head in heads:
        shown.add_column(head, no_wrap=True, overflow="ellipsis" if head == heads[-1] else "fold")
    for row in rows:
        shown.add_row(*row)
    return shown


def show_review(review: Review, console: Console) -> None:
    """Print `review`, in color if the terminal supports it."""
    color = console.is_terminal and console.color_system is not None and not console.no_color
    console.file.write("\n" + as_text(review, color=color) + "\n")
    console.file.flush()
