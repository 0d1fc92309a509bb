"""A run as the response of a chat: chunks of the AI SDK, converted from its events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from channels.db import database_sync_to_async

from agents.doors.rest.streaming import Access, RightEnded, free_connection, lasting
from agents.events.append import dump
from agents.events.catalogue.runs import RunSuspended
from agents.events.projections.ui import DIALECTS
from agents.events.projections.ui_message import Chunk
from agents.events.projections.ui_stream import DONE, UiStream
from agents.events.read import RunNotFound
from agents.events.tree import follow_tree
from agents.models import Run
from agents.selectors.chats import begin_after
from agents.states import RunStatus, WaitReason

PING = ": ping\n\n"
RIGHT_ENDED = "You may not read this any more: sign in again."
DELETED = "The conversation was deleted."


async def chat_frames(
    run_id: str, version: int, access: Access, *, after: int = 0
) -> AsyncGenerator[str, None]:
    """Yield the message of a run, or only the part after a seq that the client already has.

    Stops when the run ends, or when the client must respond to an approval request.
    """
    stream = UiStream(run_id, DIALECTS[version])
    try:
        for chunk in await database_sync_to_async(_begin)(stream, after):
            yield _frame(chunk)
        if stream.awaits_answer and await database_sync_to_async(_is_parked)(run_id):
            for chunk in stream.finish_response():
                yield _frame(chunk)
        else:
            async with aclosing(_chunks(stream, access, after)) as chunks:
                async for found in chunks:
                    yield PING if found is None else _frame(found)
    except RightEnded:
        yield _frame({"type": "error", "errorText": RIGHT_ENDED})
    except RunNotFound:
        yield _frame({"type": "error", "errorText": DELETED})
    yield f"data: {DONE}\n\n"


def _begin(stream: UiStream, after: int) -> list[Chunk]:
    try:
        return begin_after(stream, after)
    finally:
        free_connection()


async def _chunks(
    stream: UiStream, access: Access, after: int
) -> AsyncGenerator[Chunk | None, None]:
    # All runs of the tree have the same owner. The right to read the first was just checked.
    events = follow_tree(stream.run_id, positions={stream.run_id: after}, brief=True)
    async with aclosing(lasting(events, access)) as items:
        async for event in items:
            if event is None:
                yield None
                continue
            for chunk in stream.feed(event):
                yield chunk
            if not stream.awaits_answer or event.type != RunSuspended.type:
                continue
            # In a replayed log, the request may have been decided already.
            if await database_sync_to_async(_is_parked)(stream.run_id):
                for chunk in stream.finish_response():
                    yield chunk
                return
    for chunk in stream.end():
        yield chunk


def _is_parked(run_id: str) -> bool:
    try:
        parked = Run.objects.filter(status=RunStatus.WAITING, wait_reason=WaitReason.APPROVAL)
        return parked.filter(pk=run_id).exists()
    finally:
        free_connection()


def _frame(chunk: Chunk) -> str:
    return f"data: {dump(chunk)}\n\n"
