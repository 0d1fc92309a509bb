"""The table of docs/reference/rest-objects.md, from the declarations of the REST API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from docs_tools.markdown import replaced

VERBS = ("list", "read", "create", "change", "delete")


def page(old: str, objects: Iterable[Any]) -> str:
    """Return the page with a new table of `RestObject` instances between its marks."""
    lines = [
        "| object | scope | list | read | create | change | delete | further |",
        "|---|---|---|---|---|---|---|---|",
        *map(row, objects),
    ]
    return replaced(old, "\n".join(lines) + "\n")


def row(each: Any) -> str:
    """Return the row of one object: the operation of each verb, and who may use it."""
    cells = [f"`/{each.path}`", f"`{each.scope}`"]
    cells += [_cell(getattr(each, verb)) for verb in VERBS]
    cells.append("; ".join(f"`{name}`: {who}" for name, who in each.further.items()) or "–")
    return f"| {' | '.join(cells)} |"


def _cell(operation: tuple[str, str] | None) -> str:
    return "–" if operation is None else f"`{operation[0]}`: {operation[1]}"
