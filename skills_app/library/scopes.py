"""Represent the origin of a skill as a word in its row. Names are unique within a scope.

If an agent has a name from two scopes, it uses the skill of the scope that comes first here. Only a
directory that the caller of a thread has named comes before the built-in skills.
"""

from __future__ import annotations

BUILT_IN = "builtin"
LIBRARY = "library"
_DIRECTORY = "directory:"
_AGENT = "agent:"


def directory_scope(path: str) -> str:
    """Return the scope of the skills in the directory `path` of the host."""
    return f"{_DIRECTORY}{path}"


def agent_scope(agent_id: str) -> str:
    """Return the scope of the skills that the agent owns."""
    return f"{_AGENT}{agent_id}"


def directory_of(scope: str) -> str | None:
    return scope.removeprefix(_DIRECTORY) if scope.startswith(_DIRECTORY) else None


def describe_scope(scope: str) -> str:
    """Return the scope as people read it.

    It is `built-in`, `library`, the directory's path, or `this agent's own`.
    """
    if scope == BUILT_IN:
        return "built-in"
    if scope.startswith(_AGENT):
        return "this agent's own"
    return directory_of(scope) or scope
