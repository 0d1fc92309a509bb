"""Find tables by the alignment of text. Drawn lines are ignored."""

from __future__ import annotations

from dataclasses import dataclass

from pdf_reader.layout import Segment

MAX_ROW_STEP = 3.5
"""The vertical distance that ends a table, relative to the font size."""
SAME_CELL_STEP = 1.35


@dataclass(frozen=True)
class Table:
    """A table. Each row has one cell for each column. `top` is the height of the first row."""

    rows: list[list[str]]
    top: float


def find_tables(rows: list[list[Segment]], *, min_rows: int = 2) -> list[Table]:
    """Return the tables: consecutive rows with two or more cells in the same columns."""
    tables: list[Table] = []
    block: list[list[Segment]] = []
    for row in rows:
        if block and not _continues(block, row):
            tables += _finish(block, min_rows)
            block = []
        if block or len(row) > 1:
            block.append(row)
    return tables + _finish(block, min_rows)


def _continues(block: list[list[Segment]], row: list[Segment]) -> bool:
    above = block[-1][0]
    step = above.y - row[0].y
    if step > MAX_ROW_STEP * max(above.size, row[0].size):
        return False
    if len(row) > 1:
        return True
    # A row with a single piece of text continues the cell above it.
    columns = _columns(block)
    over = [at for at, (left, right) in enumerate(columns) if _meets(row[0], left, right)]
    return len(over) == 1 and len(columns) > 1 and step <= SAME_CELL_STEP * above.size


def _columns(block: list[list[Segment]]) -> list[tuple[float, float]]:
    spans = sorted((segment.x, segment.end) for row in block for segment in row)
    columns: list[tuple[float, float]] = []
    for left, right in spans:
        if columns and left <= columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    return columns


def _meets(segment: Segment, left: float, right: float) -> bool:
    return segment.x <= right and segment.end >= left


def _finish(block: list[list[Segment]], min_rows: int) -> list[Table]:
    while block and len(block[-1]) < 2:
        block = block[:-1]
    if sum(len(row) > 1 for row in block) < min_rows:
        return []
    columns = _columns(block)
    if len(columns) < 2:
        return []
    cells: list[list[str]] = []
    for row in block:
        made = [""] * len(columns)
        for segment in row:
            at = next(n for n, (left, right) in enumerate(columns) if _meets(segment, left, right))
            made[at] = f"{made[at]} {segment.text}".strip()
        if len(row) == 1 and cells:
            cells[-1] = [f"{a} {b}".strip() for a, b in zip(cells[-1], made, strict=True)]
        else:
            cells.append(made)
    return [Table(cells, block[0][0].y)] if len(cells) >= min_rows else []
