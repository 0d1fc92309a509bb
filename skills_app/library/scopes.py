"""Where a skill comes from, as a word in its row: within a scope each name is there once.

When two scopes of an agent have a name, the one that comes first here keeps it.
"""

from __future__ import annotations

BUILT_IN = "builtin"
LIBRARY = "library"
_DIRECTORY = "directory:"
_AGENT = "agent:"


def directory_scope(path: str) -> str:
    """Skills that are read from a directory of the host, as they are now."""
    return f"{_DIRECTORY}{path}"


def agent_scope(agent_id: str) -> str:
    """Skills that one agent owns."""
    return f"{_AGENT}{agent_id}"


def directory_of(scope: str) -> str | None:
    return scope.removeprefix(_DIRECTORY) if scope.startswith(_DIRECTORY) else None


def describe_scope(scope: str) -> str:
    """For people: `built-in`, `library`, the directory's path, or `this agent's own`."""
    if scope == BUILT_IN:
        return "built-in"
    if scope.startswith(_AGENT):
        return "this agent's own"
    return directory_of(scope) or scope
