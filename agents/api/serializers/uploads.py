"""Serializers for uploads."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from agents.api.serializers.runs import RunBody
from agents.doors.rest.wire import check_json
from agents.models import Upload

_AS_JSON = ("queue", "output_schema", "context")
"""Fields of a run that are not text. A form contains them as JSON."""


class StoredUploadShape(serializers.Serializer[Upload]):
    """An upload. `path` and `markdown` are paths in the agent's files.

    `run` is the run whose message mentions the file; null means the next run. `markdown` is set
    when that run has started. `note` gives the reason if there is no Markdown, or if a picture is
    not sent to the model.
    """

    id = serializers.CharField()
    path = serializers.CharField()
    name = serializers.CharField(source="original_name")
    size = serializers.IntegerField()
    media_type = serializers.CharField()
    run = serializers.CharField(source="run_id", allow_null=True)
    markdown = serializers.SerializerMethodField()
    note = serializers.CharField()
    created_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)

    def get_markdown(self, upload: Upload) -> str | None:
        return upload.rendition_path or None


class StoredUploadsShape(serializers.Serializer[object]):
    """All uploads of a thread, without pages."""

    results = StoredUploadShape(many=True)


class RunForm(RunBody):
    """The fields of a run, and its files. Fields that are not text are JSON."""

    file = serializers.ListField(child=serializers.FileField(), required=False)


def run_body_of(request: Request) -> dict[str, Any]:
    """Return the fields of a form as those of a JSON body. Raises `ValidationError`."""
    found: dict[str, Any] = {}
    for name, given in request.POST.lists():
        if len(given) > 1:
            raise ValidationError({name[:100]: ["Given more than once."]})
        found[name] = _value(name, str(given[0]))
    fields = RunBody(data=found)
    fields.is_valid(raise_exception=True)
    return dict(fields.validated_data)


def _value(name: str, text: str) -> Any:
    if name not in _AS_JSON:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValidationError({name: ["Must be JSON."]}) from None
    check_json(value)
    return value


def show_uploads(uploads: Iterable[Upload]) -> dict[str, Any]:
    """Return the uploads in the form of `StoredUploadsShape`."""
    return {"results": [StoredUploadShape(upload).data for upload in uploads]}
