"""The fields of an input that conditions read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

COMMAND_FIELDS = ("command", "code")
PATH_FIELDS = (
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "directory",
    "dir",
    "cwd",
    "source",
    "destination",
    "attachments",
)
"""Also names that end with `_path`, `_file`, `_dir` or `_directory`."""
HOST_FIELDS = ("url", "urls", "uri", "host", "hosts", "hostname", "endpoint", "proxy", "webhook")
"""Also names that end with `_url`, `_uri` or `_host`."""

RECIPIENT_FIELDS = ("to", "cc", "bcc", "attendees", "recipients")


def holds_command(name: str) -> bool:
    return name in COMMAND_FIELDS


def holds_path(name: str) -> bool:
    return name in PATH_FIELDS or name.endswith(("_path", "_file", "_dir", "_directory"))


def holds_host(name: str) -> bool:
    return name in HOST_FIELDS or name.endswith(("_url", "_uri", "_host"))


def holds_recipient(name: str) -> bool:
    return name in RECIPIENT_FIELDS


def whole_values(tool_input: Any, wanted: Callable[[str], bool]) -> list[str] | None:
    """Return the texts of all wanted fields. None if one is neither a text nor a list of texts.

    Also None for an empty list, and for an input that is not a mapping. Used for permits. Reads
    only the top level, which contains the tool's own fields.
    """
    if not isinstance(tool_input, Mapping):
        return None
    found: list[str] = []
    for name, value in tool_input.items():
        if not wanted(name):
            continue
        several = value if isinstance(value, list) and value else [value]
        if not all(isinstance(item, str) for item in several):
            return None
        found += several
    return found


def any_values(tool_input: Any, wanted: Callable[[str], bool]) -> Iterator[str]:
    """Yield each text in a wanted field, at any depth."""
    rest = [tool_input]
    while rest:
        value = rest.pop()
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if wanted(str(name)):
                    yield from any_strings(inner)
                else:
                    rest.append(inner)
        elif isinstance(value, list):
            rest += value


def any_strings(tool_input: Any) -> Iterator[str]:
    """Yield each text in the input, including names of fields."""
    rest = [tool_input]
    while rest:
        value = rest.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            rest += map(str, value)
            rest += value.values()
        elif isinstance(value, list):
            rest += value
