"""Serializers for a thread's files and changes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from agents.doors.rest.serializers import PageQuery, StrictSerializer, Text
from agents.models import SnapshotCause, WorkspaceSnapshot
from agents.services.files.changes import ChangedFile

_ID = r"\A[0-9A-Za-z_-]{1,64}\Z"


class FilesQuery(StrictSerializer):
    path = Text(required=False, max_length=4096)


class ContentQuery(StrictSerializer):
    path = Text(max_length=4096)


class ChangesQuery(StrictSerializer):
    """A run and a turn, or a step, to list their files. Without them, the list of steps."""

    run = serializers.RegexField(_ID, required=False)
    turn = serializers.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    step = serializers.IntegerField(required=False, min_value=1, max_value=2**53)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("run" in attrs) != ("turn" in attrs):
            raise ValidationError({"turn": ["Send run and turn together."]})
        if "run" in attrs and "step" in attrs:
            raise ValidationError({"step": ["Send a step, or a run and a turn."]})
        return attrs


class RestoreBody(StrictSerializer):
    run = serializers.RegexField(_ID, required=False)
    turn = serializers.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    step = serializers.IntegerField(required=False, min_value=1, max_value=2**53)
    to = serializers.ChoiceField(["before", "after"])

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        by_turn = {"run", "turn"} <= set(attrs)
        if by_turn == ("step" in attrs) or ("run" in attrs) != ("turn" in attrs):
            raise ValidationError({"step": ["Send a step, or a run and a turn."]})
        return attrs


def show_step(row: WorkspaceSnapshot) -> dict[str, Any]:
    return {
        "step": row.pk,
        "run": row.run_id,
        "turn": row.turn,
        "call": row.position,
        "cause": row.cause,
        "added": row.added,
        "changed": row.changed,
        "deleted": row.deleted,
        "complete": row.is_complete,
        "created_at": row.created_at.isoformat().replace("+00:00", "Z"),
    }


def show_changed_file(file: ChangedFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "kind": file.kind,
        "what": file.what,
        "size_before": file.size_before,
        "size_after": file.size_after,
        "diff": file.diff,
        "note": file.note,
    }


class FileEntryShape(serializers.Serializer[object]):
    """A file. `size` is in bytes, or null if it is not a regular file."""

    path = serializers.CharField()
    type = serializers.CharField()
    size = serializers.IntegerField(allow_null=True)


class FileEntriesShape(serializers.Serializer[object]):
    """A list of files. If `truncated` is true, list the rest with a `path`."""

    results = FileEntryShape(many=True)
    truncated = serializers.BooleanField()


class StepShape(serializers.Serializer[object]):
    """A step from one state of the files to the next.

    `added`, `changed` and `deleted` are counts of files.
    """

    step = serializers.IntegerField()
    run = serializers.CharField(allow_null=True)
    turn = serializers.IntegerField(allow_null=True)
    call = serializers.IntegerField(allow_null=True)
    cause = serializers.ChoiceField(choices=SnapshotCause.choices)
    added = serializers.IntegerField()
    changed = serializers.IntegerField()
    deleted = serializers.IntegerField()
    complete = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class ChangedFileShape(serializers.Serializer[object]):
    """A changed file. `diff` is a unified diff of a small text; `note` lists omitted data."""

    path = serializers.CharField()
    kind = serializers.CharField()
    what = serializers.ChoiceField(choices=["added", "changed", "deleted"])
    size_before = serializers.IntegerField(allow_null=True)
    size_after = serializers.IntegerField(allow_null=True)
    diff = serializers.CharField(allow_null=True)
    note = serializers.CharField()


class ChangedFilesShape(serializers.Serializer[object]):
    """The changed files. `total` may be more than the listed ones."""

    results = ChangedFileShape(many=True)
    total = serializers.IntegerField()


class LeftFileShape(serializers.Serializer[object]):
    path = serializers.CharField()
    reason = serializers.CharField()


class RestoredShape(serializers.Serializer[object]):
    """The result of a restore: numbers of files, and the files that failed."""

    written = serializers.IntegerField()
    deleted = serializers.IntegerField()
    failed = LeftFileShape(many=True)


class UploadShape(serializers.Serializer[object]):
    path = serializers.CharField()
    size = serializers.IntegerField()


class UploadedShape(serializers.Serializer[object]):
    """The stored files with their new names. Nothing is replaced, and unsafe names are changed."""

    results = UploadShape(many=True)


class UploadsForm(StrictSerializer):
    """One or more files, each as `file`."""

    file = serializers.ListField(child=serializers.FileField(), allow_empty=False)


class ChangesPageQuery(ChangesQuery, PageQuery):
    """A run and a turn, or a step, to list files. Otherwise a page of the list of steps."""
