"""What a developer subclasses to give an agent a capability of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from agents.custom.hooks import Hooks
from agents.custom.tool_spec import ToolSpec

State = dict[str, Any]


@runtime_checkable
class Middleware(Protocol):
    """What an agent needs of a middleware, whether it is a `BaseMiddleware` or not."""

    def get_tools(self) -> Sequence[ToolSpec | Callable[..., Any]]: ...

    def get_system_prompt_segment(self) -> str: ...

    def get_state(self) -> State: ...

    def load_state(self, state: State) -> None: ...


class BaseMiddleware(Hooks):
    """Tools, a part of the system prompt, a state that stays with the session, and hooks.

    An instance serves all sessions of its agent. Before each call of one of its tools it is given
    the state of that session (`load_state`), afterwards it is asked for it (`get_state`), and the
    state is stored in the same transaction as the call's result. Calls of one instance's tools
    wait for each other while it has a state. One that keeps none need not override these two.
    """

    name: str = ""
    """Unique among an agent's middleware. Empty: made of the class's name."""

    def get_tools(self) -> Sequence[ToolSpec | Callable[..., Any]]:
        """Its tools: functions, or what `tool` and `ToolSpec` make of them."""
        return ()

    def get_system_prompt_segment(self) -> str:
        """Its part of the system prompt, asked for once when the agent is made."""
        return ""

    def get_state(self) -> State:
        """The state of the session at hand, as JSON."""
        return {}

    def load_state(self, state: State) -> None:
        """Become what `get_state` has told. A new session has the state of the new instance."""


def name_of(middleware: object) -> str:
    """Its name, or its class's in small letters: `OrderDesk` is `order_desk`."""
    given = getattr(middleware, "name", "")
    if isinstance(given, str) and given:
        return given
    plain = type(middleware).__name__.removesuffix("Middleware") or "middleware"
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain).lower()
