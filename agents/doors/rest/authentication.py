"""Authentication with `Authorization: Bearer vel_…`. Sessions use Django REST framework's class."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from agents.models import ApiToken
from agents.services.tokens import HEADER, authenticate_token, secret_in


class TokenAuthentication(BaseAuthentication):
    """Authentication with an API token. `request.auth` is the `ApiToken` with its scopes."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, ApiToken] | None:
        """Return None without a token of Vel, so that session authentication can follow.

        An invalid token is refused, without a fallback to the session.
        """
        secret = secret_in(get_authorization_header(request).decode("latin-1"))
        if secret is None:
            return None
        if not secret.isascii() or len(secret.split()) != 1:
            raise AuthenticationFailed(f"Write the header as {HEADER}.")
        token = authenticate_token(secret)
        if token is None:
            raise AuthenticationFailed("The token is unknown, expired or revoked: make a new one.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"
