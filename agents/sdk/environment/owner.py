"""Find the owner of a program's runs."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model

from agents.doors.cli.local_user import account_name
from agents.sdk.environment.project import is_own
from agents.sdk.errors import SetupError


def owner_of(user: Any) -> Any:
    """Return the user `user` (a user or a user's name), by default the local account's user.

    The local account's user is created at the first use. Raises `SetupError` for an unknown or
    inactive user, and in a project if the name of the local account is that of a person who signs
    in there.
    """
    users = get_user_model()
    field = users.USERNAME_FIELD
    if user is not None:
        by = {"pk": user.pk} if hasattr(user, "pk") else {field: str(user)}
        found = users.objects.filter(**by).first()
        if found is None:
            raise SetupError(
                f"user: there is no user {user!s}. Create the user, or give another one."
            )
    else:
        found = _local(users, field)
    if not found.is_active:
        raise SetupError(
            f"user: the account {found.get_username()!r} is inactive. Activate it, or give another "
            "user."
        )
    return found


def _local(users: Any, field: str) -> Any:
    name = account_name()
    found = users.objects.filter(**{field: name}).first()
    if found is None:
        found = users(**{field: name})
        found.set_unusable_password()
        found.save()
    elif not is_own() and found.has_usable_password():
        raise SetupError(
            f"user is required here, because {name!r} is a user of this project who can sign in: "
            "pass user=…."
        )
    return found
