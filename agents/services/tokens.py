"""Making and revoking API tokens."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from agents.disk_space import full_disk
from agents.models import ApiToken, TokenScope
from agents.selectors.visible import tokens_for
from agents.services.audit import record
from agents.services.errors import Conflict, InvalidRequest, NotFound

logger = logging.getLogger(__name__)

PREFIX = "vel_"
NOTE_USE_EVERY = timedelta(minutes=1)
"""How exact `last_used_at` is; a write for every request would be a lock for every request."""

NAME_CHARACTERS = 100
TokenState = Literal["good", "expired", "revoked"]
MAX_DAYS = 3_650
MAX_OWN_DAYS = 365
"""What people give their own tokens. Longer ones are made by who runs the server."""
MAX_OWN_TOKENS = 50
"""Tokens in force that a person may have by making them."""


def token_digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@transaction.atomic
def create_token(
    user: AbstractBaseUser,
    *,
    name: str = "",
    scopes: Sequence[str] = (TokenScope.READ, TokenScope.RUN),
    days: int | None = 90,
) -> tuple[ApiToken, str]:
    """A new token and its secret, which is shown this once and cannot be read again.

    Raises `InvalidRequest` for unknown scopes or none, a name that is no line of text, and for
    more `days` than `MAX_DAYS`; None is for ever.
    """
    check_name(name)
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise InvalidRequest(f"A token is for 1 to {MAX_DAYS} days.")
    unknown = sorted(set(scopes) - set(TokenScope.values))
    if unknown or not scopes:
        raise InvalidRequest(
            f"Unknown scopes {', '.join(unknown) or '(none given)'}; "
            f"choose from {', '.join(TokenScope.values)}."
        )
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user_id=user.pk,
        name=name,
        prefix=secret[:10],
        digest=token_digest(secret),
        scopes=sorted(set(scopes)),
        expires_at=timezone.now() + timedelta(days=days) if days is not None else None,
    )
    record(
        "token.created",
        token,
        name=_name(token),
        changes={
            "user": (None, user.get_username()),
            "scopes": (None, token.scopes),
            "expires_at": (None, token.expires_at),
        },
    )
    return token, secret


@transaction.atomic
def create_own_token(
    user: AbstractBaseUser, *, name: str, scopes: Sequence[str], days: int
) -> tuple[ApiToken, str]:
    """A token that a person makes for programs of their own: named, and for a limited time.

    Raises as `create_token` does, and `Conflict` for one token too many.
    """
    if not name.strip():
        raise InvalidRequest("Give the token a name that says what it is for.")
    if days > MAX_OWN_DAYS:
        raise InvalidRequest(f"A token of your own is for 1 to {MAX_OWN_DAYS} days.")
    # Two requests at once must not both be the last that fits.
    get_user_model().objects.select_for_update().get(pk=user.pk)
    if in_force(ApiToken.objects.filter(user_id=user.pk)).count() >= MAX_OWN_TOKENS:
        raise Conflict(
            f"You have {MAX_OWN_TOKENS} tokens in force: revoke one first.", code="too_many_tokens"
        )
    return create_token(user, name=name, scopes=scopes, days=days)


def in_force(tokens: QuerySet[ApiToken]) -> QuerySet[ApiToken]:
    """Those that are neither revoked nor expired."""
    lasting = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return tokens.filter(lasting, revoked_at=None)


def token_state(token: ApiToken) -> TokenState:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= timezone.now():
        return "expired"
    return "good"


def authenticate_token(secret: str) -> ApiToken | None:
    """The token with this secret and its user, or None: unknown, expired, revoked, user inactive.

    Notes the use in `last_used_at`, at most once a minute.
    """
    now = timezone.now()
    token = (
        ApiToken.objects.select_related("user")
        .filter(digest=token_digest(secret), revoked_at=None)
        .first()
    )
    if token is None or not token.user.is_active:
        return None
    if token.expires_at is not None and token.expires_at <= now:
        return None
    if token.last_used_at is None or token.last_used_at <= now - NOTE_USE_EVERY:
        _note_use(token, now)
    return token


def _note_use(token: ApiToken, now: datetime) -> None:
    """On a full disk without this note: its owner can still read."""
    try:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    except DatabaseError as error:
        if not full_disk(error):
            raise
        logger.warning("the use of a token was not noted: %s", full_disk(error))


@transaction.atomic
def revoke_token(token_id: int) -> bool:
    """End a token for good. False where it was revoked already: that moment stays on record."""
    changed = ApiToken.objects.filter(pk=token_id, revoked_at=None).update(
        revoked_at=timezone.now()
    )
    if changed:
        token = ApiToken.objects.select_related("user").get(pk=token_id)
        record("token.revoked", token, name=_name(token))
    return bool(changed)


def revoke_own_token(token_id: int, *, by: AbstractBaseUser) -> ApiToken:
    """End a token of one's own; nothing happens to one that has ended. Raises `NotFound`."""
    token = tokens_for(by).filter(pk=token_id).first()
    if token is None:
        raise NotFound("You have no such token.", code="unknown_token")
    revoke_token(token.pk)
    return token


def check_name(name: str) -> None:
    """Raise `InvalidRequest` for what is no line of text: names stand in lists and terminals."""
    if len(name) > NAME_CHARACTERS or not name.isprintable():
        raise InvalidRequest(f"The name is one line of up to {NAME_CHARACTERS} characters.")


def _name(token: ApiToken) -> str:
    return f"{token.prefix}… of {token.user.get_username()} {token.name}".strip()
