"""Telemetry of claims, and the context for telemetry of calls and commands.

If telemetry is disabled, each call only reads one context variable. Errors in telemetry are logged
and not propagated.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from agents.models import Run
from agents.telemetry.ids import span_id_of
from agents.telemetry.process import Instruments
from agents.telemetry.spans import AttributeValue, Span, Trace

logger = logging.getLogger(__name__)

_watch: ContextVar[ClaimWatch | None] = ContextVar("vel_watch", default=None)


@dataclass(slots=True)
class ClaimWatch:
    """One claim of a run. `trace` is None when its spans are not sampled."""

    tools: Instruments
    trace: Trace | None
    run_id: str
    thread_id: str
    agent: str
    provider: str
    model: str
    fence: int
    worker: str
    _serial: int = field(default=0, init=False)

    def attributes(self, operation: str) -> dict[str, AttributeValue]:
        """Return the attributes of all spans of this claim."""
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.agent.name": self.agent,
            "gen_ai.conversation.id": self.thread_id,
            "vel.run.id": self.run_id,
            "vel.run.fence": self.fence,
        }

    def unique_id(self, *parts: object) -> int:
        """Return the id of a span that only this claim creates."""
        self._serial += 1
        return span_id_of(self.run_id, self.fence, self._serial, *parts)

    def put(
        self,
        name: str,
        span_id: int,
        start: int,
        attributes: dict[str, AttributeValue],
        *,
        parent_id: int | None = None,
        is_client: bool = False,
        error: str = "",
        message: str = "",
    ) -> None:
        if self.trace is None or self.tools.spans is None:
            return
        self.tools.spans.put(
            Span(
                name,
                self.trace.trace_id,
                span_id,
                self.trace.span_id if parent_id is None else parent_id,
                start,
                time.time_ns(),
                attributes,
                is_client,
                error,
                message,
            )
        )


@contextmanager
def quietly() -> Iterator[None]:
    """Log errors of telemetry, so that they do not affect the run."""
    try:
        yield
    except Exception:
        logger.exception("telemetry failed")


@contextmanager
def watched_claim(
    tools: Instruments,
    trace: Trace | None,
    run: Run,
    fence: int,
    worker: str,
    *,
    recovered: bool,
) -> Iterator[None]:
    """Record the time in which this process drives `run`."""
    watch: ClaimWatch | None = None
    start = time.time_ns()
    with quietly():
        spec = run.spec
        watch = ClaimWatch(
            tools, trace, run.pk, run.thread_id, spec["slug"], spec["provider"], spec["model"],
            fence, worker,
        )  # fmt: skip
        if tools.counters is not None:
            tools.counters.add("vel_run_claims_total", "yes" if recovered else "no")
    token = _watch.set(watch)
    error = ""
    try:
        yield
    except BaseException as problem:
        error = type(problem).__name__
        raise
    finally:
        _watch.reset(token)
        if watch is not None:
            with quietly():
                attributes = watch.attributes("drive")
                del attributes["gen_ai.operation.name"]  # not an operation of the conventions
                attributes |= {"vel.worker": worker, "vel.run.recovered": recovered}
                watch.put("vel.drive", span_id_of("drive", run.pk, fence), start, attributes,
                          error=error)  # fmt: skip


def current_watch() -> ClaimWatch | None:
    """Return the watch of the current task's claim. None if telemetry is disabled."""
    return _watch.get()
