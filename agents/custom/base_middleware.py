"""The base class of developers' middleware."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from agents.custom.hooks import Hooks
from agents.custom.tool_spec import ToolSpec

State = dict[str, Any]


@runtime_checkable
class Middleware(Protocol):
    """The interface of a middleware, also of one that is no `BaseMiddleware`.

    >>> isinstance(PlanningMiddleware(), Middleware)
    True
    """

    def get_tools(self) -> Sequence[ToolSpec | Callable[..., Any]]: ...

    def get_system_prompt_segment(self) -> str: ...

    def get_state(self) -> State: ...

    def load_state(self, state: State) -> None: ...


class BaseMiddleware(Hooks):
    """Tools, a part of the system prompt, a state for each session, and hooks.

    An instance serves all sessions of its agent. Before each call of its tools, `load_state` gets
    the session's state. After the call, the result of `get_state` is stored in the same transaction
    as the call's result. If it has a state, calls of its tools wait for each other. A middleware
    without a state need not override these two methods.

    >>> class Rules(BaseMiddleware):
    ...     def get_system_prompt_segment(self):
    ...         return "## Rules\\nAnswer in one sentence."
    >>> agent = create_deep_agent(middleware=[Rules()])
    """

    name: str = ""
    """Unique among an agent's middleware. Empty: derived from the class's name."""

    def get_tools(self) -> Sequence[ToolSpec | Callable[..., Any]]:
        """Return its tools: functions, or objects of `tool` and `ToolSpec`."""
        return ()

    def get_system_prompt_segment(self) -> str:
        """Return its part of the system prompt. It is called once, when the agent is created."""
        return ""

    def get_state(self) -> State:
        """Return the state of the current session, as JSON."""
        return {}

    def load_state(self, state: State) -> None:
        """Restore a result of `get_state`.

        A new session starts with the state that this object had when the agent was created.
        """


def name_of(middleware: object) -> str:
    """Return its name, or the class's name in lower case: `OrderDesk` is `order_desk`."""
    given = getattr(middleware, "name", "")
    if isinstance(given, str) and given:
        return given
    plain = type(middleware).__name__.removesuffix("Middleware") or "middleware"
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain).lower()
