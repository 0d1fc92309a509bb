"""What belongs to a run: its to-dos, files and subagents, on the wire."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agents.api.serializers.runs import RunShape
from agents.models import Run, TodoStatus


class TodoShape(serializers.Serializer[object]):
    id = serializers.CharField()
    content = serializers.CharField()
    status = serializers.ChoiceField(choices=TodoStatus.choices)
    active_form = serializers.CharField(allow_blank=True)
    note = serializers.CharField(allow_blank=True)


class TodosShape(serializers.Serializer[object]):
    results = TodoShape(many=True)


class ArtifactShape(serializers.Serializer[object]):
    """`size` in bytes and `url` are null where the file is not there any more."""

    path = serializers.CharField()
    what = serializers.ChoiceField(choices=["added", "changed"])
    size = serializers.IntegerField(allow_null=True)
    url = serializers.CharField(allow_null=True)


class ArtifactsShape(serializers.Serializer[object]):
    """`truncated`: there are more, or what some steps changed is no longer kept."""

    results = ArtifactShape(many=True)
    truncated = serializers.BooleanField()


class SubagentShape(RunShape):
    """A run, and in `subagents` those that it has delegated to, of the same form."""

    subagents = serializers.SerializerMethodField()

    def get_subagents(self, run: Run) -> list[dict[str, Any]]:
        return []


class SubagentsShape(serializers.Serializer[object]):
    """`truncated`: there are more than 500."""

    results = SubagentShape(many=True)
    truncated = serializers.BooleanField()
