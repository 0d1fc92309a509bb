"""Requests for approval, grants, and the policy that requires approvals."""

from agents.features.approvals.cli import deciding  # noqa: F401  # adds commands to the group
from agents.features.approvals.cli.grants import grants
from agents.features.approvals.cli.policy import policy
from agents.features.approvals.cli.requests import approvals
from agents.features.approvals.cli.slash import SLASH_COMMANDS

COMMANDS = (approvals, grants, policy)

__all__ = ["COMMANDS", "SLASH_COMMANDS"]
