"""Serializers for a person's own tokens. Only the response to a creation contains a secret."""

from __future__ import annotations

import datetime

from rest_framework import serializers

from agents.doors.rest.serializers import StrictSerializer, Text
from agents.models import ApiToken, TokenScope
from agents.services.tokens import MAX_OWN_DAYS, NAME_CHARACTERS, TokenState, token_state


class TokenBody(StrictSerializer):
    name = Text(max_length=NAME_CHARACTERS)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=TokenScope.values), allow_empty=False, max_length=20
    )
    days = serializers.IntegerField(min_value=1, max_value=MAX_OWN_DAYS)


class TokenShape(serializers.Serializer[ApiToken]):
    """A token. `prefix` is its first characters, which identify it."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    state = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)
    expires_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )
    last_used_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )
    revoked_at = serializers.DateTimeField(
        format="iso-8601", default_timezone=datetime.UTC, allow_null=True
    )

    def get_state(self, token: ApiToken) -> TokenState:
        return token_state(token)


class NewTokenShape(serializers.Serializer[object]):
    """A new token. Programs send the `secret`, which is shown only once."""

    token = TokenShape()
    secret = serializers.CharField()
