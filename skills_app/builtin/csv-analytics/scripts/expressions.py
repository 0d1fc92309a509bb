"""Parse the arguments that name groups, measures and conditions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cells import MISSING, CellReader
from csv_source import Source
from outcome import WRONG_CALL, Stop

_PARTS: dict[str, Callable[[datetime], str]] = {
    "year": lambda date: f"{date:%Y}",
    "quarter": lambda date: f"{date:%Y}-Q{(date.month - 1) // 3 + 1}",
    "month": lambda date: f"{date:%Y-%m}",
    "week": lambda date: "{}-W{:02d}".format(*date.isocalendar()[:2]),
    "day": lambda date: f"{date:%Y-%m-%d}",
    "weekday": lambda date: f"{date.isoweekday()} {date:%A}",
}
MEASURES = ("count", "sum", "mean", "median", "min", "max", "distinct")
_CONDITION = re.compile(r"(.+?)\s*(>=|<=|!=|=|>|<|~)\s*(.*)", re.DOTALL)


@dataclass(frozen=True)
class Group:
    """A grouping by a column, or by a part of its dates: `region`, `month:ordered_on`."""

    label: str
    column: int
    part: str = ""

    def key(self, row: list[str], cells: CellReader) -> str:
        """Return the group of a row.

        It is "(missing)" for a missing value, and "(no date)" for a text that should be a date.
        """
        cell = row[self.column].strip()
        if cell.lower() in MISSING:
            return "(missing)"
        if not self.part:
            return cell
        value = cells.read(cell)[1]
        return _PARTS[self.part](value) if isinstance(value, datetime) else "(no date)"


@dataclass(frozen=True)
class Measure:
    label: str
    function: str
    column: int | None


@dataclass(frozen=True)
class Condition:
    """A comparison of a cell with a value: as numbers or dates if both are, else as text.

    `~` means "contains", without case. A text is neither above nor below a number or a date.
    """

    column: int
    operator: str
    text: str

    def holds(self, row: list[str], cells: CellReader) -> bool:
        cell = row[self.column].strip()
        if self.operator == "~":
            return self.text.casefold() in cell.casefold()
        left: Any = cells.read(cell)
        right: Any = cells.read(self.text)
        if left[0] == right[0] and left[0] in ("number", "date"):
            a, b = left[1], right[1]
        elif self.operator in ("=", "!="):
            a, b = cell, self.text
        elif right[0] in ("number", "date"):
            # Text is neither above nor below a number.
            return False
        else:
            a, b = cell, self.text
        return {
            "=": a == b, "!=": a != b, ">": a > b, "<": a < b, ">=": a >= b, "<=": a <= b,
        }[self.operator]  # fmt: skip


def parse_group(given: str, source: Source) -> Group:
    """Return the group in `column` or `part:column`. A column with this full name has priority."""
    part, mark, column = given.partition(":")
    if mark and given not in source.header and part in _PARTS:
        return Group(given, source.column(column), part)
    return Group(given, source.column(given))


def parse_measure(given: str, source: Source) -> Measure:
    """Return the measure in `count` or `sum:amount`. Raises `Stop`."""
    function, _, column = given.partition(":")
    if function not in MEASURES:
        raise Stop(
            f"--measure {given}: write count, or one of {', '.join(MEASURES[1:])} with a column, "
            "such as sum:amount.",
            WRONG_CALL,
        )
    if not column and function != "count":
        raise Stop(f"--measure {given}: name the column, such as {function}:amount.", WRONG_CALL)
    return Measure(given, function, source.column(column) if column else None)


def parse_condition(given: str, source: Source) -> Condition:
    """Return the condition in `amount>=100`, `region=North` or `note~urgent`. Raises `Stop`."""
    for match in re.finditer(r">=|<=|!=|=|>|<|~", given):
        # A column's name may contain an operator: use the longest existing name.
        name = given[: match.start()].strip()
        if name in source.header:
            return Condition(source.column(name), match[0], given[match.end() :].strip())
    found = _CONDITION.fullmatch(given)
    if not found:
        raise Stop(
            f"--where {given!r} is not understood. Write column=value; also != > >= < <= and ~ "
            "(contains).",
            WRONG_CALL,
        )
    return Condition(source.column(found[1].strip()), found[2], found[3].strip())
