"""The account that owns runs and rows from this machine's command line."""

from __future__ import annotations

import os
import pwd
from contextlib import AbstractContextManager

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from agents.doors.cli.errors import CliError
from agents.models import Door
from agents.services.audit import Origin, acting


def account_name() -> str:
    """Return the operating system's name for the caller's uid. LOGNAME and USER are not trusted."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


def local_user() -> User:
    """Return the caller's user row. A new one has no password and no permissions.

    Raises `CliError` if the user is inactive.
    """
    users = get_user_model()
    user, created = users.objects.get_or_create(username=account_name())
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    if not user.is_active:
        raise CliError(
            f"The account {user.username!r} is inactive. An administrator can activate it."
        )
    return user


def from_command_line() -> AbstractContextManager[None]:
    """Record the caller's account on this machine in audit entries, until the end of the block.

    Commands that act as a user of Vel set their own origin.
    """
    account = account_name()
    return acting(
        lambda: Origin(Door.CLI, credential=f"account {account}", name=f"{account} (this machine)")
    )
