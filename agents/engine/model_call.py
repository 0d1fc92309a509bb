"""One reply of the model, with its retries and its stream to the watchers."""

from __future__ import annotations

import asyncio
import random
from typing import Protocol

from agents.engine.handle import RunHandle
from agents.engine.reply_limits import ReplyLimits, check_reply
from agents.events.append import EventDraft
from agents.events.catalogue.messages import (
    ReasoningDelta,
    ReasoningStarted,
    StepReset,
    TextDelta,
    TextStarted,
)
from agents.events.catalogue.tool_calls import ToolInputDelta, ToolInputStarted
from agents.events.event import Piece
from agents.providers.base import (
    Conversation,
    PartDelta,
    PartStarted,
    Provider,
    ProviderError,
    Reply,
)
from agents.settings import ModelSettings
from agents.telemetry.model_watch import watched_model_call

MAX_PAUSE_SECONDS = 60.0


class Watched(Protocol):
    """Where the parts of a reply go while it comes, as `DeltaStream` sends them to watchers."""

    def add(self, kind: type[Piece], part: str, text: str) -> None: ...

    def put(self, draft: EventDraft) -> None: ...

    def drop_parts(self) -> None: ...


def part_id(turn: int, index: int) -> str:
    return f"{turn}.{index}"


async def call_model(
    handle: RunHandle,
    provider: Provider,
    conversation: Conversation,
    stream: Watched,
    turn: int,
    model: str = "",
) -> Reply:
    """Make the call until it succeeds. Raises `ProviderError` when that is hopeless.

    Nothing of a failed attempt reaches the transcript; watchers are told to forget it by
    `step.reset`.
    """
    settings = ModelSettings.now()
    attempt = 1
    while True:
        try:
            watched = watched_model_call(provider.name, attempt, turn, model)
            with handle.interruptible(), watched as call:
                call.reply = await _attempt(provider, conversation, stream, turn)
                return call.reply
        except ProviderError as error:
            stream.drop_parts()
            if not error.retryable or attempt >= settings.MODEL_ATTEMPTS:
                raise
            pause = _pause(attempt, error.retry_after, settings.RETRY_BASE_SECONDS)
            stream.put(
                StepReset(
                    step=turn,
                    reason=error.message,
                    code=error.code,
                    attempt=attempt,
                    retry_in=round(pause, 2),
                )
            )
        with handle.interruptible():
            await asyncio.sleep(pause)
        attempt += 1


def _pause(attempt: int, wished: float | None, base: float) -> float:
    """Seconds until the next try: the server's wish, else doubling with jitter."""
    if wished is not None:
        return min(wished, MAX_PAUSE_SECONDS)
    return min(base * 2.0 ** (attempt - 1), MAX_PAUSE_SECONDS) * (0.5 + random.random() / 2)  # noqa: S311


async def _attempt(
    provider: Provider, conversation: Conversation, stream: Watched, turn: int
) -> Reply:
    events = provider.stream(conversation)
    calls: dict[int, str] = {}
    limits = ReplyLimits()
    try:
        async for event in events:
            if not isinstance(event, Reply):
                limits.count(event)
            if isinstance(event, PartDelta):
                if event.kind == "tool_input":
                    stream.add(ToolInputDelta, calls[event.index], event.text)
                else:
                    delta = TextDelta if event.kind == "text" else ReasoningDelta
                    stream.add(delta, part_id(turn, event.index), event.text)
            elif isinstance(event, PartStarted):
                if event.kind == "tool_input":
                    calls[event.index] = event.call_id
                    stream.put(ToolInputStarted(call_id=event.call_id, tool=event.tool))
                else:
                    started = TextStarted if event.kind == "text" else ReasoningStarted
                    stream.put(started(part_id=part_id(turn, event.index)))
            else:
                check_reply(event)
                return event
    finally:
        # A cancelled call must not leave the connection to the garbage collector.
        await events.aclose()
    raise ProviderError(
        "The model's stream ended without a reply.", code="malformed_stream", retryable=True
    )
