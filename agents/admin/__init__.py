"""The operator's rooms: agents to define, threads and runs to read, approvals to decide, tokens,
who is told that something waits.

One file per aggregate. Pages read rows; whatever changes them is a function of `agents.services`.
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
