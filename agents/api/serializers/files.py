"""Serializers for requests about a thread's files and changes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from agents.doors.rest.serializers import StrictSerializer, Text
from agents.models import WorkspaceSnapshot
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
