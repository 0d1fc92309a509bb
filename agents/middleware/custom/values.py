"""Convert a function's return value to a tool's result."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from agents.events.append import dump
from agents.middleware.base import ToolResult, error

_ANY: TypeAdapter[Any] = TypeAdapter(Any)


def result_of(name: str, value: Any) -> ToolResult:
    """Return text as it is; models, dataclasses, dates, numbers and collections as JSON.

    Other values become an error result.
    """
    if isinstance(value, ToolResult):
        return value
    if value is None or isinstance(value, str):
        return ToolResult(value or "")
    try:
        plain = _ANY.dump_python(value, mode="json")
        dump(plain)
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as problem:
        return error(
            f"{name} was called, but what it returned ({type(value).__name__}) cannot be shown: "
            f"{str(problem)[:200]}",
            "bad_result",
        )
    return ToolResult(plain if isinstance(plain, dict | list) else dump(plain))
