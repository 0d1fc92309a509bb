"""`GET /runs/{id}/todos`."""

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
from agents.features.planning.models import TodoStatus
from agents.features.planning.todos import list_after
from agents.models import TokenScope


class TodoShape(serializers.Serializer[object]):
    id = serializers.CharField()
    content = serializers.CharField()
    status = serializers.ChoiceField(choices=TodoStatus.choices)
    active_form = serializers.CharField(allow_blank=True)
    note = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    completed_at = serializers.DateTimeField(allow_null=True)


class TodosShape(serializers.Serializer[object]):
    current_task = serializers.CharField(allow_blank=True)
    results = TodoShape(many=True)


class Todos(ApiView):
    """The endpoint `GET /runs/{id}/todos`: the thread's list at the end of the run, or now."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("list_todos", "Read a run's to-do list", errors=(400,), answer=TodosShape)
    def get(self, request: Request, run_id: str) -> Response:
        read_query(StrictSerializer, request)
        found = list_after(run_of(person(request), run_id))
        return Response({"current_task": found["current_task"], "results": found["todos"]})


urlpatterns = [path("runs/<opaque_id:run_id>/todos", Todos.as_view(), name="todos")]
