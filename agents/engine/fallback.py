"""Going on with another model when the one in force is down, between two model calls.

Another model is another prompt, so it begins an epoch (invariant 5): thoughts stay behind, and
what the epoch says is what any driver of the run goes on with. Never while calls are open.
"""

from __future__ import annotations

import logging

from agents.engine.conversation import conversation_of
from agents.engine.crash_points import CrashPoint, reached
from agents.engine.epoch import begin_epoch, head_of
from agents.engine.history import thread_history
from agents.engine.journal import check_fence
from agents.engine.model_choice import after, may_fall_back, provider_of
from agents.engine.session import Session
from agents.engine.token_count import measured
from agents.engine.window import Window, window_of
from agents.events.append import EventDraft, append_events
from agents.events.catalogue.fallbacks import ModelFallback
from agents.events.catalogue.messages import StepReset
from agents.events.preview import preview
from agents.providers.base import PromptHead, Provider, ProviderError, Role
from agents.spec import AgentSpec
from agents.structured_output.schema import check_schema

logger = logging.getLogger(__name__)


async def fall_back(session: Session, error: ProviderError) -> bool:
    """Let the agent's next model go on after `error`. False: there is none, or it may not.

    Raises `ProviderError` if that one cannot be reached at all, and `FenceLost`, `Stopped`.
    """
    spec = after(session.spec) if may_fall_back(session.spec, error) else None
    if spec is None:
        return False
    assert not session.open_calls
    before = session.spec
    try:
        provider = provider_of(session.provider_named, spec)
    except ProviderError as second:
        raise ProviderError(
            f"{error.message}. The fallback {spec.provider} {spec.model} cannot go on: "
            f"{second.message}",
            code=error.code,
            retryable=error.retryable,
        ) from second
    with session.handle.interruptible():  # a server may be asked
        window = await window_of(provider, spec)
        output_format = await output_format_of(provider, spec)
    reached(CrashPoint.MODEL_DOWN)
    step = session.turn + 1
    reason = preview(error.message)
    drafts: list[EventDraft] = [
        *session.drafts(),
        StepReset(step=step, reason=reason, code=error.code),
        ModelFallback(
            step=step,
            from_provider=before.provider,
            from_model=before.model,
            provider=spec.provider,
            model=spec.model,
            code=error.code,
            reason=reason,
        ),
    ]
    head, history = await session.database.run(
        _switch, session, spec, window, output_format, drafts
    )
    reached(CrashPoint.FELL_BACK)
    logger.warning(
        "%s %s is down, %s %s goes on: %s",
        before.provider,
        before.model,
        spec.provider,
        spec.model,
        error.message,
        extra={"run_id": session.run.id},
    )
    session.spec, session.provider, session.window = spec, provider, window
    session.head, session.overflows = head, 0
    session.meter = measured(head, history, session.meter.scale)
    session.conversation = await conversation_of(
        session.database, provider, session.run, head, history
    )
    return True


async def output_format_of(provider: Provider, spec: AgentSpec) -> str:
    """How the model of `spec` is asked for the form of answers; empty where there is none."""
    schema = spec.output_schema_value
    if schema is None:
        return ""
    return await provider.output_format(spec.model, check_schema(schema))


def _switch(
    session: Session, spec: AgentSpec, window: Window, output_format: str, drafts: list[EventDraft]
) -> tuple[PromptHead, list[tuple[Role, str]]]:
    """The epoch and its events: all of it, or nothing."""
    check_fence(session.writer)
    epoch = begin_epoch(session.run, spec, session.parts, window, output_format)
    append_events(session.writer.run_id, drafts)
    return head_of(epoch), list(thread_history(session.run))
