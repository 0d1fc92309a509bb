"""`GET /threads/{id}/export`."""

from __future__ import annotations

from typing import ClassVar

from django.http import StreamingHttpResponse
from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request

from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import Content, operation
from agents.doors.rest.serializers import StrictSerializer, read_query
from agents.doors.rest.streaming import take_slot
from agents.features.conversation_export.downloads import FORMATS, MARKDOWN, download
from agents.features.conversation_export.reading import Conversation
from agents.features.conversation_export.shapes import ConversationExportShape
from agents.models import TokenScope


class ExportQuery(StrictSerializer):
    # Serializers remove declared fields from the class, so this does not hide an attribute.
    format = serializers.ChoiceField(choices=list(FORMATS), default=MARKDOWN)


class ExportThread(ApiView):
    """The endpoint `GET /threads/{id}/export`: the conversation as an attachment."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "export_thread",
        "Export a thread as Markdown or JSON",
        query=ExportQuery,
        answer=Content(
            ("application/json", "text/markdown"),
            {"type": "string"},
            data=ConversationExportShape,
        ),
        description="A response that breaks off is no complete file: JSON ends with its last "
        "brace, and Markdown with the line `*End of the conversation.*`.",
    )
    def get(self, request: Request, thread_id: str) -> StreamingHttpResponse:
        query = read_query(ExportQuery, request)
        conversation = Conversation(person(request), thread_id)
        return download(conversation, query["format"], take_slot(request, kind=""))


urlpatterns = [
    path("threads/<opaque_id:thread_id>/export", ExportThread.as_view(), name="thread-export")
]
