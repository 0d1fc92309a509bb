"""Serializers for threads."""

from __future__ import annotations

import datetime

from django.db.models import F, OuterRef, QuerySet, Subquery
from rest_framework import serializers

from agents.doors.rest.list_queries import CreatedQuery, ordering
from agents.doors.rest.serializers import AgentField, StrictSerializer, Text
from agents.models import NEVER_STARTED, Run, Thread
from agents.services.threads import MAX_TITLE
from agents.states import RunStatus

THREAD_ORDER = {"created_at": "id", "title": "title"}


class ThreadListQuery(CreatedQuery):
    agent = AgentField(required=False)
    key = Text(max_length=200, required=False, help_text="The session id that you gave it.")
    status = serializers.ChoiceField(
        choices=RunStatus.values, required=False, help_text="Of its last run."
    )
    ordering = ordering("-created_at", "title")


class ThreadBody(StrictSerializer):
    title = Text(max_length=MAX_TITLE)


def with_thread_columns(threads: QuerySet[Thread]) -> QuerySet[Thread]:
    """Annotate the columns of `ThreadShape`, in one query."""
    runs = Run.objects.filter(thread=OuterRef("pk"), parent=None, is_copy=False)
    last = runs.exclude(NEVER_STARTED).order_by("-number")
    return threads.annotate(
        agent_slug=F("agent__slug"),
        last_run=Subquery(last.values("pk")[:1]),
        last_status=Subquery(last.values("status")[:1]),
    )


class ThreadShape(serializers.Serializer[Thread]):
    """A thread. A fork starts with the messages of `forked_from` up to turn `forked_step`."""

    id = serializers.CharField()
    key = serializers.CharField(allow_null=True)
    agent = serializers.CharField(source="agent_slug")
    title = serializers.CharField()
    forked_from = serializers.CharField(source="forked_from_id", allow_null=True)
    forked_step = serializers.IntegerField(source="forked_turn", allow_null=True)
    last_run = serializers.CharField(allow_null=True)
    last_status = serializers.ChoiceField(choices=RunStatus.choices, allow_null=True)
    created_at = serializers.DateTimeField(format="iso-8601", default_timezone=datetime.UTC)
