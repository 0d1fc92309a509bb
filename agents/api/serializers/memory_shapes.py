"""The forms of memory files in answers, as `serializers.memory` builds them."""

from __future__ import annotations

from rest_framework import serializers

from memory.models import Operation


class MemoryEntryShape(serializers.Serializer[object]):
    path = serializers.CharField()
    content_type = serializers.CharField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    size_bytes = serializers.IntegerField()


class MemoryEntriesShape(serializers.Serializer[object]):
    files = MemoryEntryShape(many=True)


class MemoryFileShape(serializers.Serializer[object]):
    path = serializers.CharField()
    content = serializers.CharField()
    content_type = serializers.CharField()
    updated_at = serializers.DateTimeField()


class MemoryChangeShape(serializers.Serializer[object]):
    """What a change made. The last three are null where it deleted the file."""

    path = serializers.CharField()
    revision = serializers.IntegerField()
    content_type = serializers.CharField(allow_null=True)
    size_bytes = serializers.IntegerField(allow_null=True)
    updated_at = serializers.DateTimeField(allow_null=True)


class RevisionShape(serializers.Serializer[object]):
    """`by` is a user's name; `approval` the request whose decision made it."""

    number = serializers.IntegerField()
    operation = serializers.ChoiceField(choices=Operation.choices)
    size_bytes = serializers.IntegerField()
    is_deleted = serializers.BooleanField()
    reason = serializers.CharField()
    # A declared field is taken off the class, so it does not hide `Field.source`.
    source = serializers.CharField()  # type: ignore[assignment]
    by = serializers.CharField(allow_null=True)
    approval = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class RevisionContentShape(RevisionShape):
    """One state of a file; `content` is null where it was deleted then."""

    path = serializers.CharField()
    content = serializers.CharField(allow_null=True)
