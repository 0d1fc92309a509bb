"""Making and revoking API tokens."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from datetime import timedelta

from django.contrib.auth.base_user import AbstractBaseUser
from django.utils import timezone

from agents.models import ApiToken, TokenScope
from agents.services.errors import InvalidRequest

PREFIX = "vel_"
NOTE_USE_EVERY = timedelta(minutes=1)
"""How exact `last_used_at` is; a write for every request would be a lock for every request."""


def token_digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def create_token(
    user: AbstractBaseUser,
    *,
    name: str = "",
    scopes: Sequence[str] = (TokenScope.READ, TokenScope.RUN),
    days: int | None = 90,
) -> tuple[ApiToken, str]:
    """A new token and its secret, which is shown this once and cannot be read again."""
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
        expires_at=timezone.now() + timedelta(days=days) if days else None,
    )
    return token, secret


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
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def revoke_token(token_id: int) -> bool:
    """End a token for good. False where it was revoked already: that moment stays on record."""
    changed = ApiToken.objects.filter(pk=token_id, revoked_at=None).update(
        revoked_at=timezone.now()
    )
    return bool(changed)
