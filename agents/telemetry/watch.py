"""What the engine says of its work, at the few points where a claim, a call or a command happens.

All of it is a question to one context variable where nothing is wanted. Where something is, what
goes wrong in here is logged and stays in here.
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
    """One claim of one run. `trace` is None where no spans of it are wanted."""

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
        """What all spans of this claim have."""
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.agent.name": self.agent,
            "gen_ai.conversation.id": self.thread_id,
            "vel.run.id": self.run_id,
            "vel.run.fence": self.fence,
        }

    def unique_id(self, *parts: object) -> int:
        """Of a span that only this claim makes."""
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
    """Watching must never end what is watched."""
    try:
        yield
    except Exception:  # see above
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
    """The stretch in which this process drives `run`."""
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
                del attributes["gen_ai.operation.name"]  # no operation of the conventions
                attributes |= {"vel.worker": worker, "vel.run.recovered": recovered}
                watch.put("vel.drive", span_id_of("drive", run.pk, fence), start, attributes,
                          error=error)  # fmt: skip


def current_watch() -> ClaimWatch | None:
    """Of the claim that this task belongs to; None where nobody watches."""
    return _watch.get()
