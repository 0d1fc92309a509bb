"""Earlier calls of a tool whose calls must not be repeated."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q

from agents.models import Run, ToolCall
from agents.states import ToolCallStatus

UNKNOWN = "outcome_unknown"
"""The code of a call with an unknown outcome."""


def earlier_calls(run_id: str, call_id: str, tool: str) -> Iterator[ToolCall]:
    """Yield calls of `tool` in the run's family of threads that were or may have been executed.

    The newest 200, newest first, without the call `call_id` of this run.
    """
    root = Run.objects.filter(pk=run_id).values_list("thread__root_id", "thread_id").get()
    family = Q(run__thread_id=root[0] or root[1]) | Q(run__thread__root_id=root[0] or root[1])
    finished = Q(
        status__in=[ToolCallStatus.SUCCEEDED, ToolCallStatus.INTERRUPTED, ToolCallStatus.CANCELLED]
    )
    unsure = Q(status=ToolCallStatus.FAILED, code__in=[UNKNOWN, "timeout", "exception"])
    calls = ToolCall.objects.filter(family, finished | unsure, tool=tool, started_at__isnull=False)
    return calls.exclude(run_id=run_id, call_id=call_id).order_by("-id")[:200].iterator()
