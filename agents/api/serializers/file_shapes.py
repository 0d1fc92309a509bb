"""The forms of a thread's files and of what changed them, as `serializers.files` builds them."""

from __future__ import annotations

from rest_framework import serializers

from agents.api.serializers.files import ChangesQuery
from agents.doors.rest.serializers import PageQuery, StrictSerializer
from agents.models import SnapshotCause


class FileEntryShape(serializers.Serializer[object]):
    """`size` is in bytes, null for what is no plain file."""

    path = serializers.CharField()
    type = serializers.CharField()
    size = serializers.IntegerField(allow_null=True)


class FileEntriesShape(serializers.Serializer[object]):
    """`truncated`: there are more, ask for those below a `path`."""

    results = FileEntryShape(many=True)
    truncated = serializers.BooleanField()


class StepShape(serializers.Serializer[object]):
    """A step from one state of the files to the next; numbers of files."""

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
    """`diff` is a unified diff of a small text; `note` says what was not kept, and why."""

    path = serializers.CharField()
    kind = serializers.CharField()
    what = serializers.ChoiceField(choices=["added", "changed", "deleted"])
    size_before = serializers.IntegerField(allow_null=True)
    size_after = serializers.IntegerField(allow_null=True)
    diff = serializers.CharField(allow_null=True)
    note = serializers.CharField()


class ChangedFilesShape(serializers.Serializer[object]):
    """`total` may be more than are shown."""

    results = ChangedFileShape(many=True)
    total = serializers.IntegerField()


class LeftFileShape(serializers.Serializer[object]):
    path = serializers.CharField()
    reason = serializers.CharField()


class RestoredShape(serializers.Serializer[object]):
    """Numbers of files, and those that could not be restored."""

    written = serializers.IntegerField()
    deleted = serializers.IntegerField()
    failed = LeftFileShape(many=True)


class UploadShape(serializers.Serializer[object]):
    path = serializers.CharField()
    size = serializers.IntegerField()


class UploadedShape(serializers.Serializer[object]):
    """The files as they are called now: nothing is replaced, and names are made safe."""

    results = UploadShape(many=True)


class UploadsForm(StrictSerializer):
    """One file or several, each as `file`."""

    file = serializers.ListField(child=serializers.FileField(), allow_empty=False)


class ChangesPageQuery(ChangesQuery, PageQuery):
    """A run and a turn, or a step, for their files; or a page of the list of steps."""
