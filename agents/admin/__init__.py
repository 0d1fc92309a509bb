"""The admin of Vel: agents, threads, runs, tokens, machines and the audit log.

One file per aggregate. Pages read rows; functions of `agents.services` change them.
"""

from agents.admin import (
    agents,
    audit,
    machines,
    runs,
    threads,
    tokens,
)

__all__ = [
    "agents",
    "audit",
    "machines",
    "runs",
    "threads",
    "tokens",
]
