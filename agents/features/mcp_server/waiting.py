"""Wait for a run's answer, and report its progress to the client.

The wait ends with the run, when the run needs a person, or after its time limit. If the client
disconnects, only the wait ends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager

from agents.events.catalogue.messages import StepStarted, TextDelta
from agents.events.catalogue.runs import RunSuspended
from agents.events.catalogue.subagents import SubagentFinished
from agents.events.catalogue.tool_calls import ToolCalled
from agents.events.read import RunNotFound, StoredEvent
from agents.events.tree import follow_tree
from agents.features.mcp_server.answers import waits_for_person
from agents.features.mcp_server.caller import Caller, check_still_good, in_database
from agents.features.mcp_server.limits import LOOK_SECONDS, MAX_PROGRESS, TELL_SECONDS
from agents.hidden_text import visible
from agents.models import Run, RunClock
from agents.services.errors import Conflict
from agents.services.open_connections import NoRoom, TooManyConnections, take_place

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
            "Too many of your calls wait for an answer: nothing was started. Try again when one "
            "has ended.",
            code="too_many_calls",
        ) from None
    try:
        yield
    finally:
        place.release()


async def wait_for_answer(run_id: str, caller: Caller, seconds: float, tell: Tell) -> None:
    """Return when there is something to answer. Raises `NotAllowed` if the token is not valid now.

    In a separate task: a request can be cancelled repeatedly, which would interrupt clean-up that
    awaits.
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
