"""Write the table of docs/rest-objects.md from the declarations of the REST API.

Run it with `make objects-page`. The text outside the two marks is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import django

PAGE = Path(__file__).parent / "rest-objects.md"
START = "<!-- From the declarations, by `make objects-page`. -->"
VERBS = ("list", "read", "create", "change", "delete")
END = "<!-- End of the generated part. -->"


def page(old: str, objects: Iterable[Any]) -> str:
    """Return the page with a new table between the marks, of `RestObject` instances."""
    before, _, rest = old.partition(START)
    after = rest.partition(END)[2]
    lines = [
        "| object | scope | list | read | create | change | delete | further |",
        "|---|---|---|---|---|---|---|---|",
        *map(row, objects),
    ]
    return f"{before}{START}\n\n" + "\n".join(lines) + f"\n\n{END}{after}"


def row(each: Any) -> str:
    """Return the row of one object: the operation of each verb, and who may use it."""
    cells = [f"`/{each.path}`", f"`{each.scope}`"]
    cells += [_cell(getattr(each, verb)) for verb in VERBS]
    cells.append("; ".join(f"`{name}`: {who}" for name, who in each.further.items()) or "–")
    return f"| {' | '.join(cells)} |"


def _cell(operation: tuple[str, str] | None) -> str:
    return "–" if operation is None else f"`{operation[0]}`: {operation[1]}"


if __name__ == "__main__":
    django.setup()
    from agents.api.objects import OBJECTS
    from agents.doors.rest.managed.coverage import rest_objects

    PAGE.write_text(page(PAGE.read_text(), rest_objects(OBJECTS)))
