"""Which fields of an input a condition looks at."""

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
"""And names that end in `_path`, `_file`, `_dir` or `_directory`."""
HOST_FIELDS = ("url", "urls", "uri", "host", "hosts", "hostname", "endpoint", "proxy", "webhook")
"""And names that end in `_url`, `_uri` or `_host`."""

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
    """The texts of all wanted fields; None where one is no text or list of texts.

    For permits: fields on the top level, where a tool's own are.
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
    """Every text in a wanted field, however deep."""
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
    """Every text in it, names of fields included."""
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
