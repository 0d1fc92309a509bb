"""The admin of Vel: agents, threads, runs, approvals, grants, tokens, machines and the audit log.

One file per aggregate. Pages read rows; functions of `agents.services` change them.
"""

from agents.admin import (
    agents,
    approvals,
    audit,
    grants,
    machines,
    runs,
    threads,
    tokens,
)

__all__ = [
    "agents",
    "approvals",
    "audit",
    "grants",
    "machines",
    "runs",
    "threads",
    "tokens",
]
