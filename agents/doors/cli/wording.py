"""Inputs and results of tools, and runs' totals, as short text for the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from agents.doors.cli.terminal import one_line, visible
from agents.review.json_text import one_line_of

RESULT_LINES = 6
LINE_WIDTH = 160
OTHERS_WIDTH = 40
_LOOKED_AT = 8 * LINE_WIDTH


def short_input(given: Any) -> str:
    """Return a tool's input as one short line: the first value, then the others by their names."""
    if not isinstance(given, dict) or not given:
        return one_line(one_line_of(given, _LOOKED_AT)) if given else ""
    # More names than the line has characters are ignored.
    first, *others = (
        (name, value if isinstance(value, str) else one_line_of(value, _LOOKED_AT))
        for name, value in islice(given.items(), LINE_WIDTH)
    )
    named = [f"{name}={one_line(value, OTHERS_WIDTH)}" for name, value in others]
    return one_line("  ".join([one_line(first[1]), *named]), LINE_WIDTH)


def short_output(output: str) -> list[str]:
    """Return the beginning of a tool's result as safe lines; for a command, of its output."""
    text = visible(result_text(output)).rstrip()
    lines = [line[:LINE_WIDTH] for line in text.split("\n")]
    if len(lines) > RESULT_LINES:
        lines[RESULT_LINES:] = [f"… {len(lines) - RESULT_LINES} more lines"]
    return lines


def totals(data: dict[str, Any]) -> str:
    """Return tokens and cost of a run as one line."""
    usage = data["usage"]
    read = usage.get("cache_read_tokens", 0)
    given = usage["input_tokens"] + read + usage.get("cache_write_tokens", 0)
    cached = f" ({read:,} from the cache)" if read else ""
    cost = data.get("cost")
    price = "at an unknown price" if cost is None else f"${float(cost):.4f}"
    return f"{given:,} tokens in{cached}, {usage['output_tokens']:,} out, {price}"


Result = Mapping[str, Any]


def result_text(output: str) -> str:
    """Return the text of a result. Text that is not JSON of a known form is unchanged."""
    try:
        data = json.loads(output)
    except ValueError:
        # Watchers get the beginning and the end of a long result, with a note between.
        return "(a long result)" if output.startswith('{"') else output
    if not isinstance(data, dict):
        return output
    form = next((describe for key, describe in _FORMS.items() if key in data), None)
    try:
        return form(data) if form is not None else output
    except (KeyError, TypeError, AttributeError):
        return output  # another tool's JSON with the same key


def _printed(data: Result) -> str:
    parts = [str(data.get(name) or "").rstrip("\n") for name in ("stdout", "stderr")]
    if data["exit_code"]:
        parts.append(f"exit code {data['exit_code']}")
    return "\n".join(part for part in parts if part) or "(no output)"


def _content(data: Result) -> str:
    return str(data["content"]) or "(an empty file)"


def _entries(data: Result) -> str:
    names = [
        entry["name"] + ("/" if entry.get("type") == "directory" else "")
        for entry in data["entries"]
    ]
    return "  ".join(names) or "(an empty directory)"


def _matches(data: Result) -> str:
    found = data["matches"]
    if not found:
        return "(nothing found)"
    return "\n".join(_one_match(match) for match in found)


def _one_match(match: Any) -> str:
    if not isinstance(match, dict):
        return str(match)
    return f"{match['file']}:{match['line']}: {match['content']}"


def _status(data: Result) -> str:
    rest = [
        f"{key.replace('_', ' ')}: {data[key]}" for key in data if key not in ("status", "path")
    ]
    return ", ".join([str(data["status"]), *rest])


_FORMS: dict[str, Callable[[Result], str]] = {
    "exit_code": _printed,
    "content": _content,
    "entries": _entries,
    "matches": _matches,
    "status": _status,
}
"""By the key that only this form has; the first match counts."""
