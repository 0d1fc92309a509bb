"""Repeat calls after temporary errors.

A model call is repeated if its error is retryable. A tool call is repeated if the agent's policy
allows it and the tool only reads: a call that may have changed data is never repeated.
"""

from __future__ import annotations

import asyncio
import random

from agents.events.catalogue.messages import StepReset
from agents.events.preview import preview
from agents.features.guardrails.events import ToolRetried
from agents.features.guardrails.options import RetryOptions
from agents.kernel.middleware import (
    LoadContext,
    ModelHandler,
    ModelRequest,
    RunContext,
    ToolCallRequest,
    ToolHandler,
)
from agents.middleware.base import Middleware, ToolResult
from agents.models import Effect
from agents.providers.base import ProviderError, Reply
from agents.settings import ModelSettings

TRANSIENT = frozenset({"timeout", "connection"})
"""Codes of results that may differ when the same call is made again."""
MAX_PAUSE_SECONDS = 60.0


class ModelRetries(Middleware):
    """Repeats a model call after temporary errors, up to the number of attempts."""

    name = "model_retries"

    def load(self, context: LoadContext) -> RetryOptions:
        return context.spec.option(RetryOptions)

    async def wrap_model_call(
        self, run: RunContext, request: ModelRequest, handler: ModelHandler
    ) -> Reply:
        attempt = 1
        own = run.state(RetryOptions).model_attempts
        while True:
            try:
                return await handler(request)
            except ProviderError as error:
                settings = ModelSettings.now()
                if not error.retryable or attempt >= (own or settings.MODEL_ATTEMPTS):
                    raise
                pause = _pause(attempt, error.retry_after, settings.RETRY_BASE_SECONDS)
                request.reset(
                    StepReset(
                        step=request.turn,
                        reason=error.message,
                        code=error.code,
                        attempt=attempt,
                        retry_in=round(pause, 2),
                    )
                )
            await asyncio.sleep(pause)
            attempt += 1


def _pause(attempt: int, wished: float | None, base: float) -> float:
    """Return the seconds until the next attempt: the server's request, else doubled with jitter."""
    if wished is not None:
        return min(wished, MAX_PAUSE_SECONDS)
    return min(base * 2.0 ** (attempt - 1), MAX_PAUSE_SECONDS) * (0.5 + random.random() / 2)  # noqa: S311


class ToolRetries(Middleware):
    """Repeats a call that only reads after temporary errors, by the agent's rules.

    The journal has each attempt.
    """

    name = "tool_retries"

    def load(self, context: LoadContext) -> RetryOptions | None:
        options = context.spec.option(RetryOptions)
        return options if options.tool_retries else None

    async def wrap_tool_call(
        self, run: RunContext, call: ToolCallRequest, handler: ToolHandler
    ) -> ToolResult:
        row = call.row
        while True:
            result = await handler(call)
            if not result.is_error or result.code not in TRANSIENT or call.effect != Effect.READ:
                return result
            rule = run.state(RetryOptions).retry_rule(row.tool)
            if rule is None or row.attempt >= rule.attempts:
                return result
            pause = min(rule.backoff * 2.0 ** (row.attempt - 1), MAX_PAUSE_SECONDS)
            retried = ToolRetried(
                call_id=row.call_id,
                attempt=row.attempt,
                code=result.code,
                message=preview(str(result.content)),
                retry_in=round(pause, 2),
            )
            await run.write_events([retried])
            await asyncio.sleep(pause)
