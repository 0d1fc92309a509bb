"""Telemetry of model calls, by attempt."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from agents.providers.base import ProviderError, Reply, Usage
from agents.providers.prices import cost_microusd
from agents.telemetry import spans
from agents.telemetry.counters import Counters
from agents.telemetry.spans import provider_name
from agents.telemetry.watch import ClaimWatch, current_watch, quietly


class ModelCallWatch:
    """One attempt of a model call."""

    reply: Reply | None = None


@contextmanager
def watched_model_call(
    provider: str, attempt: int, turn: int, model: str = ""
) -> Iterator[ModelCallWatch]:
    """Record one attempt. The caller sets `reply`. An empty `model` means the run's own."""
    call = ModelCallWatch()
    watch = current_watch()
    if watch is None:
        yield call
        return
    start, began = time.time_ns(), time.monotonic()
    code = message = ""
    try:
        yield call
    except ProviderError as problem:
        code, message = problem.code, problem.message
        raise
    except BaseException as problem:
        code = "exception" if isinstance(problem, Exception) else "cancelled"
        raise
    finally:
        with quietly():
            _tell_model_call(
                watch, provider, attempt, turn, model or watch.model, call.reply,
                (start, time.monotonic() - began), (code, message),
            )  # fmt: skip


def count_model_call(
    numbers: Counters, provider: str, model: str, code: str, seconds: float, usage: Usage | None
) -> None:
    """Count one attempt. `code` is that of the error, or empty; `usage` is None without a reply."""
    label = "scripted" if provider == "scripted" else model
    numbers.add("vel_model_calls_total", provider, label, code or "ok")
    numbers.observe("vel_model_call_duration_seconds", provider, label, seconds=seconds)
    if usage is not None:
        for kind in ("input", "output", "cache_read", "cache_write"):
            if used := getattr(usage, kind):
                numbers.add("vel_model_tokens_total", provider, label, kind, amount=used)
        cost = cost_microusd(model, usage) if provider != "scripted" else 0
        if cost:
            numbers.add("vel_model_cost_dollars_total", provider, label, amount=cost / 1e6)


def _tell_model_call(
    watch: ClaimWatch,
    provider: str,
    attempt: int,
    turn: int,
    model: str,
    reply: Reply | None,
    when: tuple[int, float],
    problem: tuple[str, str],
) -> None:
    start, seconds = when
    code, message = problem
    if (numbers := watch.tools.counters) is not None:
        count_model_call(
            numbers, provider, model, code, seconds, reply.usage if reply is not None else None
        )
    attributes = watch.attributes("chat") | {
        "gen_ai.provider.name": provider_name(provider),
        "gen_ai.request.model": model,
        "gen_ai.request.stream": True,
        "vel.step": turn,
        "vel.attempt": attempt,
    }
    if reply is not None:
        usage = reply.usage
        attributes |= {
            "gen_ai.response.model": reply.model,
            "gen_ai.response.finish_reasons": [reply.stop_reason],
            # By the conventions this is the whole prompt, cached or not.
            "gen_ai.usage.input_tokens": usage.input + usage.cache_read + usage.cache_write,
            "gen_ai.usage.output_tokens": usage.output,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        }
    # The message of a server may repeat the content of the request.
    told = spans.short(message) if watch.tools.content else ""
    if watch.tools.content and reply is not None:
        attributes["gen_ai.output.messages"] = spans.reply_message(reply.blocks, reply.stop_reason)
    watch.put(
        f"chat {model}", watch.unique_id("chat"), start, attributes,
        is_client=True, error=code, message=told,
    )  # fmt: skip
