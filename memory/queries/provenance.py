"""Sources of the text that a run has read, shown to the approver of its proposals."""

from __future__ import annotations

import json
from typing import Any

from agents.models import Effect, Run, ToolCall
from agents.states import ToolCallStatus

MAX_CALLS = 1_000
"""Only this number of the thread's latest calls is examined."""
MAX_SOURCES = 50
SOURCE_CHARACTERS = 200
_OF_ITS_OWN = frozenset({"write_todos", "read_todos", "list_memory", "write_memory"})
"""Tools whose results contain no text of other people."""
_NAMING = ("path", "file_path", "url", "command", "code", "query", "sql", "task", "pattern")
"""The inputs that name the source of the text."""


def untrusted_sources(run: Run) -> list[dict[str, Any]]:
    """Return `[{step, tool, source}]` of calls whose results may contain text of other people.

    The calls are those of the thread until this run, the latest first. `step` is the turn of the
    call in its run. Each source occurs once. If there are more than `MAX_SOURCES`, one more entry
    contains the number of the others.
    """
    calls = (
        ToolCall.objects.filter(
            run__thread_id=run.thread_id,
            run__number__lte=run.number,
            status__in=(ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED),
        )
        .exclude(tool__in=_OF_ITS_OWN)
        .exclude(effect=Effect.WRITE, tool__in=("write_file", "edit_file"))
        .order_by("-run__number", "-turn", "position")
        .values_list("turn", "tool", "input")[:MAX_CALLS]
    )
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for turn, tool, arguments in calls:
        source = _source(arguments)
        found.setdefault((tool, source), {"step": turn, "tool": tool, "source": source})
    sources = list(found.values())
    if len(sources) > MAX_SOURCES:
        more = len(sources) - MAX_SOURCES
        return [*sources[:MAX_SOURCES], {"step": 0, "tool": "", "source": f"and {more} more"}]
    return sources


def _source(arguments: str) -> str:
    values = json.loads(arguments)
    if not isinstance(values, dict):
        return ""
    text = next((values[name] for name in _NAMING if isinstance(values.get(name), str)), "")
    first = text.strip().split("\n", 1)[0]
    return first if len(first) <= SOURCE_CHARACTERS else f"{first[:SOURCE_CHARACTERS]}…"
