"""Read JSON, and detect repeated names in an object and numbers that are too large."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from outcome import UNREADABLE, Stop, input_file

AGAIN = "given several times"
"""The key that marks a repeated field: its value is then {AGAIN: [all values]}."""


def read_json(path: str, *, once: bool = True) -> Any:
    """Return the data in a JSON file.

    Raises `Stop` for invalid JSON and, with `once`, for a repeated name. A number that is too large
    for a float or has 100 digits, NaN and Infinity become text, which conditions do not compare.
    """
    try:
        value = json.loads(
            input_file(path).read_text(encoding="utf-8-sig"),
            object_pairs_hook=_object,
            parse_int=lambda text: int(text) if len(text) < 100 else text,
            parse_float=lambda text: float(text) if math.isfinite(float(text)) else text,
            parse_constant=str,
        )
        again = given_again(value)
    except (ValueError, RecursionError) as error:
        raise Stop(f"{path} is not valid JSON: {error}.", UNREADABLE) from None
    if once and again:
        raise Stop(f"{path} names {', '.join(again)} several times: keep one of each.", UNREADABLE)
    return value


def given_again(value: Any, path: str = "") -> list[str]:
    """Return the names of the repeated fields in `value`, which `read_json` has returned."""
    if isinstance(value, list):
        return [name for each in value for name in given_again(each, path)]
    if not isinstance(value, dict):
        return []
    if set(value) == {AGAIN}:
        return [path]
    return [
        name
        for key, each in value.items()
        for name in given_again(each, f"{path}.{key}" if path else key)
    ]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(name for name, _ in pairs)
    several = {
        name: {AGAIN: [value for other, value in pairs if other == name]}
        for name, count in counts.items()
        if count > 1
    }
    return {**dict(pairs), **several}
