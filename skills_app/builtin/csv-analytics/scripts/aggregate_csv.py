#!/usr/bin/env python3
"""Group the rows of a CSV file and compute counts, sums, means, medians and so on.

Examples:
  aggregate_csv.py sales.csv --by region --measure sum:amount --measure count
  aggregate_csv.py sales.csv --by month:ordered_on --measure mean:amount --format csv
  aggregate_csv.py sales.csv --where "amount>=100" --by region --sort=-count --top 5
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import sys
from collections import Counter
from typing import Any

import csv_source
import reading
from cells import CellReader
from column_profile import quantile, tidy
from expressions import Measure, parse_condition, parse_group, parse_measure
from outcome import NOTHING, WRONG_CALL, Stop, deliver, run

MAX_GROUPS = 200_000
MAX_VALUES = 10_000_000


class Gathered:
    """The values of one measure in one group. The numbers are kept only for a median."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.count = 0
        self._parts: list[float] = []
        self._low, self._high = math.inf, -math.inf
        self._values: list[float] = []
        self._distinct: set[str] = set()

    def add(self, cell: str, cells: CellReader) -> bool:
        """Add a cell. Return False if the measure needs a number and the cell has none."""
        kind, value = cells.read(cell)
        if kind == "missing":
            return True
        if self.measure.function in ("count", "distinct"):
            self.count += 1
            if self.measure.function == "distinct":
                self._distinct.add(cell.strip())
            return True
        if not isinstance(value, float):
            return False
        self.count += 1
        self._low, self._high = min(self._low, value), max(self._high, value)
        if self.measure.function == "median":
            self._values.append(value)
        elif self.measure.function in ("sum", "mean"):
            self._add_exactly(value)
        return True

    def _add_exactly(self, value: float) -> None:
        """Add a number to Shewchuk's partial sums, whose total is exact in any order."""
        at = 0
        for part in self._parts:
            if abs(value) < abs(part):
                value, part = part, value
            high = value + part
            low = part - (high - value)
            if low:
                self._parts[at] = low
                at += 1
            value = high
        self._parts[at:] = [value]

    def result(self) -> float | int | None:
        """Return the value of the measure, None if the group has no values."""
        function = self.measure.function
        if function == "count":
            return self.count
        if function == "distinct":
            return len(self._distinct)
        if not self.count:
            return None
        if function == "median":
            return tidy(quantile(sorted(self._values), 0.5))
        if function in ("min", "max"):
            return tidy(self._low if function == "min" else self._high)
        total = math.fsum(self._parts)
        return tidy(total if function == "sum" else total / self.count)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    csv_source.add_arguments(parser)
    reading.add_arguments(parser)
    parser.add_argument("--by", action="append", default=[], metavar="COLUMN",
                        help="group by a column; year: quarter: month: week: day: weekday: before "
                        "a column of dates; can be repeated")  # fmt: skip
    parser.add_argument("--measure", action="append", default=[], metavar="FUNCTION:COLUMN",
                        help="count, sum:, mean:, median:, min:, max:, distinct:")  # fmt: skip
    parser.add_argument("--where", action="append", default=[], metavar="CONDITION",
                        help="column=value, also != > >= < <= and ~ (contains)")  # fmt: skip
    parser.add_argument("--sort", help="a group or measure; --sort=-NAME for the largest first")
    parser.add_argument("--top", type=int, help="show only this number of groups")
    parser.add_argument("--format", choices=["markdown", "csv", "json"], default="markdown")
    parser.add_argument("--json", action="store_const", const="json", dest="format")
    given = parser.parse_args()
    source = csv_source.open_source(given)
    header, rows, notes = aggregate(source, given)
    notes = source.all_notes() + notes
    deliver(_formatted(given.format, header, rows, notes), given.output, source.path)
    if given.format != "json":
        for note in notes:
            print(f"note: {note}", file=sys.stderr)
    return 0 if rows else NOTHING


def aggregate(
    source: csv_source.Source, given: argparse.Namespace
) -> tuple[list[str], list[list[Any]], list[str]]:
    """Return (header, rows, notes). Raises `Stop` for an unknown column or measure."""
    cells = reading.cell_reader(source, given)
    groups = [parse_group(each, source) for each in given.by]
    measures = [parse_measure(each, source) for each in given.measure or ["count"]]
    conditions = [parse_condition(each, source) for each in given.where]
    found: dict[tuple[str, ...], list[Gathered]] = {}
    odd: Counter[str] = Counter()
    kept = values = 0
    for row in source:
        if not all(condition.holds(row, cells) for condition in conditions):
            continue
        kept += 1
        key = tuple(group.key(row, cells) for group in groups)
        gathered = found.get(key)
        if gathered is None:
            if len(found) >= MAX_GROUPS:
                raise Stop(f"There are more than {MAX_GROUPS:,} groups. Group by less.", WRONG_CALL)
            gathered = found[key] = [Gathered(measure) for measure in measures]
        for each in gathered:
            column = each.measure.column
            if column is None:
                each.count += 1
                continue
            if not each.add(row[column], cells):
                odd[each.measure.label] += 1
            values += each.measure.function == "median"
        if values > MAX_VALUES:
            raise Stop(
                f"A median of more than {MAX_VALUES:,} values needs too much memory. Use mean, or "
                "narrow the rows with --where.",
                WRONG_CALL,
            )
    header = [group.label for group in groups] + [measure.label for measure in measures]
    rows = [[*key, *(each.result() for each in gathered)] for key, gathered in found.items()]
    notes = [
        f"{label}: {count:,} cells are not numbers and were left out."
        for label, count in odd.items()
    ]
    if conditions:
        notes.append(f"{kept:,} of {source.rows:,} rows meet the conditions.")
    return header, _ordered(header, rows, given), notes


def _ordered(
    header: list[str], rows: list[list[Any]], given: argparse.Namespace
) -> list[list[Any]]:
    rows = sorted(rows, key=lambda row: [str(cell) for cell in row])
    if given.sort:
        name = given.sort.removeprefix("-")
        if name not in header:
            raise Stop(f"--sort {name}: the result has {', '.join(header)}.", WRONG_CALL)
        at, down = header.index(name), given.sort.startswith("-")
        filled = [row for row in rows if row[at] is not None]
        filled.sort(key=lambda row: row[at], reverse=down)
        rows = filled + [row for row in rows if row[at] is None]
    if given.top is not None and given.top < 1:
        raise Stop("--top must be 1 or more.", WRONG_CALL)
    return rows[: given.top]


def _formatted(kind: str, header: list[str], rows: list[list[Any]], notes: list[str]) -> str:
    if kind == "json":
        result = {
            "columns": header,
            "rows": [dict(zip(header, row, strict=True)) for row in rows],
            "notes": notes,
        }
        return json.dumps(result, ensure_ascii=False, indent=2) + "\n"
    if kind == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([header, *rows])
        return out.getvalue()
    shown = [[_cell(cell) for cell in row] for row in [header, *rows]]
    lines = [f"| {' | '.join(row)} |" for row in shown]
    lines.insert(1, "|" + " --- |" * len(header))
    return "\n".join(lines) + "\n"


def _cell(cell: Any) -> str:
    text = "" if cell is None else str(cell)
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    run(main)
