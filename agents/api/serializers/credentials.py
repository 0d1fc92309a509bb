"""Credentials on the wire: that there is one, never what it is."""

from __future__ import annotations

from rest_framework import serializers

from agents.api.serializers.strict import JsonObject, StrictSerializer, Text
from agents.google_workspace.access import OFFERED


class SlackTokenBody(StrictSerializer):
    token = Text(max_length=1000)


class GoogleKeyBody(StrictSerializer):
    key = JsonObject(
        help_text="The JSON file of a service account, or one of the type authorized_user."
    )
    subject = Text(
        max_length=320,
        required=False,
        default="",
        allow_blank=True,
        help_text="Whom a service account acts as.",
    )
    access = serializers.ListField(
        child=Text(max_length=50),
        required=False,
        default=list,
        max_length=len(OFFERED),
        help_text=f"What a service account may do: {', '.join(one.name for one in OFFERED)}.",
    )


class ConfiguredShape(serializers.Serializer[dict[str, bool]]):
    configured = serializers.BooleanField()
