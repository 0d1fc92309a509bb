"""Endpoints for the messages and tool calls of a run or a thread."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.files import thread_of
from agents.api.runs import run_not_found
from agents.api.serializers.transcript import (
    CALL_ORDER,
    MessageShape,
    OneToolCallQuery,
    ToolCallQuery,
    ToolCallShape,
    TranscriptQuery,
    WholeToolCallShape,
    show_turn,
)
from agents.doors.rest.base import ApiView, person
from agents.doors.rest.operations import Page, operation
from agents.doors.rest.pagination import ordered_page, read_cursor, write_cursor
from agents.doors.rest.serializers import read_query
from agents.models import Run, TokenScope, ToolCall
from agents.selectors.conversation import turns_after
from agents.selectors.visible import runs_for
from agents.services.errors import NotFound

ORDER = "transcript"


class RunTranscript(ApiView):
    """The endpoint `GET /runs/{id}/transcript`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "get_run_transcript",
        "Read what was said in a run",
        query=TranscriptQuery,
        answer=Page(MessageShape),
    )
    def get(self, request: Request, run_id: str) -> Response:
        run = run_of(person(request), run_id)
        return _transcript(request, Run.objects.filter(pk=run.pk))


class ThreadTranscript(ApiView):
    """The endpoint `GET /threads/{id}/transcript`: all of its runs, and the history of a fork."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "get_thread_transcript",
        "Read what was said in a thread",
        query=TranscriptQuery,
        answer=Page(MessageShape),
    )
    def get(self, request: Request, thread_id: str) -> Response:
        thread = thread_of(person(request), thread_id)
        return _transcript(request, Run.objects.filter(thread=thread))


def _transcript(request: Request, runs: QuerySet[Run]) -> Response:
    query = read_query(TranscriptQuery, request)
    after = None
    if "cursor" in query:
        number, turn = read_cursor(query["cursor"], ORDER, 2, kind=int)
        after = (number, turn)
    turns, has_more = turns_after(runs, after, query["limit"])
    results = [message for turn in turns for message in show_turn(turn)]
    cursor = write_cursor(ORDER, *turns[-1].place) if has_more else None
    return Response({"results": results, "next_cursor": cursor})


class ToolCalls(ApiView):
    """The endpoint `GET /runs/{id}/tool-calls`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_tool_calls", "List a run's calls", query=ToolCallQuery, answer=Page(ToolCallShape)
    )
    def get(self, request: Request, run_id: str) -> Response:
        calls = ToolCall.objects.filter(run=run_of(person(request), run_id))
        query = read_query(ToolCallQuery, request)
        given = {name: query[name] for name in ("tool", "status", "turn") if name in query}
        return ordered_page(
            calls.filter(**given),
            ToolCallShape().to_representation,
            query,
            CALL_ORDER,
            weight=lambda call: len(call.input) + len(call.edited_input) + len(call.result),
        )


class OneToolCall(ApiView):
    """The endpoint `GET /runs/{id}/tool-calls/{call_id}`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "get_tool_call",
        "Read a call with its whole input and result",
        query=OneToolCallQuery,
        answer=WholeToolCallShape,
    )
    def get(self, request: Request, run_id: str, call_id: str) -> Response:
        run = run_of(person(request), run_id)
        calls = ToolCall.objects.filter(run=run, call_id=call_id)
        call = calls.filter(**read_query(OneToolCallQuery, request)).order_by("pk").last()
        if call is None:
            raise NotFound(f"The run has no call {call_id!r}.", code="unknown_call")
        return Response(WholeToolCallShape(call).data)


def run_of(user: AbstractBaseUser, run_id: str) -> Run:
    """Return a run that `user` can read. Raises `NotFound`."""
    run = runs_for(user).select_related("thread", "agent_version").filter(pk=run_id).first()
    if run is None:
        raise run_not_found(run_id)
    return run
