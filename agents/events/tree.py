"""Follow a run and all of its descendants, as one stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

from channels.db import database_sync_to_async

from agents.events.catalogue.messages import StepStarted
from agents.events.catalogue.subagents import SubagentFinished, SubagentStarted
from agents.events.read import RunNotFound
from agents.events.stored import StoredEvent
from agents.events.tail import Tail, tail
from agents.models import RunEvent

MAX_POSITIONS = 200
"""Runs whose last known event a watcher can name."""
MAX_FOLLOWED = 200
"""Active subagents that one watcher follows, since each holds a page of its log.

For further ones there are only the events in their parents' logs.
"""
_WAITING_EVENTS = 100
_BRIEF = ("run.", "approval.", "subagent.", StepStarted.type)

MayFollow = Callable[[str], Awaitable[bool]]


async def follow_tree(
    run_id: str,
    *,
    positions: Mapping[str, int] | None = None,
    brief: bool = False,
    until_end: bool = True,
    may_follow: MayFollow | None = None,
    source: Tail = tail,
) -> AsyncGenerator[StoredEvent, None]:
    """Yield the events of a run and of its descendants, each run's in order and none twice.

    A subagent's events are between its parent's events of its start and its end. Ends as
    `Tail.follow_stored` does; subagents always end. Close the generator when you leave it early.

    Args:
        run_id: The run.
        positions: The seq of the last known event of each run. Runs that are not in it start at 0.
        brief: Whether descendants have only events that change their status.
        until_end: Whether the generator ends after the end of the run.
        may_follow: Returns whether the reader may see the run of a subagent. None: all of them.
        source: The tail of the database.

    Of more than `MAX_FOLLOWED` active subagents, the others have only the events in their parents'
    logs.

    Raises:
        RunNotFound: If the run does not exist, or is deleted during this time.
    """
    tree = _Tree(run_id, positions or {}, brief, may_follow, source)
    following = asyncio.create_task(tree.follow(run_id, until_end))
    following.add_done_callback(tree.note_end)
    try:
        while True:
            event = await tree.next_event(following)
            if event is None:
                await following  # raises the follower's error
                return
            yield event
    finally:
        tasks = [following, *tree.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Tree:
    def __init__(
        self,
        root: str,
        positions: Mapping[str, int],
        brief: bool,
        may_follow: MayFollow | None,
        source: Tail,
    ) -> None:
        self._root = root
        self._positions = positions
        self._brief = brief
        self._may_follow = may_follow
        self._source = source
        self._events: asyncio.Queue[StoredEvent | None] = asyncio.Queue(_WAITING_EVENTS)
        self._followers: dict[str, asyncio.Task[None]] = {}
        self._failure: BaseException | None = None

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return list(self._followers.values())

    def note_end(self, task: asyncio.Task[None]) -> None:
        """Wake the reader of events after a follower's end. One error ends the whole stream."""
        if not task.cancelled() and self._failure is None:
            self._failure = task.exception()
        if self._events.empty():
            self._events.put_nowait(None)

    async def next_event(self, following: asyncio.Task[None]) -> StoredEvent | None:
        """Return the next event, or None after the end of the root's follower."""
        while not (following.done() and self._events.empty()):
            event = await self._events.get()
            if self._failure is not None:
                raise self._failure
            if event is not None:
                return event
        return None

    async def follow(self, run_id: str, until_end: bool) -> None:
        """Put a run's events into the queue, and start followers for its children."""
        after = self._positions.get(run_id, 0)
        children: list[asyncio.Task[None]] = []
        if after:
            known = await database_sync_to_async(_children_started)(run_id, after)
            children += [task for child in known if (task := await self._begin(child))]
        events = self._source.follow_stored(run_id, after=after, until_end=until_end)
        async with aclosing(events):
            async for event in events:
                child = _child_of(event)
                if event.type == SubagentFinished.type and child in self._followers:
                    # First all events of the child, then the event of its end.
                    await asyncio.wait([self._followers[child]])
                if not self._brief or run_id == self._root or event.type.startswith(_BRIEF):
                    await self._events.put(event)
                if event.type == SubagentStarted.type and (task := await self._begin(child)):
                    children.append(task)
        # Children that end together with their parent.
        if children:
            await asyncio.wait(children)

    async def _begin(self, child: str) -> asyncio.Task[None] | None:
        under_way = sum(not task.done() for task in self._followers.values())
        if child in self._followers or under_way >= MAX_FOLLOWED:
            return None
        if self._may_follow is not None and not await self._may_follow(child):
            return None
        task = asyncio.create_task(self._follow_child(child))
        task.add_done_callback(self.note_end)
        self._followers[child] = task
        return task

    async def _follow_child(self, child: str) -> None:
        try:
            await self.follow(child, until_end=True)
        except RunNotFound:
            return  # it was deleted: the root's follower raises the error


def _child_of(event: StoredEvent) -> str:
    if event.type not in (SubagentStarted.type, SubagentFinished.type):
        return ""
    return str(json.loads(event.data_json)["child_run_id"])


def _children_started(run_id: str, upto: int) -> list[str]:
    started = RunEvent.objects.filter(run_id=run_id, seq__lte=upto, type=SubagentStarted.type)
    rows = started.order_by("seq")
    return [json.loads(data)["child_run_id"] for data in rows.values_list("data", flat=True)]
