"""Whether a call fits the condition of a rule or a grant."""

from __future__ import annotations

from typing import Any

from agents.spec import CallCondition


def holds(condition: CallCondition, tool: str, tool_input: Any, *, permits: bool) -> bool:
    """Whether a call of `tool` with `tool_input` fits.

    `permits`: the condition leads to a yes, so that it must fit all of the call; else, for a
    question or a denial, any part is enough.
    """
    if condition == CallCondition():
        return True
    raise NotImplementedError
