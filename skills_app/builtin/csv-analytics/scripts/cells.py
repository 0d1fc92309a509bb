"""Convert cells to values: missing, number, date, boolean, or text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Union

Value = Union[float, datetime, bool, str, None]  # noqa: UP007  # at run time, on older Pythons too

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "--", "?", "#n/a"})
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}
_SIGNS = "€$£¥%\u00a0\u202f\u2009 '"
_POINT = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?([eE][+-]?\d{1,3})?")
_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)?(,\d+)?([eE][+-]?\d{1,3})?")
_SURELY_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+,\d+|\d+,(\d{1,2}|\d{4,}))")
_SURELY_POINT = re.compile(r"[+-]?(\d{1,3}(,\d{3})+\.\d+|\d+\.(\d{1,2}|\d{4,}))")
_CODE = re.compile(r"0\d+|\d{16,}")
_ISO = re.compile(
    r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
)
_LOCAL = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?:[T ,]+(\d{1,2}):(\d{2})(?::(\d{2}))?)?")


class CellReader:
    """Converts the cells of a file to values.

    `decimal` is the decimal mark, "." or ",". With `day_first`, 03/04/2024 is
    in April, otherwise in March.
    """

    def __init__(self, decimal: str = ".", *, day_first: bool = False) -> None:
        self.decimal = decimal
        self.day_first = day_first
        self._known: dict[str, tuple[str, Value]] = {}

    def read(self, cell: str) -> tuple[str, Value]:
        """Return (kind, value) of a cell.

        The value is None for missing, a float for number, a datetime for date, a bool for boolean,
        and a string for text.
        """
        known = self._known.get(cell)
        if known is None:
            known = self._read(cell.strip())
            if len(self._known) < 200_000:
                self._known[cell] = known
        return known

    def _read(self, cell: str) -> tuple[str, Value]:
        folded = cell.lower()
        if folded in MISSING:
            return "missing", None
        if folded in _BOOLEANS:
            return "boolean", _BOOLEANS[folded]
        number = self.number(cell)
        if number is not None:
            return "number", number
        date = self.date(cell)
        if date is not None:
            return "date", date
        return "text", cell

    def number(self, cell: str) -> float | None:
        """Return the number in a cell, None if it has none.

        Currency signs, per cent signs and separators of thousands are removed. Brackets mean a
        negative number. Codes with leading zeros or more than 15 digits are not numbers: they would
        lose digits.
        """
        if not any("0" <= each <= "9" for each in cell) or len(cell) > 40:
            return None
        negative = cell.startswith("(") and cell.endswith(")")
        plain = (cell[1:-1] if negative else cell).strip(_SIGNS).replace("\u2212", "-")
        plain = re.sub(r"(?<=\d)[\u00a0\u202f\u2009 '](?=\d{3})", "", plain)
        plain = re.sub(r"^([+-])\s*[€$£¥]\s*", r"\1", plain)
        if _CODE.fullmatch(plain):
            return None
        if not (_COMMA if self.decimal == "," else _POINT).fullmatch(plain):
            return None
        if self.decimal == ",":
            plain = plain.replace(".", "").replace(",", ".")
        else:
            plain = plain.replace(",", "")
        try:
            value = float(plain)
        except ValueError:
            return None
        return -value if negative else value

    def date(self, cell: str) -> datetime | None:
        """Return the date in a cell, None if it has none.

        The year comes first, or last with four digits. With the year last, the day is before the
        month if the separators are points or `day_first` is set. A time zone is ignored.
        """
        found = _ISO.fullmatch(cell)
        if found:
            year, month, day, *time = found.groups()
        else:
            found = _LOCAL.fullmatch(cell)
            if not found:
                return None
            first, mark, second, year, *time = found.groups()
            # With points, the day is first in every country.
            day_first = self.day_first or mark == "."
            day, month = (first, second) if day_first else (second, first)
        try:
            clock = [int(each or 0) for each in time]
            return datetime(int(year), int(month), int(day), clock[0], clock[1], clock[2])  # noqa: DTZ001
        except ValueError:
            return None


def looks_typed(cell: str) -> bool:
    """Return whether the cell is a number or a date in any notation."""
    cell = cell.strip()
    reader = CellReader()
    return (
        reader.number(cell) is not None
        or CellReader(",").number(cell) is not None
        or reader.date(cell) is not None
        or CellReader(day_first=True).date(cell) is not None
    )


def find_decimal(cells: Iterable[str]) -> str:
    """Return the decimal mark: "," if most of the clear cells have it, else "."."""
    seen: Counter[str] = Counter()
    for cell in cells:
        cell = cell.strip().strip(_SIGNS)
        if _SURELY_COMMA.fullmatch(cell):
            seen[","] += 1
        elif _SURELY_POINT.fullmatch(cell):
            seen["."] += 1
    return "," if seen[","] > seen["."] else "."


def find_day_first(cells: Iterable[str]) -> bool | None:
    """Return whether dates such as 13/04/2024 have the day first (True) or the month (False).

    Return None if the cells contradict each other, or if no cell has one.
    """
    day, month = False, False
    for cell in cells:
        found = _LOCAL.fullmatch(cell.strip())
        if found and found[2] != ".":
            day = day or int(found[1]) > 12
            month = month or int(found[3]) > 12
    return day if day != month else None


def has_unclear_dates(cells: Iterable[str]) -> bool:
    found = (_LOCAL.fullmatch(cell.strip()) for cell in cells)
    return any(each and each[2] != "." and each[1] != each[3] for each in found)
