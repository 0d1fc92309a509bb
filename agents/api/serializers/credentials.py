"""Credentials on the wire: that there is one, never what it is."""

from __future__ import annotations

from rest_framework import serializers

from agents.api.serializers.strict import StrictSerializer, Text


class SlackTokenBody(StrictSerializer):
    token = Text(max_length=1000)


class ConfiguredShape(serializers.Serializer[dict[str, bool]]):
    configured = serializers.BooleanField()
