"""What the audit log tells of who used the command line."""

from __future__ import annotations

from contextlib import AbstractContextManager

from agents.models import Door
from agents.services.audit import Origin, acting
from velproject.cli.actions.local_user import account_name


def from_command_line() -> AbstractContextManager[None]:
    """Until the end of the block, entries come from the caller's account on this machine.

    Commands that act as a user of Vel's say so themselves.
    """
    account = account_name()
    return acting(
        lambda: Origin(Door.CLI, credential=f"account {account}", name=f"{account} (this machine)")
    )
