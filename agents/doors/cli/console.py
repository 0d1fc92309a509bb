"""Texts, tables and reviews on a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from agents.kernel.lazy_modules import lazy_modules
from agents.review import Review, as_text

with lazy_modules:
    from rich import table  # takes 4 ms, which most commands do not need


_GAP = 2
"""The space between two columns."""
_SHORTEST = 12
"""The width to which a column of texts may be shortened."""


def new_console(*, stderr: bool = False) -> Console:
    """Return a console that prints text unchanged: no markup, no emoji names, no wrapping."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def print_table(
    heads: Sequence[str], rows: Iterable[Sequence[Any]], *, shorten: Collection[str] = ()
) -> None:
    """Print `table_of` on standard output. Without a terminal, nothing is shortened."""
    console = new_console()
    if not console.is_terminal:
        console.width = 1000
    shown = table_of(heads, rows, width=console.width, shorten=shorten)
    console.print(shown, soft_wrap=False, crop=False)


def table_of(
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    width: int,
    shorten: Collection[str] = (),
) -> table.Table:
    """Return a table without lines.

    Args:
        heads: The heads of the columns.
        rows: The cells of each row.
        width: The width of the terminal, in characters.
        shorten: Columns that are shortened if the last column alone cannot be short enough.

    The last column is shortened to `width`, then those of `shorten`. All other columns stay whole,
    even if the table is then wider than the terminal.
    """
    cells = list(rows)
    shown = table.Table(box=None, header_style="dim", pad_edge=False)
    widths = [
        max(cell_len(str(value)) for value in (head, *(row[at] for row in cells)))
        for at, head in enumerate(heads)
    ]
    # rich would shorten all columns alike.
    excess = sum(widths) + _GAP * (len(heads) - 1) - width
    for at in (len(heads) - 1, *(heads.index(head) for head in shorten)):
        cut = max(0, min(excess, widths[at] - max(_SHORTEST, cell_len(heads[at]))))
        widths[at] -= cut
        excess -= cut
    shown.width = sum(widths) + _GAP * (len(heads) - 1)
    for head, wide in zip(heads, widths, strict=True):
        shown.add_column(head, no_wrap=True, overflow="ellipsis", width=wide)
    for row in cells:
        shown.add_row(*row)
    return shown


def show_review(review: Review, console: Console) -> None:
    """Print `review`, in color if the terminal supports it."""
    color = console.is_terminal and console.color_system is not None and not console.no_color
    console.file.write("\n" + as_text(review, color=color) + "\n")
    console.file.flush()
