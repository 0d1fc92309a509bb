"""The demo's figures, computed in another way: with SQL over the daily records."""

from __future__ import annotations

import csv
import io
import sqlite3
from typing import Any

from agents.demo.task import data_bytes

TOTALS = "SELECT year, month, sum(rain) AS rain FROM days GROUP BY year, month"
BOUNDS = """
    SELECT count(*) AS length, min(date) AS first, max(date) AS last, wet
    FROM (
        SELECT date, wet, julianday(date)
               - row_number() OVER (PARTITION BY wet ORDER BY date) AS spell
        FROM days
    )
    GROUP BY wet, spell
"""


class Weather:
    """The CSV as a table `days` in memory."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:")
        self.database.execute(
            "CREATE TABLE days (date, year INT, month INT, rain REAL, wet INT, high REAL,"
            " low REAL, label)"
        )
        for row in csv.reader(io.StringIO(data_bytes().decode())):
            if row[0] != "date":
                self._insert(row)

    def _insert(self, row: list[str]) -> None:
        date, rain, high, low, _, label = row
        self.database.execute(
            "INSERT INTO days VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                date.replace("/", "-"), int(date[:4]), int(date[5:7]), float(rain),
                rain.strip("0.") != "", float(high), float(low), label,
            ),
        )  # fmt: skip

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.database.execute(query, values).fetchall()

    def row(self, query: str, *values: Any) -> tuple[Any, ...]:
        (found,) = self.rows(query, *values)
        return found

    def value(self, query: str, *values: Any) -> Any:
        (found,) = self.row(query, *values)
        return found

    def months(self) -> list[tuple[Any, ...]]:
        """Return (mean, least, most of the years' totals, wet days in %, mean high, mean low)."""
        return self.rows(
            f"""
            SELECT avg(t.rain), min(t.rain), max(t.rain), d.wet, d.high, d.low
            FROM ({TOTALS}) t
            JOIN (SELECT month, 100.0 * avg(wet) AS wet, avg(high) AS high, avg(low) AS low
                  FROM days GROUP BY month) d USING (month)
            GROUP BY month ORDER BY month
            """
        )

    def years(self) -> list[tuple[Any, ...]]:
        """Return rows of (year, rain, wet days, mean temperature, days of 30 °C or more)."""
        return self.rows(
            "SELECT year, sum(rain), sum(wet), avg((high + low) / 2), sum(high >= 30) FROM days"
            " GROUP BY year ORDER BY year"
        )

    def labels(self) -> list[tuple[Any, ...]]:
        """Return rows of (label, days, wet ones, dry ones)."""
        return self.rows(
            "SELECT label, count(*), sum(wet), sum(1 - wet) FROM days GROUP BY label ORDER BY label"
        )

    def rain_of(self, month: int, year: int) -> float:
        found: float = self.value(
            "SELECT sum(rain) FROM days WHERE month = ? AND year = ?", month, year
        )
        return found

    def wettest_half(self) -> tuple[list[int], float]:
        """Return the six wettest consecutive months, and their share of all rain in percent."""
        shares = {
            start: self.value(
                "SELECT 100.0 * sum(CASE WHEN (month - ? + 12) % 12 < 6 THEN rain END) / sum(rain)"
                " FROM days",
                start,
            )
            for start in range(1, 13)
        }
        start = max(shares, key=lambda month: shares[month])
        return [(start + step - 1) % 12 + 1 for step in range(6)], shares[start]

    def days_for_half_of_the_rain(self) -> int:
        found: int = self.value(
            "SELECT 1 + count(*) FROM ("
            " SELECT sum(rain) OVER (ORDER BY rain DESC, date) AS so_far FROM days"
            ") WHERE so_far < (SELECT sum(rain) / 2 FROM days)"
        )
        return found

    def wet_after(self, *, wet: bool) -> float:
        """Return how often the next day is wet, in percent."""
        found: float = self.value(
            "SELECT 100.0 * avg(following.wet) FROM days today JOIN days following"
            " ON following.date = date(today.date, '+1 day') WHERE today.wet = ?",
            wet,
        )
        return found

    def longest_spell(self, *, wet: bool) -> tuple[int, str, str]:
        """Return (days, first day, last day)."""
        length, first, last = self.row(
            f"SELECT length, first, last FROM ({BOUNDS}) WHERE wet = ?"
            " ORDER BY length DESC, first LIMIT 1",
            wet,
        )
        return length, first, last
