"""Going on with another model when the one in force is down, between two model calls.

Another model is another prompt, so it begins an epoch (invariant 5): thoughts stay behind, and
what the epoch says is what any driver of the run goes on with. Never while calls are open.
"""

from __future__ import annotations

import logging

from agents.engine.crash_points import CrashPoint, reached
from agents.engine.model_call import renew_prompt
from agents.engine.model_choice import after, may_fall_back
from agents.engine.session import Session
from agents.events.append import EventDraft
from agents.events.catalogue.fallbacks import ModelFallback
from agents.events.catalogue.messages import StepReset
from agents.events.preview import preview
from agents.providers.base import ProviderError

logger = logging.getLogger(__name__)


async def fall_back(session: Session, error: ProviderError) -> bool:
    """Let the agent's next model go on after `error`. False: there is none, or it may not.

    Raises `ProviderError` if that one cannot be reached at all, and `FenceLost`, `Stopped`.
    """
    spec = after(session.spec) if may_fall_back(session.spec, error) else None
    if spec is None:
        return False
    before = session.spec
    try:
        session.context.provider_named(spec.provider)
    except ProviderError as second:
        if not may_fall_back(spec, second):
            raise ProviderError(
                f"{error.message}. The fallback {spec.provider} {spec.model} cannot go on: "
                f"{second.message}",
                code=error.code,
                retryable=error.retryable,
            ) from second
    reached(CrashPoint.MODEL_DOWN)
    step = session.turn + 1
    reason = preview(error.message)
    drafts: list[EventDraft] = [
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
    await renew_prompt(session, drafts, spec=spec)
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
    return True
