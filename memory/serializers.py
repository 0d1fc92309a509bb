"""Serializers of an agent's memory, and of the requests to its endpoints."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers

from agents.doors.rest.serializers import StrictSerializer, Text
from memory.folders import MemoryEntry, RevisionEntry
from memory.models import Operation
from memory.queries.files import ShownFile

REASON_CHARACTERS = 2_000
MAX_REVISION = 2**31 - 1


class FileListQuery(StrictSerializer):
    """The files to list. The default is knowledge/. The files of `me` are your own."""

    directory = serializers.ChoiceField(
        choices=["knowledge", "skills", "me", "all"], default="knowledge"
    )


class FileBody(StrictSerializer):
    """A whole file. `base_revision` is the revision that the writer has seen, 0 for no file."""

    content = Text(allow_blank=True)
    reason = Text(max_length=REASON_CHARACTERS, default="", allow_blank=True)
    base_revision = serializers.IntegerField(required=False, min_value=0, max_value=MAX_REVISION)


class DeleteQuery(StrictSerializer):
    base_revision = serializers.IntegerField(required=False, min_value=1, max_value=MAX_REVISION)


class RevisionsQuery(StrictSerializer):
    """The history of a file; with `number`, one of its states. A cursor is a revision's number."""

    path = Text(max_length=4096)
    number = serializers.IntegerField(required=False, min_value=1, max_value=MAX_REVISION)
    cursor = serializers.IntegerField(required=False, min_value=1, max_value=MAX_REVISION)
    limit = serializers.IntegerField(min_value=1, max_value=200, default=50)


class PurgeBody(StrictSerializer):
    """The path of the file with the earlier contents to erase."""

    path = Text(max_length=4096)


class RestoreRevisionBody(StrictSerializer):
    path = Text(max_length=4096)
    revision = serializers.IntegerField(min_value=1, max_value=MAX_REVISION)


def show_entry(entry: MemoryEntry) -> dict[str, Any]:
    return {
        "path": entry.path,
        "content_type": entry.content_type,
        "created_at": _time(entry.created_at),
        "updated_at": _time(entry.updated_at),
        "size_bytes": entry.size_bytes,
    }


def show_file(file: ShownFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "content": file.content,
        "content_type": file.content_type,
        "revision": file.revision,
        "updated_at": _time(file.updated_at),
    }


def show_change(path: str, revision: int, file: ShownFile | None) -> dict[str, Any]:
    """Return the result of a change.

    `content_type`, `size_bytes` and `updated_at` are null if the file is deleted.
    """
    return {
        "path": path,
        "revision": revision,
        "content_type": file.content_type if file else None,
        "size_bytes": file.size_bytes if file else None,
        "updated_at": _time(file.updated_at) if file else None,
    }


def show_revision(entry: RevisionEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "operation": entry.operation,
        "size_bytes": entry.size_bytes,
        "is_deleted": entry.is_deleted,
        "is_purged": entry.is_purged,
        "reason": entry.reason,
        "source": entry.source,
        "by": entry.by or None,
        "approval": entry.approval_id,
        "created_at": _time(entry.created_at),
    }


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


class MemoryEntryShape(serializers.Serializer[object]):
    path = serializers.CharField()
    content_type = serializers.CharField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    size_bytes = serializers.IntegerField()


class MemoryEntriesShape(serializers.Serializer[object]):
    files = MemoryEntryShape(many=True)


class MemoryFileShape(serializers.Serializer[object]):
    """A file.

    Send its `revision` as `base_revision` to change it. It is 0 for the two read-only files.
    """

    path = serializers.CharField()
    content = serializers.CharField()
    content_type = serializers.CharField()
    revision = serializers.IntegerField()
    updated_at = serializers.DateTimeField()


class MemoryChangeShape(serializers.Serializer[object]):
    """The result of a change.

    `content_type`, `size_bytes` and `updated_at` are null if the file is deleted.
    """

    path = serializers.CharField()
    revision = serializers.IntegerField()
    content_type = serializers.CharField(allow_null=True)
    size_bytes = serializers.IntegerField(allow_null=True)
    updated_at = serializers.DateTimeField(allow_null=True)


class RevisionShape(serializers.Serializer[object]):
    """One change of a file.

    `by` is a user's name; null if no person made the change. `approval` is the id of the approval
    request that led to it; null for a direct change by a person.
    """

    number = serializers.IntegerField()
    operation = serializers.ChoiceField(choices=Operation.choices)
    size_bytes = serializers.IntegerField()
    is_deleted = serializers.BooleanField()
    is_purged = serializers.BooleanField()
    reason = serializers.CharField()
    # A declared field is removed from the class, so it does not hide `Field.source`.
    source = serializers.CharField()  # type: ignore[assignment]
    by = serializers.CharField(allow_null=True)
    approval = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class RevisionContentShape(RevisionShape):
    """One state of a file; `content` is null if this revision deleted it, or if it was purged."""

    path = serializers.CharField()
    content = serializers.CharField(allow_null=True)


class PurgeShape(serializers.Serializer[object]):
    """The numbers of revisions and edit requests whose texts were erased.

    `threads` are the ids of conversations that contain texts of the file, too, in their prompts,
    calls or requests. They stay. `DELETE /threads/{id}` erases a conversation with these texts.
    """

    path = serializers.CharField()
    revisions = serializers.IntegerField()
    requests = serializers.IntegerField()
    threads = serializers.ListField(child=serializers.CharField())
