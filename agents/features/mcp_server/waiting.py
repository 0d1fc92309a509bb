"""Wait for a run's answer, report its progress to the client, and write the result of the call.

The wait ends with the run, when the run needs a person, or after its time limit. If the client
disconnects, only the wait ends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from django.urls import NoReverseMatch, reverse

from agents.events.catalogue.messages import StepStarted, TextDelta
from agents.events.catalogue.runs import RunSuspended
from agents.events.catalogue.subagents import SubagentFinished
from agents.events.catalogue.tool_calls import ToolCalled
from agents.events.read import RunNotFound
from agents.events.stored import StoredEvent
from agents.events.tree import follow_tree
from agents.features.mcp_server.caller import Caller, check_still_good, in_database
from agents.features.mcp_server.tools import (
    CANCEL_RUN,
    GET_RUN,
    LOOK_SECONDS,
    MAX_PROGRESS,
    SPACE,
    TELL_SECONDS,
)
from agents.hidden_text import visible
from agents.kernel.proposals import run_request_kinds
from agents.models import Message, MessageRole, Run, RunClock
from agents.selectors.disk_space import waiting_for_space
from agents.selectors.family import descendants_of, goes_on_alone
from agents.services.errors import Conflict
from agents.services.open_connections import NoRoom, TooManyConnections, take_place
from agents.settings import PageSettings
from agents.states import RunStatus, WaitReason
from agents.structured_output.schema import check_schema
from agents.structured_output.validation import problems_in

Tell = Callable[[str], Awaitable[None]]
"""Sends one progress message to the client."""

_MAY_NEED_PERSON = (RunSuspended.type, SubagentFinished.type)


@contextmanager
def one_of_few(caller: Caller) -> Iterator[None]:
    """Take one of a person's places for long calls in this process. Raises `Conflict`."""
    try:
        place = take_place(caller.user.pk, caller.token.pk, kind="call")
    except (TooManyConnections, NoRoom):
        raise Conflict(
            "Too many of your calls wait for an answer, so no run was started. Try again when one "
            "has ended.",
            code="too_many_calls",
        ) from None
    try:
        yield
    finally:
        place.release()


async def wait_for_answer(run_id: str, caller: Caller, seconds: float, tell: Tell) -> None:
    """Return when the run has an answer or needs a person, or after `seconds`.

    `tell` sends progress. Raises `NotAllowed` if the token is no longer valid.
    It waits in a separate task: a request can be cancelled repeatedly, which would interrupt
    clean-up that awaits.
    """
    waiting = asyncio.create_task(_Wait(run_id, caller, seconds, tell).until_done())
    try:
        await asyncio.shield(waiting)
    except asyncio.CancelledError:
        waiting.cancel()
        raise


class _Wait:
    def __init__(self, run_id: str, caller: Caller, seconds: float, tell: Tell) -> None:
        self._run_id = run_id
        self._caller = caller
        self._tell = tell
        self._clock = asyncio.get_running_loop().time
        self._deadline = self._clock() + seconds
        self._look_at = self._clock() + LOOK_SECONDS
        self._tell_at = self._clock()
        self._news: list[str] = []
        self._text = ""

    async def until_done(self) -> None:
        after = await in_database(_position, self._run_id)
        if await in_database(_is_done, self._run_id):
            return
        events = follow_tree(self._run_id, positions={self._run_id: after}, brief=True)
        try:
            async with aclosing(events):
                await self._follow(events)
        except RunNotFound:
            return  # it was deleted: the caller handles that

    async def _follow(self, events: AsyncGenerator[StoredEvent, None]) -> None:
        following: asyncio.Future[StoredEvent] | None = None
        try:
            while self._clock() < self._deadline:
                following = following or asyncio.ensure_future(anext(events))
                until = min(
                    self._deadline, self._look_at, self._tell_at if self._has_news else 1e99
                )
                await asyncio.wait({following}, timeout=max(0.0, until - self._clock()))
                if following.done():
                    try:
                        self._note(following.result())
                    except StopAsyncIteration:
                        return
                    finally:
                        following = None
                if self._clock() >= self._look_at:
                    self._look_at = self._clock() + LOOK_SECONDS
                    await in_database(check_still_good, self._caller)
                    if await in_database(_is_done, self._run_id):
                        return
                    self._news = self._news or ["It goes on."]
                if self._has_news and self._clock() >= self._tell_at:
                    await self._say()
        finally:
            if following is not None:
                following.cancel()
                await asyncio.wait({following})

    @property
    def _has_news(self) -> bool:
        return bool(self._news or self._text)

    def _note(self, event: StoredEvent) -> None:
        if event.type in _MAY_NEED_PERSON:
            self._look_at = self._clock()
        if event.run_id != self._run_id:
            return
        data = json.loads(event.data_json)
        if event.type == StepStarted.type:
            self._news.append(f"Step {data['step']}.")
        elif event.type == ToolCalled.type:
            self._news.append(f"It calls {data['tool']}.")
        elif event.type == TextDelta.type:
            self._text += data["text"]

    async def _say(self) -> None:
        said = " ".join([*self._news, self._text.strip()]).strip()
        self._news, self._text = [], ""
        self._tell_at = self._clock() + TELL_SECONDS
        await self._tell(visible(said)[-MAX_PROGRESS:])


def _position(run_id: str) -> int:
    return RunClock.objects.filter(run=run_id).values_list("seq", flat=True).first() or 0


def _is_done(run_id: str) -> bool:
    run = Run.objects.filter(pk=run_id).first()
    return run is None or run.has_ended or waits_for_person(run) is not None


Result = dict[str, Any]
"""A tool's result in the protocol's format."""


def _person() -> dict[str, str]:
    """Return the reasons why a person must act, by `Run.wait_reason`."""
    about_runs = {kind.name: kind.why_waiting for kind in run_request_kinds().values()}
    return {WaitReason.APPROVAL: "a person must decide what the agent asks", **about_runs}


def waits_for_person(run: Run) -> str | None:
    """Return why the run and its delegated runs cannot continue before a person acts, or None."""
    if run.status != RunStatus.WAITING:
        return None
    family = [run, *descendants_of(run.pk)]
    if goes_on_alone(family):
        return None
    reasons = {member.wait_reason for member in family if not member.has_ended}
    return next((reason for reason in _person() if reason in reasons), None)


def answer_of(run: Run) -> Result:
    """Return the run's current state as a tool's result.

    Text of agents is without invisible characters.
    """
    data: dict[str, Any] = {
        "run": run.pk,
        "thread": run.thread_id,
        "status": run.status,
        "url": run_url(run),
    }
    says = _ended(run, data) if run.has_ended else _under_way(run, data)
    is_error = run.status in (RunStatus.FAILED, RunStatus.CANCELLED) or "error" in data
    about = f"Run {run.pk} ({run.status}) of thread {run.thread_id}: {data['url']}"
    return {
        "content": [{"type": "text", "text": says}, {"type": "text", "text": about}],
        "structuredContent": data,
        "isError": is_error,
    }


def refusal(message: str, code: str) -> Result:
    """Return the result of a call that was refused, with the reason."""
    text = visible(message)
    return {"content": [{"type": "text", "text": f"{text} ({code})"}], "isError": True}


def run_url(run: Run) -> str:
    """Return the URL of the run's page, or of the site in a project without Vel's pages."""
    try:
        path = reverse("web:run", args=[run.pk])
    except NoReverseMatch:
        path = "/"
    return PageSettings.now().PUBLIC_URL.rstrip("/") + path


def _under_way(run: Run, data: dict[str, Any]) -> str:
    reason = waits_for_person(run)
    later = f"Call {GET_RUN} with this run for its answer; {CANCEL_RUN} ends it."
    if space := waiting_for_space(run):
        data["waits_for"] = SPACE
        return f"{space} {later}"
    if reason is None:
        return f"It has not answered yet and continues. {later}"
    data["waits_for"] = str(reason)
    return f"It waits: {_person()[reason]}, at {data['url']}. {later}"


def _ended(run: Run, data: dict[str, Any]) -> str:
    if run.status == RunStatus.CANCELLED:
        return "It was cancelled."
    if run.status == RunStatus.FAILED:
        message = visible(run.error_message)
        data["error"] = {"code": run.error_code, "message": message}
        return f"It failed: {message} ({run.error_code})"
    rows = Message.objects.filter(run=run, role=MessageRole.ASSISTANT).order_by("-turn")
    last = rows.first()
    data["answer"] = visible(last.text) if last is not None else ""
    schema = run.output_schema or run.spec.get("output_schema")
    if not schema:
        return data["answer"] or "It has ended without a word."
    return _structured(run, data, schema)


def _structured(run: Run, data: dict[str, Any], schema: Any) -> str:
    value = _each_text(run.structured_output, visible)
    schema = json.loads(schema) if isinstance(schema, str) else schema
    # Visible spelling can make the text too long, or different from each allowed value.
    if value != run.structured_output and problems_in(value, check_schema(schema)):
        message = "Its answer has invisible characters where its form does not allow to show them."
        data["error"] = {"code": "hidden_characters", "message": message}
        return f"{message} It is at {data['url']}."
    data["output"] = value
    return json.dumps(value, ensure_ascii=False)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): _each_text(item, change) for name, item in value.items()}
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    return value
