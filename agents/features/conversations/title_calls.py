"""Call a model for one title, and store the title or the failure."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from django.utils import timezone

from agents.engine.prompt.window import ReplyLimits, check_reply
from agents.events.append import dump
from agents.features.conversations.title_model import title_model
from agents.features.conversations.title_text import SYSTEM, clean_title, prompt_for
from agents.features.conversations.titles import (
    PAUSE,
    TitleTask,
    drop_title,
    finish_title,
    texts_of,
)
from agents.providers.base import Conversation, PromptHead, Provider, ProviderError, Reply
from agents.providers.prices import reasons, worst_cost_microusd
from agents.providers.registry import get_provider
from agents.services.agent_definitions.settings_places import settings_of
from agents.services.outside_calls import CallRefused, OutsideCall, reserve_call
from agents.spec import AgentSpec
from agents.telemetry.model_watch import count_model_call
from agents.telemetry.process import counters

logger = logging.getLogger(__name__)

CALL_SECONDS = 60.0
STALL_SECONDS = 30.0
MAX_OUTPUT = 100
"""Tokens of a reply."""
MAX_OUTPUT_WITH_THOUGHTS = 1_000
"""Models that always think before they answer need more."""
UNSEEN_TOKENS = 1_000
"""Tokens that a server may add to a prompt."""


class TitleCall:
    """One try to write a title, on the thread that calls `write`."""

    def __init__(self, task: TitleTask) -> None:
        self._task = task
        self._lock = threading.Lock()
        self._cancel: Callable[[], object] | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """End the call, from another thread. The title is left to another worker."""
        with self._lock:
            self._is_cancelled = True
            if self._cancel is not None:
                self._cancel()

    def write(self) -> None:
        """Write the title, or record why the title is missing."""
        task = self._task
        extra = {"run_id": task.run.pk}
        call: OutsideCall | None = None
        try:
            spec = AgentSpec.model_validate(task.run.spec)
            found = title_model(spec.provider, spec.model)
            if found is None:
                drop_title(task, None, again_at=None)
                return
            provider, conversation, head = _request(task, spec, *found)
            wanted = _call_of(task, found, conversation.size, head.max_tokens)
            reserve_call(wanted)
            call = wanted
            reply = self._counted_reply(wanted, provider, conversation)
        except CallRefused as refusal:
            _fail(task, call, str(refusal), is_final=refusal.is_final)
        except ProviderError as error:
            _fail(task, call, error.message, is_final=not error.retryable)
        except TimeoutError:
            _fail(task, call, f"no reply within {CALL_SECONDS:g} s", is_final=False)
        except ValueError as error:
            _fail(task, call, str(error), is_final=True)
        except asyncio.CancelledError:
            logger.info("a title is left to another worker", extra=extra)
            drop_title(task, call, again_at=None if task.is_last_try else timezone.now())
        else:
            finish_title(task, call, reply, _title_in(reply))

    def _counted_reply(
        self, call: OutsideCall, provider: Provider, conversation: Conversation
    ) -> Reply:
        """Make one call, and count it in the metrics. The exceptions are those of `_ask`."""
        began, code, usage = time.monotonic(), "cancelled", None
        try:
            reply = asyncio.run(self._ask(provider, conversation))
            code, usage = "", reply.usage
            return reply
        except ProviderError as error:
            code = error.code
            raise
        except TimeoutError:
            code = "stalled"
            raise
        finally:
            if (numbers := counters()) is not None:
                seconds = time.monotonic() - began
                count_model_call(numbers, call.provider, call.model, code, seconds, usage)

    async def _ask(self, provider: Provider, conversation: Conversation) -> Reply:
        """Make one call. Raises `ProviderError`, `TimeoutError` and `CancelledError`."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with self._lock:
            if self._is_cancelled:
                raise asyncio.CancelledError
            self._cancel = partial(loop.call_soon_threadsafe, task.cancel)
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await _reply_of(provider, conversation)
        finally:
            with self._lock:
                self._cancel = None
            await provider.close()


async def _reply_of(provider: Provider, conversation: Conversation) -> Reply:
    limits = ReplyLimits()
    async with aclosing(provider.stream(conversation)) as events:
        async for event in events:
            if isinstance(event, Reply):
                check_reply(event)
                return event
            limits.count(event)
    raise ProviderError(
        "The model's stream ended without a reply.", code="malformed_stream", retryable=True
    )


def _request(
    task: TitleTask, spec: AgentSpec, name: str, model: str
) -> tuple[Provider, Conversation, PromptHead]:
    """Return the prompt of a call without tools. Raises `ProviderError`."""
    provider = get_provider(name, replace(settings_of(name), stall_timeout=STALL_SECONDS))
    thinks = name != "anthropic" and reasons(model)
    output = MAX_OUTPUT_WITH_THOUGHTS if thinks else MAX_OUTPUT
    head = PromptHead(model=model, system=SYSTEM, max_tokens=output, caches=False)
    conversation = provider.conversation(head)
    conversation.append("user", dump([{"type": "text", "text": prompt_for(*texts_of(task))}]))
    return provider, conversation, head


def _call_of(task: TitleTask, found: tuple[str, str], size: int, max_output: int) -> OutsideCall:
    run, (provider, model) = task.run, found
    tokens = size + UNSEEN_TOKENS
    return OutsideCall(
        key=f"title:{run.thread_id}:{task.tries}",
        agent_id=run.agent_version.agent_id,
        agent_slug=run.agent_version.agent.slug,
        owner_id=run.owner_id,
        time_zone=run.thread.time_zone,
        trigger=run.trigger,
        provider=provider,
        model=model,
        tokens=tokens + max_output,
        microusd=worst_cost_microusd(model, tokens, max_output),
        until=task.until,
    )


def _fail(task: TitleTask, call: OutsideCall | None, problem: str, *, is_final: bool) -> None:
    """Record a failed try, and say in the log how it continues."""
    is_last = is_final or task.is_last_try
    what = "the first words stay" if is_last else f"next try in {PAUSE.seconds} s"
    extra = {"run_id": task.run.pk}
    logger.warning("a conversation has no title: %s; %s", problem, what, extra=extra)
    drop_title(task, call, again_at=None if is_last else timezone.now() + PAUSE)


def _title_in(reply: Reply) -> str:
    if reply.stop_reason == "refusal":
        return ""
    texts = (block["text"] for block in reply.blocks if block["type"] == "text")
    return clean_title("\n".join(texts))
