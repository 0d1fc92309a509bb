"""Which paths a memory has.

A path is relative to the agent's memory, as in `knowledge/preferences.md`. What is refused is
refused for reading too: there is one spelling of each file.
"""

from __future__ import annotations

import re

MAX_PATH_CHARACTERS = 200
MAX_DEPTH = 8

MOUNT = "/memory"
"""Where file tools see an agent's memory. Commands do not."""

PROMPT = "AGENTS.md"
TOOLS = "tools.json"
READ_ONLY = frozenset({PROMPT, TOOLS})
"""Views of what the agent's own row holds."""
DIRECTORIES = ("knowledge", "skills")

# ASCII only: two names that look the same would be two files. No name begins with a dot or a
# space, none ends with one, so that an exported folder is the same on every system.
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_. -]*[A-Za-z0-9_-])?")
_SKILL = re.compile(r"skills/[a-z0-9]+(?:-[a-z0-9]+)*\.md")
_CONTENT_TYPES = {".md": "text/markdown", ".json": "application/json", ".csv": "text/csv"}


class InvalidPath(ValueError):
    """No file of a memory can have this path. The message says what one may be."""


def check_path(path: str) -> str:
    """`path` if it names a file that a memory may have. Raises `InvalidPath`."""
    if path in READ_ONLY:
        return path
    if len(path) > MAX_PATH_CHARACTERS:
        raise InvalidPath(f"The path is longer than {MAX_PATH_CHARACTERS} characters.")
    directory, *names = path.split("/")
    if directory not in DIRECTORIES or not names:
        raise InvalidPath(
            f"{path!r} is no path of the memory: it begins with knowledge/ or skills/, as in "
            "knowledge/preferences.md, without a leading slash."
        )
    if len(names) >= MAX_DEPTH:
        raise InvalidPath(f"{path!r} is deeper than {MAX_DEPTH} levels.")
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong:
        raise InvalidPath(
            f"{path!r}: the name {wrong[0]!r} does not fit. Names have letters a to z, digits, "
            "'.', '_', '-' and inner spaces; there is no '..'."
        )
    if directory == "skills" and not _SKILL.fullmatch(path):
        raise InvalidPath(
            f"{path!r}: a skill is skills/NAME.md, its name in lower-case letters, digits and "
            "single hyphens, as in skills/weekly-report.md."
        )
    return path


def check_writable(path: str) -> str:
    """`check_path`, and not one of the two that only show the agent's own settings."""
    if check_path(path) in READ_ONLY:
        raise InvalidPath(
            f"{path} is read-only: people change it in the agent's settings. "
            "Propose notes as knowledge/NAME.md."
        )
    return path


def content_type_of(path: str) -> str:
    """The media type by the name's ending; plain text where that is unknown."""
    dot = path.rfind(".")
    return _CONTENT_TYPES.get(path[dot:].lower(), "text/plain") if dot > 0 else "text/plain"
