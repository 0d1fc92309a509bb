"""The operator's rooms: agents to define, threads and runs to read, approvals to decide, tokens.

One file per aggregate. Pages read rows; whatever changes them is a function of `agents.services`.
"""

from agents.admin import agents, approvals, runs, threads, tokens

__all__ = ["agents", "approvals", "runs", "threads", "tokens"]
