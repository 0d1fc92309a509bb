"""Hooks around model calls and tool calls, for developers. Needs no Django."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


class EndRun(Exception):
    """Raise it in a hook to end the run as failed. People read `message`; `code` is for programs.

    `code` has 1 to 50 lower case letters, digits and `_`.

    >>> class Office(BaseMiddleware):
    ...     async def before_agent(self, run):
    ...         raise EndRun("closed", "The office is closed.")
    >>> agent = create_deep_agent(middleware=[Office()])
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The run. `turn` is the number of stored replies of the model."""

    run_id: str
    thread_id: str
    owner_id: int
    agent: str
    """The agent's slug."""
    turn: int


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A reply of the model: content blocks of the Messages API, as JSON data.

    >>> class Cache(BaseMiddleware):
    ...     async def wrap_model_call(self, request, handler):
    ...         return ModelAnswer([{"type": "text", "text": "From the cache."}])
    >>> agent = create_deep_agent(scripted_model(["Hello."]), middleware=[Cache()], sandbox=False)
    >>> asyncio.run(agent.run("Hi"))
    'From the cache.'
    """

    blocks: Sequence[Mapping[str, Any]]
    stop_reason: str = "end_turn"
    usage: Mapping[str, int] = field(default_factory=dict)
    """Tokens: input, output, cache_read, cache_write. They are counted only if the model was
    called."""


class ModelCall(ABC):
    """A model call. Summaries and titles of conversations do not call the hook."""

    run: RunInfo
    model: str
    system: str
    """The system prompt."""

    @abstractmethod
    async def messages(self) -> list[dict[str, Any]]:
        """Read the messages that the model gets: `role` and `content` of each."""

    @abstractmethod
    async def key(self) -> str:
        """Return a SHA-256 of all that the model gets: equal prompts have equal keys."""


@dataclass(frozen=True, slots=True)
class ToolCallInfo:
    """A tool call. `input` is a copy: changes have no effect."""

    run: RunInfo
    call_id: str
    tool: str
    input: Mapping[str, Any]
    effect: str
    """`read`, `write` or `external`."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a tool call as text. Change it with `dataclasses.replace`.

    >>> class Closed(BaseMiddleware):
    ...     async def wrap_tool_call(self, call, handler):
    ...         return ToolAnswer("The shop is closed.")
    >>> agent = create_deep_agent(middleware=[Closed()])
    """

    text: str
    is_error: bool = False


ModelHandler = Callable[[], Awaitable[ModelAnswer]]
ToolHandler = Callable[[], Awaitable[ToolAnswer]]


class Hooks:
    """The hooks of a middleware. Each is an `async def`.

    A hook that is not overridden costs nothing.

    They run on an event loop outside the engine, never inside a transaction. All runs of the
    process share an instance. After a crash, a hook is called again for the same step.
    """

    seconds: float = 30.0
    """Time limit of a hook. The time of its handler does not count."""
    on_error: Literal["end", "skip"] = "end"
    """The action after an exception or at the time limit: the run fails, or it continues as if the
    middleware had done nothing.
    """

    async def before_agent(self, run: RunInfo) -> None:
        """Act before model calls and other costs, each time that a worker takes the run.

        It can raise `EndRun`.
        """

    async def wrap_model_call(self, call: ModelCall, handler: ModelHandler) -> ModelAnswer:
        """Call the model with `await handler()`, or return an answer without it."""
        return await handler()

    async def wrap_tool_call(self, call: ToolCallInfo, handler: ToolHandler) -> ToolAnswer:
        """Make the call with `await handler()`, or return a result without it.

        A call can be made twice only if its effect is `read`.
        """
        return await handler()


HOOKS = ("before_agent", "wrap_model_call", "wrap_tool_call")


def overrides(middleware: object, hook: str) -> bool:
    """Return whether a middleware overrides a hook."""
    own = getattr(type(middleware), hook, None)
    return own is not None and own is not getattr(Hooks, hook)
