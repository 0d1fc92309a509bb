"""Requests for approval, grants, and the policy that requires approvals."""

from agents.features.approvals.cli import deciding  # noqa: F401  # adds commands to the group
from agents.features.approvals.cli.grants import grants
from agents.features.approvals.cli.policy import policy
from agents.features.approvals.cli.requests import approvals

COMMANDS = (approvals, grants, policy)
