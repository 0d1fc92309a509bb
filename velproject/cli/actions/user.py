"""The action of `vel user create`."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from agents.services.audit import record
from velproject.cli.errors import CliError
from velproject.cli.terminal import one_line


@transaction.atomic
def create(*, username: str, password: str, admin: bool, approver: bool, email: str) -> None:
    """Make the account, or give one that has no password yet (the command line's own) its first.

    An account that has a password is left alone: `vel` must not be a way to take it over.
    """
    users = get_user_model()
    user = users.objects.select_for_update().filter(username=username).first()
    if user is None:
        user = users(username=username, email=email)
        user.set_unusable_password()
    elif user.has_usable_password():
        raise CliError(
            f"{one_line(username)!r} has a password already: `python manage.py changepassword` "
            "or the admin changes it."
        )
    try:
        validate_password(password, user)
        user.set_password(password)
        user.is_staff = user.is_superuser = admin or user.is_superuser
        user.full_clean()
    except ValidationError as error:
        raise CliError(" ".join(error.messages)) from None
    is_new = user._state.adding
    user.save()
    record(
        "user.created" if is_new else "user.changed",
        user,
        changes={
            "password": (None, "set"),
            "is_superuser": (None, user.is_superuser),
            "approves": (None, approver),
        },
    )
    if approver:
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label="agents", codename="approve_toolcall")
        )
    print(f"{one_line(username)} can sign in{' as administrator' if user.is_superuser else ''}.")
