"""Serializers for responses about a thread's files and changes; see `serializers.files`."""

from __future__ import annotations

from rest_framework import serializers

from agents.api.serializers.files import ChangesQuery
from agents.doors.rest.serializers import PageQuery, StrictSerializer
from agents.models import SnapshotCause


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
    """A step from one state of the files to the next, with numbers of files."""

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
