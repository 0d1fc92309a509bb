"""What a version of an agent says of its databases."""

from __future__ import annotations

from agents.kernel.options import AgentOptions


class DatabaseNames(AgentOptions):
    """Written by the relation `databases`: nobody types them, so they are not in `OPTIONS`."""

    databases: tuple[str, ...] = ()
    """Names of connections. Which of them the agent still has is asked anew at each call."""
    database_dialects: tuple[str, ...] = ()
    """What each of `databases` is, as postgresql; empty where that is not known."""
    writable_databases: tuple[str, ...] = ()
    """Those of `databases` to which it may ask to write."""
