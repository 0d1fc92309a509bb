"""The databases in a version of an agent."""

from __future__ import annotations

from agents.kernel.options import AgentOptions


class DatabaseNames(AgentOptions):
    """Options that the relation `databases` writes. People do not edit them: not in `OPTIONS`."""

    databases: tuple[str, ...] = ()
    """Names of connections. Each call checks which of them the agent still has."""
    database_dialects: tuple[str, ...] = ()
    """The dialect of each of `databases`, as postgresql; empty if one is unknown."""
    writable_databases: tuple[str, ...] = ()
    """Those of `databases` that it may request to write."""
