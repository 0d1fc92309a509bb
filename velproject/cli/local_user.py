"""The account that owns what is started from this machine's command line."""

from __future__ import annotations

from contextlib import AbstractContextManager

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from agents.harness.owner import account_name
from agents.models import Door
from agents.services.audit import Origin, acting
from velproject.cli.errors import CliError


def local_user() -> User:
    """The user row of the caller, made on first use: no password, no rights beyond the own runs."""
    users = get_user_model()
    user, created = users.objects.get_or_create(username=account_name())
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    if not user.is_active:
        raise CliError(
            f"The account {user.username!r} is switched off: an administrator can switch it on."
        )
    return user


def from_command_line() -> AbstractContextManager[None]:
    """Until the end of the block, audit entries come from the caller's account on this machine.

    Commands that act as a user of Vel's say so themselves.
    """
    account = account_name()
    return acting(
        lambda: Origin(Door.CLI, credential=f"account {account}", name=f"{account} (this machine)")
    )
