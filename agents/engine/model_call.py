"""One model call: the request, the streamed reply, and a new prompt if necessary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agents.engine.prompt.conversation import conversation_of
from agents.engine.prompt.epoch import begin_epoch, head_of
from agents.engine.prompt.history import latest_compaction, thread_history
from agents.engine.prompt.token_count import measured
from agents.engine.prompt.window import ReplyLimits, check_reply, window_of
from agents.engine.session import Session
from agents.engine.side_calls import count_side_call
from agents.engine.storage.journal import check_fence
from agents.events.append import EventDraft, append_events
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
from agents.kernel.window import Window
from agents.middleware.registry import toolset_of
from agents.providers.absent import provider_or_absent
from agents.providers.base import (
    PartDelta,
    PartStarted,
    PromptHead,
    Provider,
    ProviderError,
    Reply,
    Role,
)
from agents.spec import AgentSpec
from agents.structured_output.schema import check_schema
from agents.telemetry.model_watch import watched_model_call


def part_id(turn: int, index: int) -> str:
    return f"{turn}.{index}"


@dataclass
class StepRequest(ModelRequest):
    """The model call of a turn, as middleware sees it."""

    session: Session = field(kw_only=True)

    @classmethod
    def of(cls, session: Session) -> StepRequest:
        """Return the request for the next turn of a run."""
        return cls(
            purpose="step",
            turn=session.turn + 1,
            model=session.spec.model,
            max_output=session.spec.max_output_tokens,
            provider=session.provider,
            conversation=session.conversation,
            stream=session.stream,
            session=session,
        )

    async def begin_epoch(
        self,
        events: Sequence[EventDraft] = (),
        *,
        write: Callable[[], None] | None = None,
        spec: AgentSpec | None = None,
    ) -> None:
        session = self.session
        await renew_prompt(session, events, write=write, spec=spec)
        self.model, self.provider = session.spec.model, session.provider
        self.max_output = session.spec.max_output_tokens
        self.conversation = session.conversation

    async def discard(self, reply: Reply) -> None:
        await count_side_call(self.session, self, reply.usage)
        self.commits = []


async def renew_prompt(
    session: Session,
    events: Sequence[EventDraft] = (),
    *,
    write: Callable[[], None] | None = None,
    spec: AgentSpec | None = None,
) -> None:
    """Start a new epoch, and build the conversation again with its prompt.

    The next request sends the whole conversation without the benefit of the prompt cache. The
    arguments are those of `ModelRequest.begin_epoch`. Never call this while tool calls are open.
    Raises `FenceLost`.
    """
    assert not session.open_calls
    provider, window, output_format = session.provider, session.window, None
    if spec is not None:
        provider = provider_or_absent(session.context.provider_named, spec.provider)
        with session.handle.interruptible():  # this may send a request to a model server
            window = await window_of(provider, spec)
            output_format = await output_format_of(provider, spec)
    spec = spec or session.spec
    drafts = [*session.drafts(), *events]
    head, history, has_left_out = await session.database.run(
        _store_epoch, session, spec, window, output_format, drafts, write
    )
    session.spec, session.provider, session.window = spec, provider, window
    session.toolset = toolset_of(session.run, spec, has_left_out=has_left_out)
    session.head = head
    session.meter = measured(head, history, session.meter.scale)
    session.conversation = await conversation_of(
        session.database, provider, session.run, head, history
    )


def _store_epoch(
    session: Session,
    spec: AgentSpec,
    window: Window,
    output_format: str | None,
    drafts: Sequence[EventDraft],
    write: Callable[[], None] | None,
) -> tuple[PromptHead, list[tuple[Role, str]], bool]:
    """Store an epoch. Return the head of its prompt, the history, and whether turns are omitted."""
    check_fence(session.writer)
    if write is not None:
        write()
    epoch = begin_epoch(session.run, spec, session.parts, window, output_format)
    append_events(session.writer.run_id, drafts)
    has_left_out = latest_compaction(session.run.thread_id) is not None
    return head_of(epoch), list(thread_history(session.run)), has_left_out


async def output_format_of(provider: Provider, spec: AgentSpec) -> str:
    """Return the provider's format for `spec.output_schema`, or "" if it has none."""
    schema = spec.output_schema_value
    if schema is None:
        return ""
    return await provider.output_format(spec.model, check_schema(schema))


async def call_model(session: Session, request: ModelRequest) -> Reply:
    """Call the model through all middleware wraps, and return the reply.

    Raises `ProviderError` if the call fails, `Leave` if a middleware releases the run, and
    `Stopped`.
    """
    with session.handle.interruptible():
        return await session.call_model(request)


async def attempt_call(request: ModelRequest) -> Reply:
    """Call the model once: the innermost handler of all wraps.

    A failed attempt leaves nothing in the transcript, and clients discard its streamed text. Raises
    `ProviderError`.
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
        # Close the connection of a cancelled call now instead of in the garbage collector.
        await events.aclose()
    raise ProviderError(
        "The model's stream ended without a reply.", code="malformed_stream", retryable=True
    )
