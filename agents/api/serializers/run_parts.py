"""Serializers for to-dos, artifacts and subagents of a run."""

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
    """A file. `size` (bytes) and `url` are null if the file no longer exists."""

    path = serializers.CharField()
    what = serializers.ChoiceField(choices=["added", "changed"])
    size = serializers.IntegerField(allow_null=True)
    url = serializers.CharField(allow_null=True)


class ArtifactsShape(serializers.Serializer[object]):
    """Files. `truncated`: there are more, or the changes of some steps are no longer stored."""

    results = ArtifactShape(many=True)
    truncated = serializers.BooleanField()


class SubagentShape(RunShape):
    """A run. `subagents` are the runs that it has delegated to, in the same form."""

    subagents = serializers.SerializerMethodField()

    def get_subagents(self, run: Run) -> list[dict[str, Any]]:
        return []


class SubagentsShape(serializers.Serializer[object]):
    """A tree of runs. If `truncated` is true, there are more than 500."""

    results = SubagentShape(many=True)
    truncated = serializers.BooleanField()
