"""Runs on the wire."""

from __future__ import annotations

import datetime

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform
from rest_framework import serializers

from agents.api.serializers.strict import Flag, PageQuery, StrictSerializer, Text
from agents.models import Message, MessageRole, Run, RunClock
from agents.services.agents import SCRIPTED
from agents.states import RunStatus


class RunBody(StrictSerializer):
    """`agents.services.runs.RunRequest` without what is for callers on this machine only."""

    agent = Text(max_length=100)
    message = Text()
    thread = Text(max_length=64, required=False, allow_null=True)
    key = Text(max_length=200, required=False, allow_null=True)
    queue = Flag(default=False)


class CancelBody(StrictSerializer):
    reason = Text(max_length=1000, default="", allow_blank=True)


class RunListQuery(PageQuery):
    status = serializers.ChoiceField(choices=RunStatus.values, required=False)
    agent = Text(max_length=100, required=False)
    thread = Text(max_length=64, required=False)


def with_run_columns(runs: QuerySet[Run]) -> QuerySet[Run]:
    """All that `RunShape` shows, in one query, without the prompts of the pinned versions."""
    final = Message.objects.filter(run=OuterRef("pk"), role=MessageRole.ASSISTANT)
    return runs.select_related("clock").annotate(
        agent_slug=F("agent_version__agent__slug"),
        provider=KeyTextTransform("provider", "agent_version__spec"),
        model=KeyTextTransform("model", "agent_version__spec"),
        final_content=Subquery(final.order_by("-turn").values("content")[:1]),
    )


class UsageShape(serializers.Serializer[RunClock]):
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cache_read_tokens = serializers.IntegerField()
    cache_write_tokens = serializers.IntegerField()
    turns = serializers.IntegerField(source="turn")


class RunShape(serializers.Serializer[Run]):
    """A row of `with_run_columns`. `cost` is US dollars, null where a price is not known."""

    id = serializers.CharField()
    thread = serializers.CharField(source="thread_id")
    # A declared field is taken off the class, so it does not hide `Field.parent`.
    parent = serializers.CharField(source="parent_id")  # type: ignore[assignment]
    agent = serializers.CharField(source="agent_slug")
    provider = serializers.CharField()
    model = serializers.CharField()
    scripted = serializers.SerializerMethodField()
    status = serializers.CharField()
    wait_reason = serializers.CharField()
    created_at = serializers.DateTimeField(default_timezone=datetime.UTC)
    started_at = serializers.DateTimeField(default_timezone=datetime.UTC)
    ended_at = serializers.DateTimeField(default_timezone=datetime.UTC)
    finish_reason = serializers.CharField()
    error = serializers.SerializerMethodField()
    usage = UsageShape(source="clock")
    cost = serializers.DecimalField(
        source="clock.cost", max_digits=None, decimal_places=6, coerce_to_string=True
    )
    output = serializers.SerializerMethodField()

    def get_scripted(self, run: Run) -> bool:
        """Whether a script played the model, so that no page takes its words for an answer."""
        return run.provider == SCRIPTED  # type: ignore[attr-defined]  # annotated

    def get_error(self, run: Run) -> dict[str, str] | None:
        if not run.error_code:
            return None
        return {"code": run.error_code, "message": run.error_message}

    def get_output(self, run: Run) -> str | None:
        """The final answer's text; what was said on the way to a failure is no answer."""
        content: str | None = run.final_content  # type: ignore[attr-defined]  # annotated
        if run.status != RunStatus.COMPLETED or content is None:
            return None
        return Message(content=content).text
