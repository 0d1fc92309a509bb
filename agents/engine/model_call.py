"""One reply of the model, with its stream to the watchers."""

from __future__ import annotations

from agents.engine.reply_limits import ReplyLimits, check_reply
from agents.engine.session import Session
from agents.events.catalogue.messages import (
    ReasoningDelta,
    ReasoningStarted,
    StepReset,
    StepStarted,
    TextDelta,
    TextStarted,
)
from agents.events.catalogue.tool_calls import ToolInputDelta, ToolInputStarted
from agents.kernel.middleware import ModelRequest
from agents.providers.base import PartDelta, PartStarted, ProviderError, Reply
from agents.telemetry.model_watch import watched_model_call


def part_id(turn: int, index: int) -> str:
    return f"{turn}.{index}"


async def call_model(session: Session, request: ModelRequest) -> Reply:
    """Make the call with all wraps. Raises `ProviderError` when it does not succeed."""
    with session.handle.interruptible():
        return await session.call_model(request)


async def attempt_call(request: ModelRequest) -> Reply:
    """Make one attempt: what wraps have as their handler.

    Nothing of a failed attempt reaches the transcript; watchers are told to forget it.
    """
    if request.has_parts:
        request.reset(StepReset(step=request.turn, reason="the model call is made again"))
    elif not request.attempts:
        request.stream.put(StepStarted(step=request.turn))
    request.attempts += 1
    request.has_parts = True
    try:
        with watched_model_call(
            request.provider.name, request.attempts, request.turn, request.model
        ) as call:
            call.reply = await _attempt(request)
            return call.reply
    except ProviderError:
        request.stream.drop_parts()
        raise


async def _attempt(request: ModelRequest) -> Reply:
    turn, stream = request.turn, request.stream
    events = request.provider.stream(request.conversation)
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
