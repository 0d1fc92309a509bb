"""Endpoints for the messages and tool calls of a run or a thread."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import QuerySet
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.files import thread_of
from agents.api.runs import run_not_found, show_run
from agents.api.serializers.resume import ResumeBody
from agents.api.serializers.runs import (
    ArtifactsShape,
    RunShape,
    SubagentShape,
    SubagentsShape,
    with_run_columns,
)
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
from agents.doors.rest.idempotency import idempotent
from agents.doors.rest.operations import IDEMPOTENCY_KEY, LOCATION, Page, operation
from agents.doors.rest.pagination import ordered_page, read_cursor, write_cursor
from agents.doors.rest.serializers import StrictSerializer, read_body, read_query
from agents.models import Run, TokenScope, ToolCall
from agents.selectors.conversation import turns_after
from agents.selectors.family import MAX_SHOWN, descendants_of
from agents.selectors.visible import runs_for
from agents.services.errors import NotAllowed, NotFound
from agents.services.files.thread_files import artifacts_of
from agents.services.runs.resume_ended import resume_as_new_run

ORDER = "transcript"


class RunTranscript(ApiView):
    """The endpoint `GET /runs/{id}/transcript`."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "get_run_transcript",
        "Read the messages of a run",
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
        "Read the messages of a thread",
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
        "list_tool_calls",
        "List the tool calls of a run",
        query=ToolCallQuery,
        answer=Page(ToolCallShape),
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
        "Read a tool call with its full input and result",
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


class ResumeRun(ApiView):
    """The endpoint `POST /runs/{id}/resume`: creates a new run in the same thread."""

    scopes: ClassVar = {"POST": TokenScope.RUN}

    @operation(
        "resume_run",
        "Resume a run that failed, was cancelled or reached a limit",
        body=ResumeBody,
        answers={201: RunShape},
        errors=(409,),
        headers=(IDEMPOTENCY_KEY, LOCATION),
    )
    @idempotent
    def post(self, request: Request, run_id: str) -> Response:
        user = person(request)
        body = read_body(ResumeBody, request)
        run = run_of(user, run_id)
        made = resume_as_new_run(run.pk, by=user, message=body.get("message") or "")
        return Response(
            show_run(user, made.pk), status=201, headers={"Location": reverse_run(made.pk)}
        )


def reverse_run(run_id: str) -> str:
    return reverse("api:run", kwargs={"run_id": run_id})


class Artifacts(ApiView):
    """The endpoint `GET /runs/{id}/artifacts`, for the run's owner only."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_artifacts",
        "List the files that a run made or changed",
        errors=(400,),
        answer=ArtifactsShape,
    )
    def get(self, request: Request, run_id: str) -> Response:
        read_query(StrictSerializer, request)
        user = person(request)
        run = run_of(user, run_id)
        if run.owner_id != user.pk:
            raise NotAllowed("Only the owner of a run can read its files.")
        found = artifacts_of(run)
        shown = [
            {
                "path": file.path,
                "what": file.what,
                "size": file.size,
                "url": _url(run, file.path) if file.size is not None else None,
            }
            for file in found.files
        ]
        return Response({"results": shown, "truncated": found.is_cut})


def _url(run: Run, path: str) -> str:
    # A subagent writes to the directories of its thread, not of the parent's.
    place = reverse("api:file-content", kwargs={"thread_id": run.thread_id})
    return f"{place}?{urlencode({'path': path})}"


class Subagents(ApiView):
    """The endpoint `GET /runs/{id}/subagents`: the descendants as a tree."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation(
        "list_subagents",
        "Read the tree of a run's subagents",
        errors=(400,),
        answer=SubagentsShape,
    )
    def get(self, request: Request, run_id: str) -> Response:
        read_query(StrictSerializer, request)
        user = person(request)
        run = run_of(user, run_id)
        members = descendants_of(run.pk, with_run_columns(runs_for(user)), limit=MAX_SHOWN + 1)
        below: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
        for member in members[:MAX_SHOWN]:
            shown = {**SubagentShape(member).data, "subagents": below[member.pk]}
            below[member.parent_id].append(shown)
        return Response({"results": below[run.pk], "truncated": len(members) > MAX_SHOWN})
