#!/usr/bin/env python3
"""Profile a CSV file: its format, and the type, gaps, range and odd cells of each column.

It reads the file row by row, 5 to 10 MB a second, so a large file only takes longer.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from typing import Any

import csv_source
import reading
from column_profile import Budget, ColumnProfile
from outcome import NOTHING, deliver, run

PACKAGES = ("pandas", "matplotlib", "openpyxl", "numpy")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    csv_source.add_arguments(parser)
    reading.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the profile as JSON")
    given = parser.parse_args()
    source = csv_source.open_source(given)
    cells = reading.cell_reader(source, given)
    budget = Budget()
    columns = [ColumnProfile(name, cells, budget) for name in source.header]
    for number, row in enumerate(source, 1):
        for column, cell in zip(columns, row, strict=True):
            column.add(cell, number)
    result: dict[str, Any] = source.as_json()
    result["decimal"] = cells.decimal
    result["column_profiles"] = [column.as_json() for column in columns]
    result["notes"] = source.all_notes()
    result["packages"] = [name for name in PACKAGES if importlib.util.find_spec(name)]
    result["pandas_read_csv"] = {
        "sep": source.delimiter,
        "encoding": source.encoding,
        "decimal": cells.decimal,
        "skiprows": source.skipped,
        "header": 0 if source.has_header else None,
    }
    text = json.dumps(result, ensure_ascii=False, indent=2) + "\n" if given.json else _text(result)
    deliver(text, given.output, source.path)
    if not source.rows:
        print("note: There are no rows below the header.", file=sys.stderr)
        return NOTHING
    return 0


def _text(result: dict[str, Any]) -> str:
    lines = [
        f"{result['file']}: {result['rows']:,} rows, {result['columns']} columns, encoding "
        f"{result['encoding']}, delimiter {result['delimiter']!r}, decimal {result['decimal']!r}",
        "",
    ]
    for column in result["column_profiles"]:
        rest = {key: value for key, value in column.items() if key not in ("name", "type")}
        lines.append(f"{column['name']} ({column['type']})")
        lines += [f"  {key}: {_shown(value)}" for key, value in rest.items()]
    lines += [f"note: {note}" for note in result["notes"]]
    lines.append(
        f"packages here: {', '.join(result['packages']) or 'none (standard library only)'}"
    )
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(
            f"{each['value']} ({each['count']})" if isinstance(each, dict) else str(each)
            for each in value
        )
    return str(value)


if __name__ == "__main__":
    run(main)
