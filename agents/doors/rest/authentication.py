"""Authentication with `Authorization: Token vel_…`. Sessions use Django REST framework's class."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from agents.models import ApiToken
from agents.services.tokens import authenticate_token


class TokenAuthentication(BaseAuthentication):
    """Authentication with an API token. `request.auth` is the `ApiToken` with its scopes."""

    keyword = "Token"

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, ApiToken] | None:
        """Return None without a `Token` header, so that session authentication can follow.

        An invalid token is refused, without a fallback to the session.
        """
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != self.keyword.lower().encode():
            return None
        if len(parts) != 2 or not parts[1].isascii():
            raise AuthenticationFailed("Write the header as `Authorization: Token vel_…`.")
        token = authenticate_token(parts[1].decode("ascii"))
        if token is None:
            raise AuthenticationFailed("The token is unknown, expired or revoked: make a new one.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return self.keyword
