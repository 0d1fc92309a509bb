"""`GET` and `PATCH /threads/{id}/mark`."""

from __future__ import annotations

from typing import ClassVar

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.files import thread_of
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import operation
from agents.doors.rest.serializers import Flag, StrictSerializer, read_body
from agents.features.conversations.conversations import mark
from agents.features.conversations.models import ConversationMark
from agents.models import Thread, TokenScope


class MarkBody(StrictSerializer):
    """A missing field keeps its value. Archiving removes the pin, and pinning restores the thread.

    If both are true, the thread is archived.
    """

    pinned = Flag(required=False)
    archived = Flag(required=False)


class MarkShape(serializers.Serializer[object]):
    pinned = serializers.BooleanField()
    archived = serializers.BooleanField()


class ThreadMark(ApiView):
    """The endpoints `GET` and `PATCH /threads/{id}/mark`."""

    scopes: ClassVar = {"GET": TokenScope.READ, "PATCH": TokenScope.RUN}

    @operation("get_thread_mark", "Read whether a thread is pinned or archived", answer=MarkShape)
    def get(self, request: Request, thread_id: str) -> Response:
        thread = thread_of(person(request), thread_id)
        return Response(_shown(ConversationMark.objects.filter(thread=thread).first()))

    @operation("mark_thread", "Pin or archive a thread", body=MarkBody, answer=MarkShape)
    def patch(self, request: Request, thread_id: str) -> Response:
        thread: Thread = thread_of(person(request), thread_id)
        return Response(_shown(mark(thread, **read_body(MarkBody, request))))


def _shown(row: ConversationMark | None) -> dict[str, bool]:
    return {
        "pinned": bool(row and row.pinned_at),
        "archived": bool(row and row.archived_at),
    }


urlpatterns = [path("threads/<opaque_id:thread_id>/mark", ThreadMark.as_view(), name="thread-mark")]
