"""Credentials in the REST API: that there is one, never what it is."""

from __future__ import annotations

from rest_framework import serializers


class ConfiguredShape(serializers.Serializer[dict[str, bool]]):
    configured = serializers.BooleanField()
