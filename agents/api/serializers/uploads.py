"""Uploads on the wire."""

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
"""Fields of a run that are no text: in a form they are written as JSON."""


class StoredUploadShape(serializers.Serializer[Upload]):
    """`path` and `markdown` are the agent's. `run`: whose message tells of it, null: the next.

    `markdown` is there once that run has begun; `note` says why there is none, or why a picture is
    not shown to the model.
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
    """All of a thread: there are not many."""

    results = StoredUploadShape(many=True)


class RunForm(RunBody):
    """The fields of a run, and its files. What is no text is written as JSON."""

    file = serializers.ListField(child=serializers.FileField(), required=False)


def run_body_of(request: Request) -> dict[str, Any]:
    """The fields of a form as those of a JSON body. Raises `ValidationError`."""
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
    """As `StoredUploadsShape` says."""
    return {"results": [StoredUploadShape(upload).data for upload in uploads]}
