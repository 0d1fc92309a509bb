"""Audit entries for sign-ins, and for refused ones."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest

from agents.services.audit import record
from agents.services.request_rates import wait_for

MOST_FAILURES = 60
"""The limit of entries for refused sign-ins, per minute: anybody can cause them."""

logger = logging.getLogger(__name__)


@receiver(user_logged_in)
@transaction.atomic
def record_sign_in(request: HttpRequest | None, user: AbstractBaseUser, **others: object) -> None:
    """Record the sign-in of a person."""
    if _is_of_a_page(request):
        record("user.signed_in", user, by=user)


@receiver(user_login_failed)
@transaction.atomic
def record_failure(
    credentials: Mapping[str, Any], request: HttpRequest | None = None, **others: object
) -> None:
    """Record a refused sign-in.

    A name without a user is not stored: people type passwords into the wrong field.
    """
    if not _is_of_a_page(request):
        return
    if wait_for("failed sign-ins", MOST_FAILURES):
        logger.warning("more than %d refused sign-ins in this minute", MOST_FAILURES)
        return
    users = get_user_model()
    name = credentials.get(users.USERNAME_FIELD, "")
    user = users._default_manager.filter(**{users.USERNAME_FIELD: name}).first()
    if user is None:
        record("user.sign_in_refused", "user", note="No user has the given name.")
    else:
        record("user.sign_in_refused", user)


def _is_of_a_page(request: HttpRequest | None) -> bool:
    """Return whether a person signs in. Requests of programs have no view."""
    return request is not None and request.resolver_match is not None
