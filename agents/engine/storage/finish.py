"""The end of a run: one transaction with all its effects.

Call the functions in a transaction. They lock the run's row before its clock, as everywhere, and
raise `FenceLost` if the driver no longer has the lease. `active_ms` are the milliseconds of work
since the driver's last report.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypedDict

from django.db import connection
from django.utils import timezone

from agents.engine.storage.journal import Writer, write_events
from agents.engine.storage.lease import hand_back
from agents.engine.storage.sql import CLOCK
from agents.events.append import append_events
from agents.events.catalogue.runs import RunCompleted, RunFailed, RunUsage
from agents.kernel import row_hooks
from agents.kernel.lease import lock_and_release
from agents.kernel.park import End
from agents.models import Run, RunClock
from agents.services.runs.control import (
    close_open_work,
    end_children,
    end_driven_cancelled,
    start_next_pending,
)
from agents.services.runs.wake import lock_with_parent
from agents.states import (
    RUN_TRANSITIONS,
    RunStatus,
    check_transition,
)


def add_active(run_id: str, active_ms: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f'UPDATE "{CLOCK}" SET active_ms = active_ms + %s WHERE run_id = %s',
            [active_ms, run_id],
        )


class _Totals(TypedDict):
    usage: RunUsage
    cost: str | None


def _totals(run_id: str, active_ms: int) -> _Totals:
    """Add the last active time to the run's totals, and return them, in one statement."""
    (clock,) = RunClock.objects.raw(
        f'UPDATE "{CLOCK}" SET active_ms = active_ms + %s WHERE run_id = %s RETURNING *',
        [active_ms, run_id],
    )
    return {
        "usage": {
            "input_tokens": clock.input_tokens,
            "output_tokens": clock.output_tokens,
            "cache_read_tokens": clock.cache_read_tokens,
            "cache_write_tokens": clock.cache_write_tokens,
            "turns": clock.turn,
        },
        "cost": str(clock.cost) if clock.cost is not None else None,
    }


def complete_run(
    writer: Writer,
    finish_reason: str,
    active_ms: int,
    fields: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Complete a run after its answer.

    `finish_reason` is the model's reason to stop, and `fields` are additional fields of the event
    `run.completed`.
    """
    run = lock_and_release(writer)
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.COMPLETED)
    end_children(run)
    totals = _totals(run.id, active_ms)
    run.status = RunStatus.COMPLETED
    run.finish_reason = finish_reason
    run.ended_at = timezone.now()
    run.save(update_fields=["status", "finish_reason", "ended_at"])
    append_events(run.id, [RunCompleted(finish_reason=finish_reason, **totals, **fields)])
    row_hooks.ended(run)
    start_next_pending(run)


def fail_run(
    writer: Writer, code: str, message: str, active_ms: int, *, retryable: bool = False
) -> None:
    """Fail a run that cannot continue, and close its open calls. A person may resume it.

    `code` is for programs, `message` for people. `retryable` is a field of the event `run.failed`:
    whether the run may succeed if it is resumed.
    """
    # The message can contain any text of a server or of a middleware.
    message = _storable(message)
    run = lock_and_release(writer)
    check_transition(RUN_TRANSITIONS, run.status, RunStatus.FAILED)
    end_children(run)
    totals = _totals(run.id, active_ms)
    close_open_work(run)
    run.status = RunStatus.FAILED
    run.finish_reason = run.error_code = code
    run.error_message = message
    run.ended_at = timezone.now()
    run.save(update_fields=["status", "finish_reason", "error_code", "error_message", "ended_at"])
    failed = RunFailed(code=code, message=message, retryable=retryable, **totals)
    append_events(run.id, [failed])
    row_hooks.ended(run)
    start_next_pending(run)


def _storable(text: str) -> str:
    """Return `text` without lone surrogates, and without NULs, which PostgreSQL refuses."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")


def end_run(writer: Writer, end: End, active_ms: int) -> None:
    """Fail a run for the reason that a middleware gives."""
    if end.events:
        lock_with_parent(writer.run_id, writer.parent_id)
        write_events(writer, end.events)
    fail_run(writer, end.code, end.message, active_ms)
    if end.refuses_message:
        Run.objects.filter(pk=writer.run_id).update(message_refused=True)


def cancel_driven_run(writer: Writer, active_ms: int) -> None:
    """End a run for which there is a cancel request."""
    run = lock_and_release(writer)
    add_active(run.id, active_ms)
    end_driven_cancelled(run)


def stop_driving(writer: Writer, active_ms: int) -> None:
    """Release the run for another process, or end it if there is a cancel request.

    Without this check, a cancelled run could stay queued, because its process may be the only one
    that can execute it.
    """
    lock_with_parent(writer.run_id, writer.parent_id)
    if RunClock.objects.filter(run_id=writer.run_id, cancel_requested=True).exists():
        cancel_driven_run(writer, active_ms)
    else:
        hand_back(writer)
        add_active(writer.run_id, active_ms)
