"""Endpoints to list and revoke the tokens of all users.

In the API, a user creates a token only with a browser session: see `agents.api.tokens`.
"""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from rest_framework import serializers

from agents.doors.rest.managed.fields import Computed, NameField, moment_field
from agents.doors.rest.managed.objects import Action, Managed
from agents.doors.rest.managed.views import endpoints
from agents.models import ApiToken, TokenScope
from agents.services.tokens import revoke_token, token_state


def _revoke(token: ApiToken, by: AbstractBaseUser) -> None:
    revoke_token(token.pk)


USER_TOKENS = Managed(
    model=ApiToken,
    name="user_token",
    plural="user_tokens",
    rows="user-tokens",
    what="A token of any user, without its secret. `prefix` is its first characters.",
    shown={
        "user": NameField(),
        "name": serializers.CharField(allow_blank=True),
        "prefix": serializers.CharField(),
        "scopes": serializers.ListField(child=serializers.CharField()),
        "state": Computed(token_state),
        "created_at": moment_field(),
        "expires_at": moment_field(allow_null=True),
        "last_used_at": moment_field(allow_null=True),
        "revoked_at": moment_field(allow_null=True),
    },
    filters={"user": f"user__{get_user_model().USERNAME_FIELD}"},
    creates=False,
    elsewhere={"create": "create_token"},
    who={"create": "everybody, for themselves, in a session"},
    changes=False,
    deletes=False,
    scope=TokenScope.ADMIN,
    actions=(
        Action(
            name="revoke",
            summary="Revoke a token of any user",
            call=_revoke,
            may="revoke",
            admin="revoke_selected",
        ),
    ),
)

OBJECTS = [USER_TOKENS]
urlpatterns = endpoints(USER_TOKENS)
