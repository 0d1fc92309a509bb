"""The account that owns what is started from this machine's command line."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from agents.harness.owner import account_name
from velproject.cli.errors import CliError

__all__ = ["account_name", "local_user"]


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
