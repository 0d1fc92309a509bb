"""`GET /runs/{id}/trace`."""

from __future__ import annotations

from typing import ClassVar

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.transcript import run_of
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import StrictSerializer, read_query
from agents.features.traces.traces import Row, trace_of
from agents.models import TokenScope


class SpanUsageShape(serializers.Serializer[object]):
    """`cost` is null if the price of the model is unknown."""

    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cache_read_tokens = serializers.IntegerField()
    cache_write_tokens = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=16, decimal_places=6, allow_null=True)


class SpanShape(serializers.Serializer[object]):
    """`ended_at` is null while the span is running. `depth` is above 0 for spans of subagents."""

    run_id = serializers.CharField()
    agent = serializers.CharField()
    depth = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=["queue", "model", "tool", "wait"])
    name = serializers.CharField(allow_blank=True)
    status = serializers.ChoiceField(choices=["running", "done", "failed"])
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    step = serializers.IntegerField(allow_null=True)
    call_id = serializers.CharField(allow_blank=True)
    usage = SpanUsageShape(allow_null=True)


class TraceShape(serializers.Serializer[object]):
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField()
    omitted_runs = serializers.IntegerField(
        help_text="The number of subagents that are not in the trace, because it has too many."
    )
    spans = SpanShape(many=True)


class RunTrace(ApiView):
    """The endpoint `GET /runs/{id}/trace`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("get_run_trace", "Read where a run's time went", errors=(400,), answer=TraceShape)
    def get(self, request: Request, run_id: str) -> Response:
        read_query(StrictSerializer, request)
        user = person(request)
        found = trace_of(run_of(user, run_id), user)
        shown = {
            "started_at": found.start,
            "ended_at": found.end,
            "omitted_runs": found.omitted_runs,
            "spans": [_shown(row) for row in found.rows],
        }
        return Response(TraceShape(shown).data)


def _shown(row: Row) -> dict[str, object]:
    span = row.span
    return {
        "run_id": span.run_id,
        "agent": row.agent,
        "depth": row.depth,
        "kind": span.kind,
        "name": span.name,
        "status": span.status,
        "started_at": span.start,
        "ended_at": span.end,
        "step": span.turn,
        "call_id": span.call_id,
        "usage": span.usage,
    }


urlpatterns = [path("runs/<opaque_id:run_id>/trace", RunTrace.as_view(), name="run-trace")]
