"""Reading of several values with the same name from the data of a form."""

from __future__ import annotations

from typing import Any


def listed(data: Any, name: str) -> list[str]:
    """Return the values of `name` in the data of a form, or in a dictionary."""
    if hasattr(data, "getlist"):
        return list(data.getlist(name))
    found = data.get(name, [])
    return [found] if isinstance(found, str) else list(found)
