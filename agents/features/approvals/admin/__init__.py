"""The admin of approval requests and grants."""

from agents.features.approvals.admin import approvals, grants

__all__ = ["approvals", "grants"]
