"""Let another model make a call if the run's model is unavailable.

Another model needs another prompt, so it starts an epoch (invariant 5). Thoughts of the first model
are left out.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from agents.engine.crash_points import CrashPoint, reached
from agents.events.catalogue.messages import StepReset
from agents.events.preview import preview
from agents.features.fallbacks.choice import current_spec, spec_after
from agents.features.fallbacks.events import ModelFallback
from agents.features.fallbacks.options import FallbackOptions
from agents.kernel.middleware import LoadContext, ModelHandler, ModelRequest, RunContext
from agents.middleware.base import Middleware
from agents.providers.base import ProviderError, Reply
from agents.spec import AgentSpec

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class CurrentModel:
    """The model of a run when it is claimed."""

    spec: AgentSpec
    in_step: bool = False
    """Whether the model is being called for a turn, with side calls before it."""


class SideCallFailed(Exception):
    """The model of a side call is unavailable, and the next model continues with the whole step.

    The wraps between do not know it, so it passes through them.
    """

    def __init__(self, error: ProviderError) -> None:
        super().__init__(error.message)
        self.error = error


class FallbacksMiddleware(Middleware):
    """Calls one model after the other until one is available."""

    name = "fallbacks"

    def load(self, context: LoadContext) -> CurrentModel | None:
        """Query only for an agent with fallbacks."""
        if not context.spec.option(FallbackOptions).fallbacks:
            return None
        return CurrentModel(current_spec(context.row, context.spec))

    async def before_agent(self, run: RunContext) -> None:
        run.use_spec(run.state(CurrentModel).spec)

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        current = run.state(CurrentModel)
        if request.purpose == "side":
            try:
                return await handler(request)
            except ProviderError as problem:
                if current.in_step and spec_after(run.spec, problem) is not None:
                    raise SideCallFailed(problem) from problem
                raise
        current.in_step = True
        try:
            while True:
                try:
                    return await handler(request)
                except SideCallFailed as failed:
                    error = failed.error
                except ProviderError as problem:
                    error = problem
                spec = spec_after(run.spec, error)
                if spec is None:
                    raise error
                await _switch(run, request, spec, error)
        finally:
            current.in_step = False


async def _switch(
    run: RunContext, request: ModelRequest, spec: AgentSpec, error: ProviderError
) -> None:
    """Continue with the model of `spec`. Raises `ProviderError` if it cannot be called at all."""
    before = run.spec
    try:
        run.provider_named(spec.provider)
    except ProviderError as second:
        if spec_after(spec, second) is None:
            raise ProviderError(
                f"{error.message}. The fallback {spec.provider} {spec.model} cannot continue: "
                f"{second.message}",
                code=error.code,
                retryable=error.retryable,
            ) from second
    reached(CrashPoint.MODEL_DOWN)
    reason = preview(error.message)
    request.reset(StepReset(step=request.turn, reason=reason, code=error.code))
    event = ModelFallback(
        step=request.turn,
        from_provider=before.provider,
        from_model=before.model,
        provider=spec.provider,
        model=spec.model,
        code=error.code,
        reason=reason,
    )
    await request.begin_epoch([event], spec=spec)
    reached(CrashPoint.FELL_BACK)
    logger.warning(
        "%s %s is unavailable, %s %s continues: %s",
        before.provider,
        before.model,
        spec.provider,
        spec.model,
        error.message,
        extra={"run_id": run.row.pk},
    )


MIDDLEWARE = (FallbacksMiddleware(),)
