"""The actions of `vel token`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import ApiToken
from agents.services.tokens import create_token, revoke_token
from velproject.cli.console import new_console
from velproject.cli.errors import CliError
from velproject.cli.terminal import one_line


def create(*, username: str, scopes: Sequence[str], name: str, days: int) -> None:
    """Print the secret alone on standard output, so that a script can take it."""
    token, secret = create_token(user_named(username), name=name, scopes=scopes, days=days)
    print(
        f"Token of {one_line(username)} for {', '.join(token.scopes)}, for {days} days. "
        "It is shown this once:",
        file=sys.stderr,
    )
    print(secret)


def list_tokens(*, username: str | None, as_json: bool) -> None:
    """Tokens by their prefixes; no secret is stored."""
    tokens = ApiToken.objects.select_related("user")
    if username is not None:
        tokens = tokens.filter(user=user_named(username))
    console = new_console()
    for token in tokens:
        if as_json:
            print(
                json.dumps(
                    {
                        "prefix": token.prefix,
                        "user": token.user.get_username(),
                        "name": token.name,
                        "scopes": token.scopes,
                        "state": state(token),
                        "expires_at": token.expires_at.isoformat() if token.expires_at else None,
                    }
                )
            )
            continue
        console.print(
            f"{token.prefix}…  {one_line(token.user.get_username(), 30)}  "
            f"{','.join(token.scopes)}  {state(token)}  {one_line(token.name)}"
        )


def revoke(*, prefix: str) -> None:
    """End a token at once."""
    valid = ApiToken.objects.filter(revoked_at=None)
    found = list(valid.filter(prefix__startswith=prefix)[:2]) if len(prefix) >= 6 else []
    if len(found) != 1:
        raise CliError(
            f"{'Several tokens begin' if len(found) > 1 else 'No valid token begins'} with "
            f"{one_line(prefix)!r}: copy the prefix from `vel token list`."
        )
    revoke_token(found[0].pk)
    print(f"{found[0].prefix}… is revoked.")


def user_named(username: str) -> User:
    user = get_user_model().objects.filter(username=username).first()
    if user is None:
        raise CliError(
            f"There is no user {one_line(username)!r}: vel user create {one_line(username)} "
            "makes one."
        )
    return user


def state(token: ApiToken) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= timezone.now():
        return "expired"
    return "valid"
