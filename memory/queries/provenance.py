"""Where the text that a run has read came from, for the person who judges what it wants to keep."""

from __future__ import annotations

import json
from typing import Any

from agents.models import Effect, Run, ToolCall
from agents.states import ToolCallStatus

MAX_CALLS = 1_000
"""So many of the thread's latest calls are looked at."""
MAX_SOURCES = 50
SOURCE_CHARACTERS = 200
_OF_ITS_OWN = frozenset({"write_todos", "read_todos", "list_memory", "write_memory"})
"""Tools whose results hold nothing that others wrote."""
_NAMING = ("path", "file_path", "url", "command", "code", "query", "sql", "task", "pattern")
"""The inputs that say what was read."""


def untrusted_sources(run: Run) -> list[dict[str, Any]]:
    """`[{step, tool, source}]`: the thread's calls whose results others may have written.

    The latest come first, each source once; the last entry says how many more there are.
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
