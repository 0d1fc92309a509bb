"""Telemetry of the engine: the trace of a run, and the report of its end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.db import DatabaseError

from agents.engine.storage.database import Database
from agents.engine.storage.lease import Claim
from agents.middleware.registry import outliving_tools
from agents.models import Run
from agents.telemetry.log_context import logged_about
from agents.telemetry.process import Instruments, instruments
from agents.telemetry.run_spans import spans_of_ended_run, trace_of
from agents.telemetry.watch import quietly, watched_claim

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 3.0
"""The time for the last spans of a process that ends."""


@asynccontextmanager
async def watched(database: Database, process: str, claim: Claim) -> AsyncIterator[None]:
    """Trace the execution of a claimed run. Does nothing if telemetry is off."""
    run = claim.run
    with logged_about(run_id=run.pk, thread_id=run.thread_id, user_id=run.owner_id):
        tools = instruments()
        if tools is None:
            yield
            return
        async with _instrumented(database, process, claim, tools):
            yield


@asynccontextmanager
async def _instrumented(
    database: Database, process: str, claim: Claim, tools: Instruments
) -> AsyncIterator[None]:
    trace = None
    if tools.spans is not None:
        trace = await database.run(trace_of, claim.run, tools.spans)
        trace = trace if trace.sampled else None
    with watched_claim(tools, trace, claim.run, claim.fence, process, recovered=claim.recovered):
        yield


async def tell_spans(database: Database, run: Run) -> None:
    """Send the spans of a run that has ended.

    Raises `DatabaseError`, after which it is tried again. If a run's rows are invalid, its spans
    are lost, but other notifications of its end are not.
    """
    tools = instruments()
    if tools is None or tools.spans is None:
        return
    try:
        names = outliving_tools()
        spans = await database.run(spans_of_ended_run, run, tools.spans, names, tools.content)
    except DatabaseError:
        raise
    except Exception:  # telemetry must never stop a run
        logger.exception("telemetry failed", extra={"run_id": run.pk})
        return
    with quietly():
        for span in spans:
            tools.spans.put(span)


def count_found(number: int) -> None:
    """Count runs without a driver that the sweeper found."""
    tools = instruments()
    if number and tools is not None and tools.counters is not None:
        tools.counters.add("vel_sweeper_found_total", amount=number)


def flush_spans() -> None:
    """Wait a moment until the spans of this process are sent. Blocks."""
    tools = instruments()
    if tools is not None and tools.spans is not None:
        tools.spans.flush(FLUSH_SECONDS)
