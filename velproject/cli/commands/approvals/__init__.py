"""Requests for approval, grants, and the policy that requires approvals."""

from velproject.cli.commands.approvals import deciding  # noqa: F401  # adds commands to the group
from velproject.cli.commands.approvals.grants import grants
from velproject.cli.commands.approvals.policy import policy
from velproject.cli.commands.approvals.requests import approvals

COMMANDS = (approvals, grants, policy)
