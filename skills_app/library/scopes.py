"""The origin of a skill as a word in its row. Names are unique in a scope.

If two scopes of an agent have a name, the scope that is first here keeps it.
"""

from __future__ import annotations

BUILT_IN = "builtin"
LIBRARY = "library"
_DIRECTORY = "directory:"
_AGENT = "agent:"


def directory_scope(path: str) -> str:
    """Return the scope of skills that are read from a directory of the host."""
    return f"{_DIRECTORY}{path}"


def agent_scope(agent_id: str) -> str:
    """Return the scope of skills that one agent owns."""
    return f"{_AGENT}{agent_id}"


def directory_of(scope: str) -> str | None:
    return scope.removeprefix(_DIRECTORY) if scope.startswith(_DIRECTORY) else None


def describe_scope(scope: str) -> str:
    """Return a scope for people.

    `built-in`, `library`, the directory's path, or `this agent's own`.
    """
    if scope == BUILT_IN:
        return "built-in"
    if scope.startswith(_AGENT):
        return "this agent's own"
    return directory_of(scope) or scope
