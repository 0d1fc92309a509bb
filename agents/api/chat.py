"""Chat endpoints for clients of the Vercel AI SDK: they send a message and receive a stream."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from itertools import groupby
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.chat_stream import chat_frames
from agents.api.serializers.chat import (
    CHAT_ID_CHARACTERS,
    Answers,
    CancelledChatShape,
    ChatBody,
    ChatQuery,
    ChatShape,
    HistoryQuery,
    UserMessage,
    last_message,
)
from agents.api.serializers.runs import CancelBody
from agents.doors.rest.base import ApiView, person, require_scope
from agents.doors.rest.named_agent import agent_of
from agents.doors.rest.operations import Content, Header, operation
from agents.doors.rest.serializers import read_body, read_query
from agents.doors.rest.streaming import Access, event_stream, take_slot
from agents.events.projections.ui import DIALECTS, ui_message, version_of
from agents.events.projections.ui_message import UiMessage
from agents.events.projections.ui_stream import VERSION_HEADER
from agents.middleware.decisions import decide_all
from agents.models import Run, Thread, TokenScope
from agents.selectors.chats import (
    active_run,
    asked_at,
    chat_thread,
    messages_of,
    newest_runs,
    outcome_events,
    within_reason,
)
from agents.selectors.visible import Person, agents_for, approvals_for, runs_for
from agents.services.approvals.decisions import DecisionRequest
from agents.services.errors import Conflict, InvalidRequest, NotFound
from agents.services.files.uploads import create_run_with
from agents.services.open_connections import Place
from agents.services.runs.control import cancel_for, resume_run
from agents.services.runs.start import RunRequest
from agents.states import ApprovalStatus, Decision, RunStatus
from sandbox.errors import SandboxError

AI_SDK_HEADER = "AI-SDK-Version"
"""Selects the version for clients that cannot add a query to their URLs."""

VERSION = Header(
    AI_SDK_HEADER,
    "The protocol's version, as the parameter `version`.",
    {"type": "string", "enum": [str(version) for version in sorted(DIALECTS)]},
)


class Chat(ApiView):
    """The endpoint `POST /agents/{slug}/chat`: a message, or responses to approval requests."""

    scopes: ClassVar = {"POST": TokenScope.READ}
    http_method_names = ["post"]

    @operation(
        "send_chat_message",
        "Send a message or decisions, and stream the answer",
        query=ChatQuery,
        body=ChatBody,
        answer=Content(("text/event-stream",)),
        errors=(404, 409),
        headers=(VERSION,),
        description="Scope `run` for a message, `approve` for answers, besides:",
    )
    def post(self, request: Request, agent: str) -> HttpResponseBase:
        version = _version(request, read_query(ChatQuery, request))
        body = read_body(ChatBody, request)
        check_chat_id(body["id"])
        said = last_message(body["messages"])
        # The action requires its own scope, in addition to the scope for reading the stream.
        needed = TokenScope.APPROVE if isinstance(said, Answers) else TokenScope.RUN
        require_scope(request, needed, beside=TokenScope.READ)
        slot = take_slot(request)
        try:
            run, after = self._carry_out(person(request), agent, body, said, version)
        except BaseException:
            slot.release()
            raise
        return _response(request, run.pk, version, slot, after)

    def _carry_out(
        self,
        user: AbstractBaseUser,
        agent: str,
        body: dict[str, Any],
        said: UserMessage | Answers,
        version: int,
    ) -> tuple[Run, int]:
        """Return the run to stream, and the seq to start after."""
        if isinstance(said, Answers):
            return answer(user, agent, body["id"], said, version)
        if body["trigger"] == "regenerate-message":
            return try_again(user, agent, body["id"], body.get("messageId") or ""), 0
        if body.get("messageId"):
            raise Conflict(
                "Messages cannot be edited. Send a new message instead.",
                code="history_is_fixed",
            )
        request = RunRequest(
            agent=agent_of(user, agent).slug,
            message=said.text,
            key=body["id"],
            context=body.get("context"),
            source="chat",
        )
        # A client that lost the response sends the same message again.
        key = hashlib.sha256(f"{body['id']}\n{said.id}".encode()).hexdigest()
        try:
            made = create_run_with(request, said.files, owner=user, idempotency_key=f"chat:{key}")
        except SandboxError as error:
            raise Conflict(str(error), code="upload_failed") from error
        return made.run, 0


class ChatHistory(ApiView):
    """The endpoint `GET /agents/{slug}/chat/{id}`: the conversation as UI messages."""

    scopes: ClassVar = {"GET": TokenScope.READ}

    @operation("get_chat", "Read a chat", query=HistoryQuery, answer=ChatShape, headers=(VERSION,))
    def get(self, request: Request, agent: str, chat_id: str) -> Response:
        query = read_query(HistoryQuery, request)
        version = _version(request, query)
        thread = chat_of(person(request), agent, chat_id)
        found = newest_runs(thread, before=query.get("before"), limit=query["limit"] + 1)
        runs, too_long = within_reason(found[: query["limit"]])
        more = len(runs) < len(found)
        newest = newest_runs(thread, before=None, limit=1)
        return Response(
            {
                "id": chat_id,
                "thread": thread.pk,
                "messages": _messages(runs, too_long, version),
                "latest_run": _shown(newest[0]) if newest else None,
                "next_before": runs[-1].number if more else None,
            }
        )


class ChatStream(ApiView):
    """The endpoint `GET /agents/{slug}/chat/{id}/stream`: the active message, or 204."""

    scopes: ClassVar = {"GET": TokenScope.READ}
    http_method_names = ["get"]

    @operation(
        "stream_chat",
        "Stream the current message from its start",
        query=ChatQuery,
        answers={200: Content(("text/event-stream",)), 204: None},
        headers=(VERSION,),
    )
    def get(self, request: Request, agent: str, chat_id: str) -> HttpResponseBase:
        version = _version(request, read_query(ChatQuery, request))
        check_chat_id(chat_id)
        thread = chat_thread(person(request), agent, chat_id)
        # Clients also request the stream of a chat that they have just created.
        run = active_run(thread) if thread else None
        if run is None:
            return HttpResponse(status=204)
        return _response(request, run.pk, version, take_slot(request))


class CancelChat(ApiView):
    """The endpoint `POST /agents/{slug}/chat/{id}/cancel`.

    The `stop()` of the AI SDK only disconnects: the run continues.
    """

    scopes: ClassVar = {"POST": TokenScope.RUN}

    @operation(
        "cancel_chat",
        "Cancel the run of the current message",
        body=CancelBody,
        answer=CancelledChatShape,
        errors=(409,),
    )
    def post(self, request: Request, agent: str, chat_id: str) -> Response:
        body = read_body(CancelBody, request)
        user = person(request)
        run = active_run(chat_of(user, agent, chat_id))
        if run is not None:
            cancel_for(user, run, reason=body["reason"])
        return Response({"run": run.pk if run else None})


def _shown(run: Run) -> dict[str, Any]:
    error = {"code": run.error_code, "message": run.error_message} if run.error_code else None
    return {"id": run.pk, "status": run.status, "error": error}


def _messages(runs: list[Run], too_long: Mapping[str, int], version: int) -> list[dict[str, Any]]:
    """Return the messages, oldest first, without the active one, which its stream sends."""
    said = messages_of(runs)
    ended = [run.pk for run in runs if run.has_ended and run.pk not in too_long]
    answers = {
        run_id: ui_message(run_id, events, version)
        for run_id, events in groupby(outcome_events(ended), lambda event: event.run_id)
    }
    messages: list[dict[str, Any]] = []
    for run in reversed(runs):
        text = said[run.pk].text
        part = {"type": "text", "text": text, "state": "done"}
        messages.append({"id": f"{run.pk}-user", "role": "user", "parts": [part]})
        message = answers.get(run.pk)
        if run.has_ended and run.pk in too_long:
            message = _too_long(run.pk, too_long[run.pk])
        if message is not None and message.parts:
            messages.append(message.as_dict())
    return messages


def _too_long(run_id: str, size: int) -> UiMessage:
    message = UiMessage(run_id)
    text = (
        f"[Vel: this answer is too long to be shown here: its events have {size:,} characters. "
        f"Read it with GET /runs/{run_id}/transcript.]"
    )
    message.parts.append({"type": "text", "text": text, "state": "done"})
    return message


def _response(
    request: Request, run_id: str, version: int, slot: Place, after: int = 0
) -> HttpResponseBase:
    access = Access(request, partial(_may_read, run_id))
    frames = chat_frames(run_id, version, access, after=after)
    return event_stream(frames, slot, {VERSION_HEADER: "v1"})


def _may_read(run_id: str, user: Person) -> bool:
    return own_runs(user).filter(pk=run_id).exists()


def _version(request: Request, query: dict[str, Any]) -> int:
    """Return the protocol version that the client names. The client of `useChat` names none."""
    header = request.headers.get(AI_SDK_HEADER)
    if header is None:
        version: int | None = query.get("version")
        return version or version_of(request.headers.get("User-Agent", ""))
    if header not in map(str, DIALECTS):
        known = ", ".join(map(str, DIALECTS))
        raise InvalidRequest(f"{AI_SDK_HEADER} must be one of {known}.")
    if query.get("version", int(header)) != int(header):
        raise InvalidRequest(
            f"{AI_SDK_HEADER} and the parameter `version` have different values. Send only one."
        )
    return int(header)


def answer(
    user: AbstractBaseUser, agent: str, chat_id: str, said: Answers, version: int
) -> tuple[Run, int]:
    """Apply the client's decisions. Skips requests that are already decided.

    `version` is the protocol version of the client's AI SDK. Returns (the run, the seq after which
    to stream it).

    Raises:
        NotFound: The run or an id is unknown. No decision is applied.
        InvalidRequest: The version has no approvals. No decision is applied.

    Also raises the errors of `decide_all`.
    """
    if not DIALECTS[version].stops_for_approvals:
        raise InvalidRequest(
            f"Version {version} does not support approvals. Decide with POST "
            f"/approvals/{{id}}/decide."
        )
    run = own_runs(user).filter(pk=said.run_id, thread=chat_of(user, agent, chat_id)).first()
    if run is None:
        raise NotFound("The decisions are for a message that is not in this chat.")
    ids = {each.approval_id for each in said.answers}
    known = approvals_for(user).filter(pk__in=ids, run=run, tool_call__isnull=False)
    statuses = dict(known.values_list("pk", "status"))
    if statuses.keys() != ids:
        raise NotFound("The message has no approval request with this id that you can decide.")
    # Requests that are decided already are left out: the stream contains their decisions.
    # No digest: the id is bound to the displayed request.
    decide_all(
        {
            each.approval_id: DecisionRequest(
                Decision.APPROVE if each.approved else Decision.REJECT, reason=each.reason
            )
            for each in said.answers
            if statuses[each.approval_id] == ApprovalStatus.PENDING
        },
        by=user,
    )
    return run, asked_at(run, ids)


def try_again(user: AbstractBaseUser, agent: str, chat_id: str, message_id: str = "") -> Run:
    """Resume the last run of a chat, and return it.

    `message_id` is the message that the client regenerates, if it names one.

    Raises `Conflict` if the run has not failed or the message belongs to an earlier run, and
    `NotFound` if `user` can no longer use the agent.
    """
    thread = chat_of(user, agent, chat_id)
    if not agents_for(user).filter(pk=thread.agent_id).exists():
        raise NotFound(f"There is no agent {agent!r} that you may use.", code="unknown_agent")
    last = newest_runs(thread, before=None, limit=1)
    # The ids of the history. A client's own id of a message that it has just sent is unknown here.
    named = Run.objects.filter(pk=message_id.removesuffix("-user"), thread=thread)
    is_earlier = bool(last) and named.exclude(pk=last[0].pk).exists()
    if not last or last[0].status != RunStatus.FAILED or is_earlier:
        raise Conflict(
            "Only the last answer can be regenerated, if it failed: it continues where it failed. "
            "Send a new message instead.",
            code="history_is_fixed",
        )
    return resume_run(last[0].pk)


def check_chat_id(chat_id: str) -> None:
    """Raise `InvalidRequest` if the id cannot be stored, or cannot be part of the URL of a chat."""
    fits = 0 < len(chat_id) <= CHAT_ID_CHARACTERS and chat_id.isprintable()
    if not fits or "/" in chat_id or chat_id in (".", ".."):
        raise InvalidRequest(
            f"Invalid chat id. Expected 1 to {CHAT_ID_CHARACTERS} printable characters without a "
            "slash."
        )


def chat_of(user: AbstractBaseUser, agent: str, chat_id: str) -> Thread:
    """Return the thread of a chat of `user` with an agent, named by its id or slug.

    Raises `NotFound`, and `InvalidRequest` for an invalid `chat_id`.
    """
    check_chat_id(chat_id)
    thread = chat_thread(user, agent, chat_id)
    if thread is None:
        raise NotFound(f"You have no chat {chat_id!r} with this agent.", code="unknown_thread")
    return thread


def own_runs(user: Person) -> QuerySet[Run]:
    """Return the runs owned by `user`, without runs of others that `user` can read."""
    return runs_for(user).filter(owner=user.pk)
