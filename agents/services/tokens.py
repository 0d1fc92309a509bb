"""Creation and revocation of API tokens."""

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
HEADER = "`Authorization: Bearer vel_…`"
"""How programs send a token. The keyword `Token` is accepted too."""
NOTE_USE_EVERY = timedelta(minutes=1)
"""The precision of `last_used_at`: a write for every request would be a lock for every request."""

NAME_CHARACTERS = 100
TokenState = Literal["good", "expired", "revoked"]
MAX_DAYS = 3_650
MAX_OWN_DAYS = 365
"""The limit of people's own tokens. Only operators create longer ones."""
MAX_OWN_TOKENS = 50
"""The limit of valid tokens that a person may create."""


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
    """Create a token. The secret is returned only here and cannot be read again.

    `days` is the lifetime, from 1 to `MAX_DAYS`; None: for ever. Raises `InvalidRequest` for other
    numbers, for unknown scopes or none, and for the names that `check_name` refuses.
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
    """Create a token for a person's own programs, with a name and for at most `MAX_OWN_DAYS` days.

    Returns it with its secret. Raises the exceptions of `create_token`, and `Conflict` if the
    person has `MAX_OWN_TOKENS` valid tokens.
    """
    if not name.strip():
        raise InvalidRequest("Enter a name that describes the purpose of the token.")
    if days > MAX_OWN_DAYS:
        raise InvalidRequest(f"The lifetime of your token must be 1 to {MAX_OWN_DAYS} days.")
    # Two concurrent requests must not both get the last free place.
    get_user_model().objects.select_for_update().get(pk=user.pk)
    if in_force(ApiToken.objects.filter(user_id=user.pk)).count() >= MAX_OWN_TOKENS:
        raise Conflict(
            f"You have {MAX_OWN_TOKENS} valid tokens, which is the limit. Revoke one first.",
            code="too_many_tokens",
        )
    return create_token(user, name=name, scopes=scopes, days=days)


def in_force(tokens: QuerySet[ApiToken]) -> QuerySet[ApiToken]:
    """Return the tokens that are neither revoked nor expired."""
    lasting = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return tokens.filter(lasting, revoked_at=None)


def token_state(token: ApiToken) -> TokenState:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= timezone.now():
        return "expired"
    return "good"


def secret_in(header: str) -> str | None:
    """Return the secret in the value of an `Authorization` header; it can be invalid.

    Return None for other credentials, which are meant for a proxy: another scheme, or a bearer
    token that does not start with `vel_`.
    """
    keyword, _, secret = header.strip().partition(" ")
    secret = secret.strip()
    if keyword.lower() == "token" or (keyword.lower() == "bearer" and secret.startswith(PREFIX)):
        return secret
    return None


def authenticate_token(secret: str) -> ApiToken | None:
    """Return the token with this secret and its user, or None if it is invalid.

    Tokens that are unknown, expired or revoked, and those of inactive users, are invalid. Updates
    `last_used_at`, at most once a minute.
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
    """Store the time of use. On a full disk it is skipped: the token's owner can still read."""
    try:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    except DatabaseError as error:
        if not full_disk(error):
            raise
        logger.warning("the use of a token was not noted: %s", full_disk(error))


@transaction.atomic
def revoke_token(token_id: int) -> bool:
    """Revoke a token. Returns False if it was revoked already: that time is kept."""
    changed = ApiToken.objects.filter(pk=token_id, revoked_at=None).update(
        revoked_at=timezone.now()
    )
    if changed:
        token = ApiToken.objects.select_related("user").get(pk=token_id)
        record("token.revoked", token, name=_name(token))
    return bool(changed)


def revoke_own_token(token_id: int, *, by: AbstractBaseUser) -> ApiToken:
    """Revoke a token of `by`, unless it is revoked already. Raises `NotFound`."""
    token = tokens_for(by).filter(pk=token_id).first()
    if token is None:
        raise NotFound("You have no such token.", code="unknown_token")
    revoke_token(token.pk)
    return token


def check_name(name: str) -> None:
    """Raise `InvalidRequest` for a name that is too long, or has characters that are not printable.

    A line break is such a character. An empty name is valid.
    """
    if len(name) > NAME_CHARACTERS or not name.isprintable():
        raise InvalidRequest(f"The name is one line of up to {NAME_CHARACTERS} characters.")


def _name(token: ApiToken) -> str:
    return f"{token.prefix}… of {token.user.get_username()} {token.name}".strip()
