"""Serializers for toolboxes."""

from __future__ import annotations

from rest_framework import serializers


class PackageShape(serializers.Serializer[object]):
    name = serializers.CharField()
    version = serializers.CharField()


class ToolboxShape(serializers.Serializer[object]):
    """A toolbox. `packages` are the requested ones. `problem` is why it is unusable, or empty."""

    name = serializers.CharField()
    packages = PackageShape(many=True)
    python = serializers.CharField(allow_blank=True)
    size = serializers.IntegerField(allow_null=True, help_text="Bytes.")
    built_at = serializers.CharField(allow_blank=True)
    problem = serializers.CharField(allow_blank=True)


class ToolboxesShape(serializers.Serializer[object]):
    results = ToolboxShape(many=True)
    next_cursor = serializers.CharField(allow_null=True, help_text="Always null: there are few.")
