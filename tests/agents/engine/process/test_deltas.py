"""Streamed text and state changes are written in order: invariant 8."""

from __future__ import annotations

import asyncio

import pytest

from agents.engine.process.deltas import DeltaFlusher, DeltaStream
from agents.engine.storage.database import Database
from agents.engine.storage.journal import Writer, write_events
from agents.engine.storage.lease import claim_run
from agents.events.catalogue.messages import TextCompleted, TextDelta
from agents.models import POOL
from tests.agents.engine.test_model_faults import served
from tests.support.messages_script import ToolUse, Turn
from tests.support.runs import drive_to_end, event_types, events, make_agent, make_user, start_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.both_databases
def test_events_after_a_flush_follow_its_deltas() -> None:
    user = make_user()
    make_agent(user)
    run = start_run(user)

    async def flush_and_write_on() -> None:
        loop = asyncio.get_running_loop()
        database = Database(loop)
        claim = await database.run(claim_run, run.id, POOL, "test")
        assert claim is not None
        writer = Writer(run.id, run.thread_id, claim.fence)
        flusher = DeltaFlusher(loop, database, lambda _: None)
        stream = DeltaStream(flusher, writer)
        for number in range(20):
            stream.add(TextDelta, f"1.{number}", "piece")
            flusher._flush()
            # Without a pause, as at the end of a driver's reply.
            done = TextCompleted(part_id=f"1.{number}", text="piece")
            await database.run(write_events, writer, [done])
        await asyncio.to_thread(database.close)

    asyncio.run(flush_and_write_on())
    told = [(event["type"], event["part_id"]) for event in events(run) if "part_id" in event]
    assert told == [
        pair
        for number in range(20)
        for pair in (("text.delta", f"1.{number}"), ("text.completed", f"1.{number}"))
    ]


@pytest.mark.slow
def test_deltas_of_a_slow_model_are_in_order() -> None:
    user = make_user()
    slow = Turn(
        text="A text that comes in several pieces, slowly.",
        tool_uses=[ToolUse("ls", {"path": "/"}), ToolUse("read_todos")],
        chunk_delay=0.02,
    )
    with served([slow] * 4 + [Turn(text="Done.", chunk_delay=0.02)]) as server:
        make_agent(user, provider="anthropic", model="claude-sonnet-5-5")
        run = drive_to_end(start_run(user))
    assert run.status == "completed", run.error_message
    assert server.violations == []
    assert "text.delta" in event_types(run)
    done: set[str] = set()
    for event in events(run):
        part = event.get("part_id") or event.get("call_id") or ""
        kind = event["type"]
        if kind in ("text.started", "text.delta", "tool.input.started", "tool.input.delta"):
            assert part not in done, f"{kind} after its part was complete"
        if kind in ("text.completed", "tool.called"):
            assert part not in done
            done.add(part)
