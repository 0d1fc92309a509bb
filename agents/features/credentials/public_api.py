"""Credentials in the REST API: whether one exists, but never its value."""

from __future__ import annotations

from rest_framework import serializers


class ConfiguredShape(serializers.Serializer[dict[str, bool]]):
    configured = serializers.BooleanField()
