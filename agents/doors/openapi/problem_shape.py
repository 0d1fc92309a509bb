"""Serializer for problem details (RFC 9457)."""

from __future__ import annotations

from rest_framework import serializers


class ProblemShape(serializers.Serializer[object]):
    """A problem. `code` is a stable word for programs, `detail` is a message for people."""

    optional = ("errors",)

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    # Serializers remove declared fields from the class, so this does not hide `Serializer.errors`.
    errors = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()), required=False
    )
