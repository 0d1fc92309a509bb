"""Collect the profile of one column, cell by cell."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from datetime import datetime
from typing import Any

from cells import CellReader

MAX_DISTINCT = 10_000
"""The maximum number of distinct values that are counted in a column."""
MAX_KEPT = 5_000_000
"""The maximum number of numbers that are kept for quartiles, over all columns."""
ODD_SHARE = 0.05
"""The share of other cells up to which a column still counts as numbers or dates."""
_EXAMPLES = 5


class Budget:
    """How many more values may be kept, over all columns."""

    def __init__(self, left: int = MAX_KEPT) -> None:
        self.left = left


class ColumnProfile:
    """The profile of a column.

    Call `add` for each cell with the number of its row, then `as_json`.
    """

    def __init__(self, name: str, reader: CellReader, budget: Budget) -> None:
        self.name = name
        self._reader = reader
        self._budget = budget
        self._kinds: Counter[str] = Counter()
        self._values: Counter[str] = Counter()
        self._all_counted = True
        self._kept = array("d")
        self._all_kept = True
        self._numbers = 0
        self._mean = self._squares = self._sum = self._rest = 0.0
        self._low, self._high = math.inf, -math.inf
        self._first: datetime | None = None
        self._last: datetime | None = None
        self._examples: dict[str, list[str]] = {}
        self._whole = True

    def add(self, cell: str, row: int) -> None:
        kind, value = self._reader.read(cell)
        self._kinds[kind] += 1
        if kind == "missing":
            return
        if cell in self._values or len(self._values) < MAX_DISTINCT:
            self._values[cell] += 1
        else:
            self._all_counted = False
        examples = self._examples.setdefault(kind, [])
        if len(examples) < _EXAMPLES:
            examples.append(f"{cell.strip()[:60]} (row {row})")
        if isinstance(value, float):
            self._add_number(value)
        elif isinstance(value, datetime):
            self._first = min(self._first or value, value)
            self._last = max(self._last or value, value)

    def _add_number(self, value: float) -> None:
        self._numbers += 1
        step = value - self._mean
        self._mean += step / self._numbers
        self._squares += step * (value - self._mean)
        # Neumaier's sum keeps a million cents exact.
        total = self._sum + value
        bigger, smaller = (self._sum, value) if abs(self._sum) >= abs(value) else (value, self._sum)
        self._rest += (bigger - total) + smaller
        self._sum = total
        self._low, self._high = min(self._low, value), max(self._high, value)
        self._whole = self._whole and value.is_integer()
        if self._budget.left > 0:
            self._budget.left -= 1
            self._kept.append(value)
        else:
            self._all_kept = False

    @property
    def kind(self) -> str:
        """Return the kind of the column: number, date, boolean, text or empty.

        A few cells of another kind do not change the result.
        """
        present = self._kinds.total() - self._kinds["missing"]
        if not present:
            return "empty"
        for kind in ("number", "date", "boolean"):
            if self._kinds[kind] >= present * (1 - ODD_SHARE):
                return kind
        return "text"

    def as_json(self) -> dict[str, Any]:
        """Return the profile as JSON data.

        Numbers have 12 digits, so that they are equal on every machine.
        """
        kind = self.kind
        present = self._kinds.total() - self._kinds["missing"]
        result: dict[str, Any] = {
            "name": self.name,
            "type": "integer" if kind == "number" and self._whole else kind,
            "present": present,
            "missing": self._kinds["missing"],
            "distinct": len(self._values) if self._all_counted else f"more than {MAX_DISTINCT}",
        }
        if kind == "number":
            result |= self._number_facts()
        elif kind == "date" and self._first and self._last:
            result |= {"first": self._first.isoformat(), "last": self._last.isoformat()}
        elif kind != "empty" and self._all_counted:
            ranked = sorted(self._values.items(), key=lambda item: (-item[1], item[0]))
            result["most_frequent"] = [
                {"value": value[:80], "count": count} for value, count in ranked[:_EXAMPLES]
            ]
        odd = {name: self._examples[name] for name in self._examples if name != kind}
        if kind in ("number", "date", "boolean") and odd:
            result["odd_cells"] = present - self._kinds[kind]
            result["odd_examples"] = [each for listed in odd.values() for each in listed]
        return result

    def _number_facts(self) -> dict[str, Any]:
        count = self._numbers
        facts: dict[str, Any] = {
            "sum": tidy(self._sum + self._rest),
            "mean": tidy((self._sum + self._rest) / count),
            "standard_deviation": tidy(math.sqrt(self._squares / (count - 1)))
            if count > 1
            else 0.0,
            "min": tidy(self._low),
            "max": tidy(self._high),
        }
        if self._all_kept:
            ordered = sorted(self._kept)
            low, middle, high = (quantile(ordered, each) for each in (0.25, 0.5, 0.75))
            spread = 1.5 * (high - low)
            facts |= {"quartile_1": tidy(low), "median": tidy(middle), "quartile_3": tidy(high)}
            facts["outliers"] = sum(
                value < low - spread or value > high + spread for value in ordered
            )
        else:
            facts["quartiles"] = f"not computed: more than {MAX_KEPT:,} numbers"
        return facts


def quantile(ordered: list[float], share: float) -> float:
    """Return a quantile by linear interpolation, as spreadsheets and pandas do.

    `ordered` must be sorted. `share` is from 0 to 1.
    """
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def tidy(value: float) -> float | int:
    """Return `value` with 12 significant digits, a whole number as int."""
    rounded = float(f"{value:.12g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
