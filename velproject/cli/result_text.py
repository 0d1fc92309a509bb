"""Results of tools for people: the content without the JSON around it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

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
